//! A reader of Thrift's compact protocol, in which Parquet files describe themselves and their pages.
//!
//! The checks of what a file declares ([`check_schema`](super::parquet_schema::check_schema),
//! [`PageHeader`](super::page_headers::PageHeader)) read the descriptions with it. It takes no memory for
//! values that it skips.

use doppel_streams::Reason;
use std::io::{ErrorKind, Read};

/// The types of fields in the compact protocol.
pub(super) mod kind {
    pub(in super::super) const STOP: u8 = 0;
    pub(in super::super) const TRUE: u8 = 1;
    pub(in super::super) const FALSE: u8 = 2;
    pub(in super::super) const BYTE: u8 = 3;
    pub(in super::super) const I16: u8 = 4;
    pub(in super::super) const I32: u8 = 5;
    pub(in super::super) const I64: u8 = 6;
    pub(in super::super) const DOUBLE: u8 = 7;
    pub(in super::super) const BINARY: u8 = 8;
    pub(in super::super) const LIST: u8 = 9;
    pub(in super::super) const SET: u8 = 10;
    pub(in super::super) const STRUCT: u8 = 12;
}

/// A reader of the compact protocol.
pub(super) struct CompactReader<R> {
    input: R,
}

impl<R: Read> CompactReader<R> {
    pub(super) fn new(input: R) -> Self {
        Self { input }
    }

    /// Reads a structure. Calls `each` with the number and the type of every field, and `each` must read or
    /// skip the value.
    pub(super) fn fields(
        &mut self,
        mut each: impl FnMut(&mut Self, i16, u8) -> Result<(), Reason>,
    ) -> Result<(), Reason> {
        let mut number = 0;
        while let Some((next, kind)) = self.field(number)? {
            number = next;
            each(self, number, kind)?;
        }
        Ok(())
    }

    /// Reads the number and the type of the next field of a structure. `before` is the number of the previous
    /// field, or 0 for the first one. `None` at the end of the structure.
    pub(super) fn field(&mut self, before: i16) -> Result<Option<(i16, u8)>, Reason> {
        let byte = self.byte()?;
        let kind = byte & 0xf;
        if kind == kind::STOP {
            return Ok(None);
        }
        let number = match byte >> 4 {
            0 => i16::try_from(self.signed()?).map_err(|_| damaged())?,
            step => before.checked_add(i16::from(step)).ok_or_else(damaged)?,
        };
        Ok(Some((number, kind)))
    }

    /// Skips a value of the type `kind` that is nested at most `depth` deep.
    pub(super) fn skip(&mut self, kind: u8, depth: u32) -> Result<(), Reason> {
        let depth = depth.checked_sub(1).ok_or_else(damaged)?;
        match kind {
            kind::TRUE | kind::FALSE => Ok(()),
            kind::BYTE => self.byte().map(drop),
            kind::I16 | kind::I32 | kind::I64 => self.varint().map(drop),
            kind::DOUBLE => self.skip_bytes(8),
            kind::BINARY => {
                let bytes = self.varint()?;
                self.skip_bytes(bytes)
            }
            kind::LIST | kind::SET => {
                let (kind, length) = self.list()?;
                for _ in 0..length {
                    match kind {
                        // In a list, unlike in a field, each truth value takes a byte.
                        kind::TRUE | kind::FALSE => self.byte().map(drop)?,
                        kind => self.skip(kind, depth)?,
                    }
                }
                Ok(())
            }
            kind::STRUCT => self.fields(|reader, _, kind| reader.skip(kind, depth)),
            // The structures that are read here contain no maps.
            _ => Err(damaged()),
        }
    }

    /// Reads the beginning of a list: the type of its elements, then their number.
    pub(super) fn list(&mut self) -> Result<(u8, u64), Reason> {
        let byte = self.byte()?;
        let length = match byte >> 4 {
            0xf => self.varint()?,
            length => length.into(),
        };
        Ok((byte & 0xf, length))
    }

    pub(super) fn skip_bytes(&mut self, bytes: u64) -> Result<(), Reason> {
        let skipped = std::io::copy(&mut (&mut self.input).take(bytes), &mut std::io::sink());
        if skipped.map_err(Reason::Io)? == bytes { Ok(()) } else { Err(Reason::Truncated) }
    }

    /// Reads an integer of at most 31 bits that must not be negative.
    pub(super) fn number(&mut self) -> Result<u32, Reason> {
        i32::try_from(self.signed()?).ok().and_then(|number| u32::try_from(number).ok()).ok_or_else(damaged)
    }

    pub(super) fn signed(&mut self) -> Result<i64, Reason> {
        let number = self.varint()?;
        Ok((number >> 1).cast_signed() ^ -(number & 1).cast_signed())
    }

    pub(super) fn varint(&mut self) -> Result<u64, Reason> {
        let mut number = 0;
        for shift in (0..63).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(damaged())
    }

    pub(super) fn byte(&mut self) -> Result<u8, Reason> {
        let mut byte = [0];
        self.input.read_exact(&mut byte).map_err(|error| match error.kind() {
            ErrorKind::UnexpectedEof => Reason::Truncated,
            _ => Reason::Io(error),
        })?;
        Ok(byte[0])
    }
}

/// The error for a description that is damaged.
pub(super) fn damaged() -> Reason {
    Reason::Columns("the description of the file or of a page is damaged".to_owned())
}
