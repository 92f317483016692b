//! Reads the header of a page of a Parquet column: the sizes and counts that the page declares. They are
//! checked before the page is decoded. Headers are in Thrift's compact protocol.
//!
//! A header that declares a size or a part twice is refused. The decoder would use the last one, so the check
//! and the decoder could disagree.

use std::io::Read;

use super::compact::{CompactReader, damaged, kind};
use doppel_streams::Reason;

/// The deepest nesting of a header. A header that is nested deeper counts as damaged.
const DEPTH_MAX: u32 = 8;

/// The number of Parquet's encoding `DELTA_BYTE_ARRAY`, in which a value shares a prefix with the value
/// before it.
const DELTA_BYTE_ARRAY: u32 = 7;

/// The sizes and counts that the header of a page declares.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct PageHeader {
    /// The size of the stored page in bytes, without the header.
    pub(super) stored: u32,
    /// The size of the unpacked page in bytes.
    pub(super) unpacked: u32,
    /// The size in bytes of the levels at the beginning of the page, which are never compressed. Only pages
    /// of version 2 have them.
    pub(super) levels: u32,
    /// The number of values, nulls included.
    pub(super) values: u32,
    /// Whether each value may share a prefix with the value before it, so that it can be as long as the whole
    /// page.
    pub(super) shares_prefixes: bool,
}

impl PageHeader {
    /// Reads a header.
    ///
    /// # Errors
    /// If the header is damaged or incomplete.
    pub(super) fn read(input: impl Read) -> Result<Self, Reason> {
        let mut reader = CompactReader::new(input);
        // One bit for each field number that was read.
        let (mut header, mut read_fields) = (Self::default(), 0_u32);
        reader.fields(|reader, field, kind| {
            if (1..=8).contains(&field) {
                // If a field is repeated, the decoder uses the last one. No writer repeats a field.
                if read_fields & (1 << field) != 0 {
                    return Err(damaged());
                }
                read_fields |= 1 << field;
            }
            match (field, kind) {
                (2, kind::I32) => header.unpacked = reader.number()?,
                (3, kind::I32) => header.stored = reader.number()?,
                (5 | 7 | 8, kind::STRUCT) => header.read_part(reader, field)?,
                (2 | 3 | 5 | 7 | 8, _) => return Err(damaged()),
                _ => reader.skip(kind, DEPTH_MAX)?,
            }
            Ok(())
        })?;
        // Both sizes, fields 2 and 3, are required.
        if read_fields & 0b1100 == 0b1100 { Ok(header) } else { Err(damaged()) }
    }

    /// Reads the part of a header for one kind of page. `part` is its field number: 5 for data, 7 for a
    /// dictionary, and 8 for data of version 2.
    fn read_part<R: Read>(&mut self, reader: &mut CompactReader<R>, part: i16) -> Result<(), Reason> {
        reader.fields(|reader, field, kind| {
            match (part, field, kind) {
                (_, 1, kind::I32) => self.values = reader.number()?,
                (5, 2, kind::I32) | (8, 4, kind::I32) => {
                    self.shares_prefixes |= reader.number()? == DELTA_BYTE_ARRAY;
                }
                (8, 5 | 6, kind::I32) => self.levels = self.levels.saturating_add(reader.number()?),
                _ => reader.skip(kind, DEPTH_MAX)?,
            }
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_counts_and_encodings_are_read() {
        // The fields 1 to 3, a checksum, and the part for data: 300 values in the encoding 7, and statistics.
        let data = [
            0x15, 0x00, 0x15, 0x80, 0x10, 0x15, 0xc8, 0x01, 0x15, 0x7f, 0x1c, 0x15, 0xd8, 0x04, 0x15, 0x0e,
            0x15, 0x06, 0x15, 0x06, 0x1c, 0x18, 0x02, b'a', b'b', 0x00, 0x00, 0x00, 0xff,
        ];
        let mut rest = &data[..];
        let header = PageHeader::read(&mut rest).unwrap();
        let expected =
            PageHeader { stored: 100, unpacked: 1_024, levels: 0, values: 300, shares_prefixes: true };
        assert_eq!((header, rest), (expected, &[0xff][..]));
        for end in 0..data.len() - 1 {
            assert!(PageHeader::read(&data[..end]).is_err(), "{end}");
        }
        // Data of version 2, in field 8, with 10 bytes of levels.
        let second = [
            0x15, 0x06, 0x15, 0x80, 0x10, 0x15, 0xc8, 0x01, 0x5c, 0x15, 0x0a, 0x15, 0x00, 0x15, 0x0a, 0x15,
            0x00, 0x15, 0x0c, 0x15, 0x08, 0x11, 0x00, 0x00,
        ];
        let expected =
            PageHeader { stored: 100, unpacked: 1_024, levels: 10, values: 5, shares_prefixes: false };
        assert_eq!(PageHeader::read(&second[..]).unwrap(), expected);
    }

    #[test]
    fn damaged_headers_are_refused() {
        let negative = [0x15, 0x00, 0x15, 0x01, 0x15, 0x02, 0x00];
        let twice = [0x25, 0x02, 0x15, 0x02, 0x05, 0x04, 0xff, 0x01, 0x00];
        let without_size = [0x15, 0x00, 0x15, 0x02, 0x00];
        let text_for_a_size = [0x28, 0x01, b'x', 0x15, 0x02, 0x00];
        let endless = [0xff; 32];
        let deep = [0x9c; 64];
        let cases: [&[u8]; 6] = [&negative, &twice, &without_size, &text_for_a_size, &endless, &deep];
        for (number, case) in cases.into_iter().enumerate() {
            assert!(PageHeader::read(case).is_err(), "{number}");
        }
    }
}
