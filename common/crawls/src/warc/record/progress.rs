//! Where a reader of records is, and what it has read and skipped.

use super::{Records, State};

impl Records {
    /// How many unpacked bytes were skipped behind the beginning of the last broken record, up to the next one or the end.
    pub(in super::super) fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Whether there was damage or a failure, and nothing behind it could be read.
    pub(in super::super) fn broke_off(&self) -> bool {
        self.damaged && matches!(self.state, State::Ended)
    }

    /// Number of stored bytes read.
    pub(crate) fn bytes_read(&self) -> u64 {
        self.stream.bytes_read()
    }

    /// The file offset of the current record, or of the broken one.
    pub(in super::super) fn offset(&self) -> u64 {
        self.offset
    }

    /// How many unpacked bytes are in front of the current record, or of the broken one. `None` if it is the first of a compressed member;
    /// if all of the file is deflated, the file is one member.
    pub(in super::super) fn offset_unpacked(&self, is_deflated: bool) -> Option<u64> {
        let first = if is_deflated { 0 } else { self.member.filter(|(member, _)| *member == self.offset)?.1 };
        (first < self.begun).then_some(self.begun)
    }

    /// Number of unpacked bytes read.
    pub(in super::super) fn unpacked(&self) -> u64 {
        self.stream.consumed()
    }
}
