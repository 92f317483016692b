//! What is written beside a record with annotations, in the ways of text formats.

use memchr::memmem;
use serde::Serialize;

/// The names of the annotations.
pub const NAMES: [&str; 5] =
    ["doppel_group", "doppel_winner", "doppel_duplicate_of", "doppel_similarity", "doppel_reason"];

/// What is said of a record. Nothing of one that was not compared.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Note {
    /// The group of its page, such as `g0-1`.
    #[serde(rename = "doppel_group")]
    pub group: Option<String>,
    /// The winner of that group.
    #[serde(rename = "doppel_winner")]
    pub winner: Option<String>,
    /// The kept page that its page is a duplicate of.
    #[serde(rename = "doppel_duplicate_of")]
    pub duplicate_of: Option<String>,
    /// How similar it is to that, by the measure of the policy.
    #[serde(rename = "doppel_similarity")]
    pub similarity: Option<f64>,
    /// Why it is removed.
    #[serde(rename = "doppel_reason")]
    pub reason: Option<&'static str>,
}

impl Note {
    /// The values in the order of [`NAMES`].
    pub(super) fn values(&self) -> [Option<String>; NAMES.len()] {
        let Self { group, winner, duplicate_of, similarity, reason } = self.clone();
        [group, winner, duplicate_of, similarity.map(|of| of.to_string()), reason.map(str::to_owned)]
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
        let fields = serde_json::to_vec(self).ok()?;
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
            duplicate_of: None,
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
             \"doppel_duplicate_of\":null,\"doppel_similarity\":0.5,\"doppel_reason\":\"duplicate\"} \r\n"
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
        assert_eq!(noted, b"1;\"2\n\";3;g0-1;\"http://a/\"\"x\"\",y\";;0.5;duplicate\r\n");
        assert_eq!(Note::default().in_row(b"1", b','), b"1,,,,,");
        assert_eq!(with_cells(b"a\n", b'\t', ["b c"].into_iter()), b"a\tb c\n");
    }
}
