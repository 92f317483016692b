//! Names of records in results. A name consists of the file, and of the record's identifier or its position
//! in the file.

use std::path::Path;
use std::sync::Arc;

use doppel_crawls::InputPosition;
use doppel_crawls::copy::RecordName;
use serde::{Deserialize, Serialize};

use crate::records::position_fields::PositionFields;

/// Origin of a record: its file, and its position there.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Origin {
    /// File or directory, as the user named it.
    #[serde(with = "path_bytes")]
    pub path: Arc<Path>,
    /// Place of the record in the file.
    #[serde(rename = "place")]
    pub position: InputPosition,
    /// Identifier of the record within its file, if it has one.
    pub id: Option<Box<str>>,
    /// Distance in pages from this one back to its original, the page whose content it has. `None` if its
    /// record stores the content.
    pub refers_back: Option<u64>,
}

/// Names of all records, by their numbers in the order of the inputs. Each record takes 24 bytes and its
/// identifier.
#[derive(Debug, Default)]
pub struct RecordNames {
    /// Files in order, each with the number of its first record.
    files: Vec<(u64, Arc<Path>)>,
    records: Vec<NamedRecord>,
    /// Identifiers of all records, concatenated.
    ids: String,
}

/// Place of a record, and the offset at which its identifier ends.
#[derive(Debug, Clone, Copy)]
struct NamedRecord {
    position: Option<InputPosition>,
    id_end: usize,
}

/// Name of a record, as the lines of results contain it.
#[derive(Debug, PartialEq, Serialize)]
pub struct RecordLabel<'n> {
    file: String,
    #[serde(flatten)]
    position: PositionFields,
    /// Identifier of the record within its file, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'n str>,
}

impl RecordNames {
    /// Adds a record to the names. The caller adds records in the order of their numbers.
    pub fn note(&mut self, number: u64, origin: &Origin) {
        if self.files.last().is_none_or(|(_, path)| *path != origin.path) {
            self.files.push((number, Arc::clone(&origin.path)));
        }
        // Bad records in between have no names.
        let unnamed = NamedRecord { position: None, id_end: self.ids.len() };
        self.records.resize(number as usize, unnamed);
        self.ids.push_str(origin.id.as_deref().unwrap_or_default());
        self.records.push(NamedRecord { position: Some(origin.position), id_end: self.ids.len() });
    }

    /// Returns the name of a record in results. `None` for a bad record, and for a number that no record of
    /// the inputs has.
    pub fn label(&self, number: u64) -> Option<RecordLabel<'_>> {
        let at = usize::try_from(number).ok()?;
        let NamedRecord { position, id_end } = *self.records.get(at)?;
        let begin = at.checked_sub(1).map_or(0, |before| self.records[before].id_end);
        let id = &self.ids[begin..id_end];
        let file = self.files.partition_point(|(first, _)| *first <= number).checked_sub(1)?;
        let file = self.files[file].1.display().to_string();
        Some(RecordLabel { file, position: position?.into(), id: (!id.is_empty()).then_some(id) })
    }

    /// Returns the name of a record in annotations. Empty if the record has no name.
    pub fn name(&self, number: Option<u64>) -> RecordName {
        let Some(label) = number.and_then(|number| self.label(number)) else { return RecordName::default() };
        let id = label.id_or_place();
        RecordName { file: Some(label.file), id }
    }
}

impl RecordLabel<'_> {
    /// File of the record, with its identifier or its position, for people.
    pub fn text(&self) -> String {
        self.id_or_place().map_or_else(|| self.file.clone(), |id| format!("{}, {id}", self.file))
    }

    fn id_or_place(&self) -> Option<String> {
        self.id.map(str::to_owned).or_else(|| self.position.text())
    }
}

/// Serialises a path as the bytes of the operating system, which need not be UTF-8.
mod path_bytes {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    use std::path::Path;
    use std::sync::Arc;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
        path.as_os_str().as_bytes().serialize(serializer)
    }

    pub(super) fn deserialize<'d, D: Deserializer<'d>>(deserializer: D) -> Result<Arc<Path>, D::Error> {
        let bytes = Vec::<u8>::deserialize(deserializer)?;
        Ok(Path::new(OsStr::from_bytes(&bytes)).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_named_by_file_and_id_or_place() {
        let mut names = RecordNames::default();
        let origin = |path: &str, position, id: Option<&str>| Origin {
            path: Path::new(path).into(),
            position,
            id: id.map(Into::into),
            refers_back: None,
        };
        names.note(0, &origin("a.jsonl", InputPosition::Line(1), Some("x")));
        names.note(3, &origin("a.jsonl", InputPosition::Line(4), None));
        names.note(4, &origin("b.warc", InputPosition::Record(77), Some("<urn:uuid:1>")));
        names.note(6, &origin("dir", InputPosition::File, None));
        let text = |number| names.label(number).map(|label| label.text());
        assert_eq!(text(0).unwrap(), "a.jsonl, x");
        assert_eq!(text(1), None, "a bad record has no name");
        assert_eq!(text(3).unwrap(), "a.jsonl, line=4");
        assert_eq!(text(4).unwrap(), "b.warc, <urn:uuid:1>");
        assert_eq!((text(5), text(7)), (None, None));
        assert_eq!(names.name(Some(6)), RecordName { file: Some("dir".to_owned()), id: None });
        let json = serde_json::to_string(&names.label(4)).unwrap();
        assert_eq!(json, r#"{"file":"b.warc","byte":77,"id":"<urn:uuid:1>"}"#);
    }
}
