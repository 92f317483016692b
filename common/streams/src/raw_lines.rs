//! [`RawLines`]: the lines of a text file of any compression, each up to a size limit.
//!
//! The reader never buffers more than one line of the maximum size. A longer line gives an error, and the
//! reader continues with the next line.

use super::error::Reason;
use super::limits::{Limits, too_large};
use super::stream::Stream;

/// Reads the lines of a file.
pub struct RawLines {
    stream: Stream,
    limits: Limits,
    line: Vec<u8>,
    number: u64,
    ended: bool,
    broke_off: bool,
    /// Damage behind the last line, which the reader reports after that line.
    damage: Option<Reason>,
}

impl RawLines {
    /// Creates a reader of the lines of `stream`. A line may have at most [`Limits::line_bytes_max`] bytes.
    #[must_use]
    pub fn new(stream: Stream, limits: Limits) -> Self {
        let line = Vec::new();
        Self { stream, limits, line, number: 0, ended: false, broke_off: false, damage: None }
    }

    /// The last line read, with its line feed.
    pub fn last_line(&self) -> &[u8] {
        &self.line
    }

    /// Whether reading ended before the end of the file, because of damage or because the caller called
    /// [`break_off`](Self::break_off).
    pub fn broke_off(&self) -> bool {
        self.broke_off
    }

    /// Stops reading, because the caller cannot use the rest of the file.
    pub fn break_off(&mut self) {
        (self.ended, self.broke_off) = (true, true);
    }

    /// Number of stored bytes read.
    pub fn bytes_read(&self) -> u64 {
        self.stream.bytes_read()
    }

    /// Returns the next line and its number, counted from 1. `None` at the end of the file; an error if the
    /// line is too long or damaged.
    ///
    /// If damage interrupts a line, `is_whole` tells whether the bytes before the damage are a complete line
    /// without a line feed. A complete line is returned before the damage. An incomplete line is dropped, and
    /// only the damage is returned.
    pub fn next(&mut self, is_whole: impl Fn(&[u8]) -> bool) -> Option<(u64, Result<&[u8], Reason>)> {
        if self.ended {
            let damage = self.damage.take()?;
            self.number += 1;
            return Some((self.number, Err(damage)));
        }
        match self.read(is_whole) {
            Ok(false) => None,
            Ok(true) => Some((self.number, Ok(&self.line))),
            Err(reason) => Some((self.number, Err(reason))),
        }
    }

    /// Reads the next line up to the limit. Returns false at the end of the file.
    fn read(&mut self, is_whole: impl Fn(&[u8]) -> bool) -> Result<bool, Reason> {
        self.line.clear();
        self.number += 1;
        let mut length = 0_u64;
        loop {
            match self.read_piece(&mut length) {
                Ok(true) => {}
                Ok(false) => break,
                Err(damage) => {
                    (self.ended, self.broke_off) = (true, true);
                    if length != self.line.len() as u64 || !is_whole(&self.line) {
                        return Err(damage);
                    }
                    self.damage = Some(damage);
                    break;
                }
            }
        }
        too_large("a line", length, self.limits.line_bytes_max)?;
        Ok(length > 0)
    }

    /// Consumes the available bytes of the line, and adds their number to `length`. Stores the bytes only
    /// while the line is within its limit. Returns false at the end of the line or of the file.
    fn read_piece(&mut self, length: &mut u64) -> Result<bool, Reason> {
        let data = self.stream.data()?;
        if data.is_empty() {
            self.ended = !self.stream.next_member()?;
            return Ok(!self.ended);
        }
        let end = memchr::memchr(b'\n', data);
        let bytes = end.map_or(data.len(), |at| at + 1);
        *length += bytes as u64;
        if *length <= self.limits.line_bytes_max as u64 {
            self.line.extend_from_slice(&data[..bytes]);
        }
        self.stream.consume(bytes);
        Ok(end.is_none())
    }
}
