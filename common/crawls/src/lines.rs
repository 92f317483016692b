//! Reads pages from JSON lines: one page item per line, in the form of `POST /v1/pages`.

use std::path::Path;
use std::sync::Arc;

use super::error::{InputError, Place, Reason};
use super::format::BYTE_ORDER_MARK;
use super::limits::{Limits, too_large};
use super::stream::Stream;
use super::{Fetched, Item};
use doppel_protocol::page::PageItem;

/// The pages of a file of JSON lines. Blank lines are ignored.
pub(super) struct Lines {
    path: Arc<Path>,
    stream: Stream,
    limits: Limits,
    line: Vec<u8>,
    number: u64,
    ended: bool,
    /// Whether damage ended the file.
    broke_off: bool,
    /// The damage, if it is to be reported after the line before it.
    damage: Option<Reason>,
}

impl Lines {
    pub(super) fn open(path: &Arc<Path>, limits: Limits) -> Result<Self, Reason> {
        let stream = Stream::open(path, &limits)?;
        Ok(Self {
            path: Arc::clone(path),
            stream,
            limits,
            line: Vec::new(),
            number: 0,
            ended: false,
            broke_off: false,
            damage: None,
        })
    }

    pub(super) fn broke_off(&self) -> bool {
        self.broke_off
    }

    /// The line that was read last.
    pub(super) fn place(&self) -> Place {
        Place::Line(self.number)
    }

    pub(super) fn bytes_read(&self) -> u64 {
        self.stream.bytes_read()
    }

    /// Reads the next line up to its limit. Returns false at the end of the file.
    fn read_line(&mut self) -> Result<bool, Reason> {
        self.line.clear();
        self.number += 1;
        let mut length = 0_u64;
        loop {
            match self.read_piece(&mut length) {
                Ok(true) => {}
                Ok(false) => break,
                Err(damage) => {
                    (self.ended, self.broke_off) = (true, true);
                    // The last line may be complete without a line feed. If it is not, report only the damage:
                    // the incomplete line adds nothing.
                    let whole = length == self.line.len() as u64 && self.page().is_ok();
                    if !whole {
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

    /// Appends the available bytes to the line and adds their number to `length`. Returns false at the end of
    /// the line.
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

    fn item(&self, page: Result<Fetched, Reason>) -> Item {
        match page {
            Ok(page) => Item::Page(page),
            Err(reason) => {
                Item::Bad(InputError { path: Arc::clone(&self.path), place: self.place(), reason })
            }
        }
    }

    fn page(&self) -> Result<Fetched, Reason> {
        let mark = if self.number == 1 { BYTE_ORDER_MARK } else { b"" };
        let line = self.line.strip_prefix(mark).unwrap_or(&self.line);
        Ok(PageItem::parse(line.trim_ascii_end(), self.limits.now)?.into())
    }
}

impl Iterator for Lines {
    type Item = Item;

    fn next(&mut self) -> Option<Item> {
        while !self.ended {
            let page = match self.read_line() {
                Ok(false) => return None,
                Ok(true) if self.line.trim_ascii().is_empty() => continue,
                Ok(true) => self.page(),
                Err(reason) => Err(reason),
            };
            return Some(self.item(page));
        }
        let damage = self.damage.take()?;
        self.number += 1;
        Some(self.item(Err(damage)))
    }
}
