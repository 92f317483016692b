//! Writes the position of a record in an input file as fields of a line of JSON.

use doppel_crawls::InputPosition;
use serde::Serialize;

/// Place of a record in its file. At most one field is set. No field is set if the record is the whole file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct PositionFields {
    /// Line of a text file, counted from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u64>,
    /// Row of a table, counted from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    row: Option<u64>,
    /// Byte of the stored file at which a record of a WARC or ARC file begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    byte: Option<u64>,
    /// Byte of the unpacked data at which the record begins. Set for a record that is not the first of its
    /// compressed member.
    #[serde(skip_serializing_if = "Option::is_none")]
    unpacked_byte: Option<u64>,
}

impl From<InputPosition> for PositionFields {
    fn from(position: InputPosition) -> Self {
        match position {
            InputPosition::File => Self::default(),
            InputPosition::Line(line) => Self { line: Some(line), ..Self::default() },
            InputPosition::Row(row) => Self { row: Some(row), ..Self::default() },
            InputPosition::Record(byte) => Self { byte: Some(byte), ..Self::default() },
            InputPosition::Unpacked(byte) => Self { unpacked_byte: Some(byte), ..Self::default() },
        }
    }
}

impl PositionFields {
    /// The field that is set, as text such as `line=7`. `None` if no field is set.
    pub fn text(self) -> Option<String> {
        let Self { line, row, byte, unpacked_byte } = self;
        let fields = [("line", line), ("row", row), ("byte", byte), ("unpacked_byte", unpacked_byte)];
        fields.into_iter().find_map(|(name, at)| Some(format!("{name}={}", at?)))
    }
}
