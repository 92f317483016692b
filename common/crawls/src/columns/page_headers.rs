//! The headers of the pages in a Parquet file, in the compact protocol of Thrift: what they say of sizes and counts, which is
//! looked at before anything is decoded.

use std::io::Read;

use super::compact::{Compact, damaged, kind};
use crate::error::Reason;

/// The deepest nesting of a header that is read.
const DEPTH_MAX: u32 = 8;

/// The number of the encoding in which values share their beginnings.
const DELTA_BYTE_ARRAY: u32 = 7;

/// What the header of a page says.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct PageHeader {
    /// Bytes of the page as it is stored, behind the header.
    pub(super) stored: u32,
    /// Bytes of the page as it is unpacked.
    pub(super) unpacked: u32,
    /// Bytes at its beginning that are never compressed.
    pub(super) levels: u32,
    /// How many values it has, also of those that are null.
    pub(super) values: u32,
    /// Whether each value may repeat the beginning of the one before.
    pub(super) shares_beginnings: bool,
}

impl PageHeader {
    /// Reads a header.
    ///
    /// # Errors
    /// When it is damaged.
    pub(super) fn read(input: impl Read) -> Result<Self, Reason> {
        let mut compact = Compact::new(input);
        let (mut header, mut seen) = (Self::default(), 0_u32);
        compact.fields(|compact, field, kind| {
            if (1..=8).contains(&field) {
                // The decoder takes the last of several, which no writer makes.
                if seen & (1 << field) != 0 {
                    return Err(damaged());
                }
                seen |= 1 << field;
            }
            match (field, kind) {
                (2, kind::I32) => header.unpacked = compact.number()?,
                (3, kind::I32) => header.stored = compact.number()?,
                (5 | 7 | 8, kind::STRUCT) => header.page(compact, field)?,
                (2 | 3 | 5 | 7 | 8, _) => return Err(damaged()),
                _ => compact.skip(kind, DEPTH_MAX)?,
            }
            Ok(())
        })?;
        // Both sizes are required.
        if seen & 0b1100 == 0b1100 { Ok(header) } else { Err(damaged()) }
    }

    /// The part of a header for pages of one kind: of data, of a dictionary, or of data in the second version.
    fn page<R: Read>(&mut self, compact: &mut Compact<R>, page: i16) -> Result<(), Reason> {
        compact.fields(|compact, field, kind| {
            match (page, field, kind) {
                (_, 1, kind::I32) => self.values = compact.number()?,
                (5, 2, kind::I32) | (8, 4, kind::I32) => {
                    self.shares_beginnings |= compact.number()? == DELTA_BYTE_ARRAY;
                }
                (8, 5 | 6, kind::I32) => self.levels = self.levels.saturating_add(compact.number()?),
                _ => compact.skip(kind, DEPTH_MAX)?,
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
        // Fields 1 and 2, 3, a check sum, and the header of data with 300 values in the encoding 7, and statistics.
        let data = [
            0x15, 0x00, 0x15, 0x80, 0x10, 0x15, 0xc8, 0x01, 0x15, 0x7f, 0x1c, 0x15, 0xd8, 0x04, 0x15, 0x0e,
            0x15, 0x06, 0x15, 0x06, 0x1c, 0x18, 0x02, b'a', b'b', 0x00, 0x00, 0x00, 0xff,
        ];
        let mut rest = &data[..];
        let header = PageHeader::read(&mut rest).unwrap();
        let expected =
            PageHeader { stored: 100, unpacked: 1_024, levels: 0, values: 300, shares_beginnings: true };
        assert_eq!((header, rest), (expected, &[0xff][..]));
        for end in 0..data.len() - 1 {
            assert!(PageHeader::read(&data[..end]).is_err(), "{end}");
        }
        // The second version: field 8, with 10 bytes of levels.
        let second = [
            0x15, 0x06, 0x15, 0x80, 0x10, 0x15, 0xc8, 0x01, 0x5c, 0x15, 0x0a, 0x15, 0x00, 0x15, 0x0a, 0x15,
            0x00, 0x15, 0x0c, 0x15, 0x08, 0x11, 0x00, 0x00,
        ];
        let expected =
            PageHeader { stored: 100, unpacked: 1_024, levels: 10, values: 5, shares_beginnings: false };
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
