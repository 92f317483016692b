//! What a group's row counts of its members, and whether they must be told of another winner.

use doppel_model::PageId;

use crate::record::{Group, Member};

impl Group {
    pub(super) fn count(&mut self, member: &Member) {
        self.members += 1;
        self.with_inbound_redirects += u64::from(member.has_inbound_redirects);
        self.dissimilar += u64::from(member.dissimilar);
    }

    pub(super) fn uncount(&mut self, member: &Member) {
        self.members -= 1;
        self.with_inbound_redirects -= u64::from(member.has_inbound_redirects);
        self.dissimilar -= u64::from(member.dissimilar);
    }

    /// Whether members must be told: another page, or another content of it.
    pub(super) fn winner_changed(&self, before: Option<&(PageId, Member)>) -> bool {
        let told = |w: &(PageId, Member)| (w.0, w.1.content);
        self.winner.as_ref().map(told) != before.map(told)
    }
}
