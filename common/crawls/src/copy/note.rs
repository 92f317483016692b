//! What is written beside a record with annotations, in the ways of text formats.

use memchr::memmem;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

/// The names of the annotations.
pub const NAMES: [&str; 9] = [
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

/// The annotation that is a number.
pub(super) const SIMILARITY: &str = "doppel_similarity";

/// A record as its file names it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecordName {
    /// The path of its file, as the user named it.
    pub file: Option<String>,
    /// Its own id, or else where it is in the file, such as `line=7`.
    pub id: Option<String>,
}

/// What is said of a record. Nothing of one that was not compared.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Note {
    /// The group of its page, such as `g0-1`.
    pub group: Option<String>,
    /// The winner of that group.
    pub winner: Option<String>,
    /// The record of the winner, where it is one of the inputs.
    pub winner_record: RecordName,
    /// The kept page that its page is a duplicate of.
    pub duplicate_of: Option<String>,
    /// The record of that page, where it is one of the inputs.
    pub duplicate_of_record: RecordName,
    /// How similar it is to that, by the measure of the policy.
    pub similarity: Option<f64>,
    /// Why it is removed.
    pub reason: Option<&'static str>,
}

impl Note {
    /// The values in the order of [`NAMES`].
    pub(super) fn values(&self) -> [Option<String>; NAMES.len()] {
        let Self { group, winner, winner_record, duplicate_of, duplicate_of_record, similarity, reason } =
            self.clone();
        let similarity = similarity.map(|of| of.to_string());
        let RecordName { file: winner_file, id: winner_id } = winner_record;
        let RecordName { file, id } = duplicate_of_record;
        let reason = reason.map(str::to_owned);
        [group, winner, winner_file, winner_id, duplicate_of, file, id, similarity, reason]
    }

    /// Appends them as fields to the JSON object that a line is; none where it has such fields already. All else of the line
    /// stays as it is.
    pub(super) fn in_json(&self, line: &[u8]) -> Option<Vec<u8>> {
        let end = memchr::memrchr(b'}', line)?;
        let (object, rest) = line.split_at(end);
        let has = |name: &str| {
            let quoted = format!("\"{name}\"");
            memmem::find_iter(object, &quoted)
                .any(|at| object[at + quoted.len()..].trim_ascii_start().starts_with(b":"))
        };
        if NAMES.into_iter().any(has) {
            return None;
        }
        let fields = serde_json::to_vec(&Fields(self)).ok()?;
        let is_empty = object.trim_ascii_end().ends_with(b"{");
        let separator: &[u8] = if is_empty { b"" } else { b"," };
        // Without the brace that opens it, and the one that closes it, which is that of the line.
        Some([object, separator, &fields[1..fields.len() - 1], rest].concat())
    }

    /// Appends them as cells to the row of a table.
    pub(super) fn in_row(&self, row: &[u8], separator: u8) -> Vec<u8> {
        let values = self.values().map(Option::unwrap_or_default);
        with_cells(row, separator, values.iter().map(String::as_str))
    }
}

/// A note as the fields of a JSON object.
struct Fields<'n>(&'n Note);

impl Serialize for Fields<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(NAMES.len()))?;
        for (name, value) in NAMES.into_iter().zip(self.0.values()) {
            // A number is a number.
            if name == SIMILARITY {
                map.serialize_entry(name, &self.0.similarity)?;
            } else {
                map.serialize_entry(name, &value)?;
            }
        }
        map.end()
    }
}

/// A row with more cells at its end.
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

    fn note() -> Note {
        let text = |text: &str| Some(text.to_owned());
        Note {
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
    fn fields_follow_those_of_a_line_that_stays_as_it_is() {
        let line = b"\xef\xbb\xbf { \"a\" : 1.50, \"b\": \"}\" } \r\n";
        let noted = String::from_utf8(note().in_json(line).unwrap()).unwrap();
        assert_eq!(
            noted,
            "\u{feff} { \"a\" : 1.50, \"b\": \"}\" ,\"doppel_group\":\"g0-1\",\"doppel_winner\":\"http://a/\\\"x\\\",y\",\
             \"doppel_winner_file\":\"a.jsonl\",\"doppel_winner_id\":\"7\",\"doppel_duplicate_of\":null,\
             \"doppel_duplicate_of_file\":null,\"doppel_duplicate_of_id\":null,\"doppel_similarity\":0.5,\"doppel_reason\":\"duplicate\"} \r\n"
        );
        assert!(serde_json::from_str::<serde_json::Value>(noted.trim_start_matches('\u{feff}')).is_ok());
        assert_eq!(note().in_json(noted.as_bytes()), None, "they are there");
        let empty = Note::default().in_json(b"{}").unwrap();
        assert!(empty.starts_with(b"{\"doppel_group\":null,") && empty.ends_with(b":null}"));
        let quoted = br#"{"text": "\"doppel_group\": 1"}"#;
        assert!(note().in_json(quoted).is_some(), "a text may name a field");
    }

    #[test]
    fn cells_follow_those_of_a_row() {
        let noted = note().in_row(b"1;\"2\n\";3\r\n", b';');
        assert_eq!(noted, b"1;\"2\n\";3;g0-1;\"http://a/\"\"x\"\",y\";a.jsonl;7;;;;0.5;duplicate\r\n");
        assert_eq!(Note::default().in_row(b"1", b','), b"1,,,,,,,,,");
        assert_eq!(with_cells(b"a\n", b'\t', ["b c"].into_iter()), b"a\tb c\n");
    }
}
