//! Names records that have no URL: `record:FILE#ID`, or `record:FILE#row=N` if the record has no id either.

use std::fmt::Write as _;
use std::path::{Component, Path};

use doppel_model::{PageUrl, UrlError};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};

/// The ASCII characters that are percent-encoded in an id: all but letters, digits and the characters below.
/// Characters beyond ASCII are always encoded. Because `=` is encoded, an id cannot look like `row=N`.
/// Because `?` is encoded, a name cannot look like a URL with a query.
const IN_ID: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b'!')
    .remove(b'$')
    .remove(b'&')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')')
    .remove(b'*')
    .remove(b'+')
    .remove(b',')
    .remove(b';')
    .remove(b':')
    .remove(b'@')
    .remove(b'/');

/// The ASCII characters that are percent-encoded in the name of a file. Like [`IN_ID`], but `=` is not
/// encoded.
const IN_FILE: &AsciiSet = &IN_ID.remove(b'=');

/// The common beginning of the names of all records of a file: `record:FILE`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct RecordFile(String);

impl RecordFile {
    /// The beginning for the file at `path`, relative to the directory that the user gave as input. If the
    /// user gave the file itself, use [`single`](Self::single). Components such as `/`, `.` and `..` are left
    /// out.
    #[must_use]
    pub fn new(path: &Path) -> Self {
        let mut name = PageUrl::RECORD.to_owned();
        let parts = path.components().filter_map(|part| match part {
            Component::Normal(part) => Some(part.as_encoded_bytes()),
            _ => None,
        });
        for (at, part) in parts.enumerate() {
            let separator = if at == 0 { "" } else { "/" };
            let _infallible = write!(name, "{separator}{}", percent_encode(part, IN_FILE));
        }
        Self(name)
    }

    /// The beginning as text, such as `record:part-1.jsonl`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The beginning for a file that the user gave as input itself: only the last component of its path
    /// counts.
    #[must_use]
    pub fn single(path: &Path) -> Self {
        Self::new(path.file_name().unwrap_or(path.as_os_str()).as_ref())
    }

    /// The name of the record with this id.
    ///
    /// # Errors
    /// If the name would be longer than a URL may be.
    pub fn with_id(&self, id: &str) -> Result<PageUrl, UrlError> {
        let mut name = self.with_hash_sign(id.len());
        name.extend(percent_encode(id.as_bytes(), IN_ID));
        // Callers keep the names of all records in memory.
        name.shrink_to_fit();
        PageUrl::try_from(name)
    }

    /// The name of the record with this number. Records are counted from 1.
    ///
    /// # Errors
    /// If the name would be longer than a URL may be.
    pub fn with_number(&self, number: u64) -> Result<PageUrl, UrlError> {
        let digits = number.checked_ilog10().map_or(1, |log| log as usize + 1);
        let mut name = self.with_hash_sign("row=".len() + digits);
        let _infallible = write!(name, "row={number}");
        PageUrl::try_from(name)
    }

    /// The beginning of a name up to and including `#`, with capacity for `more` more bytes.
    fn with_hash_sign(&self, more: usize) -> String {
        let mut name = String::with_capacity(self.0.len() + 1 + more);
        name.push_str(&self.0);
        name.push('#');
        name
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    #[test]
    fn names_take_no_more_memory_than_they_need() {
        let file = RecordFile::new(Path::new("a.jsonl"));
        for number in [0, 1, 9, 10, 99, 100, u64::MAX] {
            let name = String::from(file.with_number(number).unwrap());
            assert_eq!((&*name, name.capacity()), (&*format!("record:a.jsonl#row={number}"), name.len()));
        }
        for id in ["7", "<é>"] {
            let name = String::from(file.with_id(id).unwrap());
            assert_eq!(name.capacity(), name.len());
        }
    }

    #[test]
    fn special_characters_of_files_and_ids_are_percent_encoded() {
        let file = RecordFile::new(Path::new("2024/a b#c?.jsonl"));
        assert_eq!(file.with_number(1).unwrap().as_str(), "record:2024/a%20b%23c%3F.jsonl#row=1");
        let file = RecordFile::single(Path::new("../x/part-1=é.jsonl.gz"));
        let id = |id: &str| file.with_id(id).unwrap().as_str().to_owned();
        assert_eq!(id("<urn:uuid:1>"), "record:part-1=%C3%A9.jsonl.gz#%3Curn:uuid:1%3E");
        assert_eq!(id("row=1"), "record:part-1=%C3%A9.jsonl.gz#row%3D1");
        assert_eq!(id("a#b%\n"), "record:part-1=%C3%A9.jsonl.gz#a%23b%25%0A");
        let no_unicode = RecordFile::single(Path::new(OsStr::from_bytes(b"\xff.csv")));
        assert_eq!(no_unicode.with_number(2).unwrap().as_str(), "record:%FF.csv#row=2");
        assert!(file.with_id(&"x".repeat(9_000)).is_err());
    }
}
