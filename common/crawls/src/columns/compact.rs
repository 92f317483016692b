//! The compact protocol of Thrift, in which Parquet describes files and pages.

use std::io::{ErrorKind, Read};

use crate::error::Reason;

/// Types of fields in the compact protocol.
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
pub(super) struct Compact<R> {
    input: R,
}

impl<R: Read> Compact<R> {
    pub(super) fn new(input: R) -> Self {
        Self { input }
    }

    /// Hands every field of a structure over, with its number and type, to be read.
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

    /// The number and type of the field behind that of the number `before`, or behind the beginning of a structure, which is 0. `None` at the end.
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
                        // In a list these have a byte.
                        kind::TRUE | kind::FALSE => self.byte().map(drop)?,
                        kind => self.skip(kind, depth)?,
                    }
                }
                Ok(())
            }
            kind::STRUCT => self.fields(|compact, _, kind| compact.skip(kind, depth)),
            // Nothing that is read has a map.
            _ => Err(damaged()),
        }
    }

    /// The beginning of a list: the type of its elements, and how many there are.
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

    /// A number that is not negative.
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

/// What is said of damage in what the protocol describes.
pub(super) fn damaged() -> Reason {
    Reason::Columns("the description of the file or of a page is damaged".to_owned())
}
