//! Accessors for the progress of a [`RecordReader`]: its position, and what it has read and skipped.

use super::{RecordReader, State};

impl RecordReader {
    /// Number of unpacked bytes skipped from the beginning of the last broken record to the next record, or
    /// to the end.
    pub(in super::super) fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Whether damage or a failure ended the reading before the end of the file.
    pub(in super::super) fn broke_off(&self) -> bool {
        self.is_damaged && matches!(self.state, State::Ended)
    }

    /// Number of stored bytes read.
    pub(crate) fn bytes_read(&self) -> u64 {
        self.stream.bytes_read()
    }

    /// File offset of the current record, or of the broken one.
    pub(in super::super) fn offset(&self) -> u64 {
        self.offset
    }

    /// Number of unpacked bytes before the current record, or before the broken one. `None` for the first
    /// record of a compressed member. A deflated file counts as one member.
    pub(in super::super) fn offset_unpacked(&self, is_deflated: bool) -> Option<u64> {
        let first = if is_deflated { 0 } else { self.member.filter(|(member, _)| *member == self.offset)?.1 };
        (first < self.consumed_before).then_some(self.consumed_before)
    }

    /// Number of unpacked bytes read.
    pub(in super::super) fn unpacked(&self) -> u64 {
        self.stream.consumed()
    }
}
