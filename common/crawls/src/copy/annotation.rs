//! The annotation of a record, and how the text formats write its fields. The record itself stays byte for
//! byte as it is.

use memchr::memmem;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

/// The names of the fields of an annotation, in the order in which they are written.
pub const ANNOTATION_FIELDS: [&str; 9] = [
    "doppel_group",
    "doppel_winner",
    "doppel_winner_file",
    "doppel_winner_id",
    "doppel_duplicate_of",
    "doppel_duplicate_of_file",
    "doppel_duplicate_of_id",
    "doppel_similarity",
    "doppel_reason",
];

/// The name of the only field that is a number. All others are texts.
pub(super) const SIMILARITY: &str = "doppel_similarity";

/// The name by which the user finds a record in the inputs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecordName {
    /// The path of the file, as the user gave it.
    pub file: Option<String>,
    /// The id of the record, or else its position in the file, such as `line=7`.
    pub id: Option<String>,
}

/// The annotation of a record. All fields are empty for a record that was not compared.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Annotation {
    /// The group of the page, such as `g0-1`.
    pub group: Option<String>,
    /// The URL of the group's winner.
    pub winner: Option<String>,
    /// The record of the winner, if it is in the inputs.
    pub winner_record: RecordName,
    /// The URL of the kept page of which the page is a duplicate.
    pub duplicate_of: Option<String>,
    /// The record of that kept page, if it is in the inputs.
    pub duplicate_of_record: RecordName,
    /// The similarity of the page to that kept page, by the measure of the policy.
    pub similarity: Option<f64>,
    /// The reason why the record is removed.
    pub reason: Option<&'static str>,
}

impl Annotation {
    /// The values as texts, in the order of [`ANNOTATION_FIELDS`].
    pub(super) fn values(&self) -> [Option<String>; ANNOTATION_FIELDS.len()] {
        let Self { group, winner, winner_record, duplicate_of, duplicate_of_record, similarity, reason } =
            self.clone();
        let similarity = similarity.map(|of| of.to_string());
        let RecordName { file: winner_file, id: winner_id } = winner_record;
        let RecordName { file, id } = duplicate_of_record;
        let reason = reason.map(str::to_owned);
        [group, winner, winner_file, winner_id, duplicate_of, file, id, similarity, reason]
    }

    /// Appends the fields to a line with a JSON object. The rest of the line stays as it is. `None` if the
    /// object has a field with one of the names already.
    pub(super) fn append_to_json(&self, line: &[u8]) -> Option<Vec<u8>> {
        let end = memchr::memrchr(b'}', line)?;
        let (object, rest) = line.split_at(end);
        let has = |name: &str| {
            let quoted = format!("\"{name}\"");
            memmem::find_iter(object, &quoted)
                .any(|at| object[at + quoted.len()..].trim_ascii_start().starts_with(b":"))
        };
        if ANNOTATION_FIELDS.into_iter().any(has) {
            return None;
        }
        let fields = serde_json::to_vec(&JsonFields(self)).ok()?;
        let is_empty = object.trim_ascii_end().ends_with(b"{");
        let separator: &[u8] = if is_empty { b"" } else { b"," };
        // The outer braces of `fields` are left out, because those of the line enclose the fields.
        Some([object, separator, &fields[1..fields.len() - 1], rest].concat())
    }

    /// Appends the fields as cells to the row of a table.
    pub(super) fn append_to_row(&self, row: &[u8], separator: u8) -> Vec<u8> {
        let values = self.values().map(Option::unwrap_or_default);
        with_cells(row, separator, values.iter().map(String::as_str))
    }
}

/// Serialises an annotation as a JSON object.
struct JsonFields<'a>(&'a Annotation);

impl Serialize for JsonFields<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(ANNOTATION_FIELDS.len()))?;
        for (name, value) in ANNOTATION_FIELDS.into_iter().zip(self.0.values()) {
            if name == SIMILARITY {
                map.serialize_entry(name, &self.0.similarity)?;
            } else {
                map.serialize_entry(name, &value)?;
            }
        }
        map.end()
    }
}

/// Appends cells to a row, before its line end. Quotes the cells that need it.
pub(super) fn with_cells<'c>(row: &[u8], separator: u8, cells: impl Iterator<Item = &'c str>) -> Vec<u8> {
    let end = row.len() - row.iter().rev().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
    let mut longer = row[..end].to_vec();
    for cell in cells {
        longer.push(separator);
        if cell.bytes().any(|byte| byte == separator || matches!(byte, b'"' | b'\r' | b'\n')) {
            longer.push(b'"');
            longer.extend_from_slice(cell.replace('"', "\"\"").as_bytes());
            longer.push(b'"');
        } else {
            longer.extend_from_slice(cell.as_bytes());
        }
    }
    longer.extend_from_slice(&row[end..]);
    longer
}

#[cfg(test)]
mod tests {
    use super::*;

    fn annotation() -> Annotation {
        let text = |text: &str| Some(text.to_owned());
        Annotation {
            group: text("g0-1"),
            winner: text("http://a/\"x\",y"),
            winner_record: RecordName { file: text("a.jsonl"), id: text("7") },
            duplicate_of: None,
            duplicate_of_record: RecordName::default(),
            similarity: Some(0.5),
            reason: Some("duplicate"),
        }
    }

    #[test]
    fn annotations_are_appended_to_a_json_line_that_is_otherwise_unchanged() {
        let line = b"\xef\xbb\xbf { \"a\" : 1.50, \"b\": \"}\" } \r\n";
        let annotated = String::from_utf8(annotation().append_to_json(line).unwrap()).unwrap();
        assert_eq!(
            annotated,
            "\u{feff} { \"a\" : 1.50, \"b\": \"}\" ,\"doppel_group\":\"g0-1\",\"doppel_winner\":\"http://a/\\\"x\\\",y\",\
             \"doppel_winner_file\":\"a.jsonl\",\"doppel_winner_id\":\"7\",\"doppel_duplicate_of\":null,\
             \"doppel_duplicate_of_file\":null,\"doppel_duplicate_of_id\":null,\"doppel_similarity\":0.5,\"doppel_reason\":\"duplicate\"} \r\n"
        );
        assert!(serde_json::from_str::<serde_json::Value>(annotated.trim_start_matches('\u{feff}')).is_ok());
        assert_eq!(annotation().append_to_json(annotated.as_bytes()), None, "the line is annotated already");
        let empty = Annotation::default().append_to_json(b"{}").unwrap();
        assert!(empty.starts_with(b"{\"doppel_group\":null,") && empty.ends_with(b":null}"));
        let quoted = br#"{"text": "\"doppel_group\": 1"}"#;
        assert!(annotation().append_to_json(quoted).is_some(), "a text may contain the name of a field");
    }

    #[test]
    fn annotations_are_appended_to_a_row_that_is_otherwise_unchanged() {
        let annotated = annotation().append_to_row(b"1;\"2\n\";3\r\n", b';');
        assert_eq!(annotated, b"1;\"2\n\";3;g0-1;\"http://a/\"\"x\"\",y\";a.jsonl;7;;;;0.5;duplicate\r\n");
        assert_eq!(Annotation::default().append_to_row(b"1", b','), b"1,,,,,,,,,");
        assert_eq!(with_cells(b"a\n", b'\t', ["b c"].into_iter()), b"a\tb c\n");
    }
}
