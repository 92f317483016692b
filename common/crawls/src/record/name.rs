//! The names of records that have no URL: `record:FILE#ID`, or `record:FILE#row=N`.

use std::fmt::Write as _;
use std::path::{Component, Path};

use doppel_model::{PageUrl, UrlError};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};

/// All that is percent-encoded in an id: what is not ASCII, and of ASCII all but letters, digits and these. An id with `=` cannot be
/// taken for `row=N`, nor a name with `?` for a URL with a query.
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

/// The same in the name of a file.
const IN_FILE: &AsciiSet = &IN_ID.remove(b'=');

/// How the names of all records of a file begin.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct RecordFile(String);

impl RecordFile {
    /// The file at `path`, which is relative to the directory that is the input; of a file that is an input itself it is the
    /// last part. Only the parts that are names count.
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

    /// How the names of its records begin.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// A file that is an input itself.
    #[must_use]
    pub fn single(path: &Path) -> Self {
        Self::new(path.file_name().unwrap_or(path.as_os_str()).as_ref())
    }

    /// The name of the record with this id.
    ///
    /// # Errors
    /// When it would be longer than a URL may be.
    pub fn with_id(&self, id: &str) -> Result<PageUrl, UrlError> {
        let mut name = self.named(id.len());
        name.extend(percent_encode(id.as_bytes(), IN_ID));
        // Names are kept.
        name.shrink_to_fit();
        PageUrl::try_from(name)
    }

    /// The name of the record with this number; the first is 1.
    ///
    /// # Errors
    /// When it would be longer than a URL may be.
    pub fn with_number(&self, number: u64) -> Result<PageUrl, UrlError> {
        let digits = number.checked_ilog10().map_or(1, |log| log as usize + 1);
        let mut name = self.named("row=".len() + digits);
        let _infallible = write!(name, "row={number}");
        PageUrl::try_from(name)
    }

    /// The beginning of a name, with room for so many more bytes.
    fn named(&self, room: usize) -> String {
        let mut name = String::with_capacity(self.0.len() + 1 + room);
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
    fn names_take_no_more_room_than_they_need() {
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
    fn names_have_what_has_to_be_encoded_encoded() {
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
