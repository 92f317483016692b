//! What a group's row counts of its members, and whether they must be told of another winner.

use doppel_model::PageId;

use crate::record::{Cover, Group, Member};

impl Group {
    pub(super) fn count(&mut self, member: &Member) {
        self.members += 1;
        self.with_inbound_redirects += u64::from(member.has_inbound_redirects);
        self.dissimilar += u64::from(member.dissimilar);
        self.secondaries += u64::from(member.is_secondary());
    }

    pub(super) fn uncount(&mut self, member: &Member) {
        self.members -= 1;
        self.with_inbound_redirects -= u64::from(member.has_inbound_redirects);
        self.dissimilar -= u64::from(member.dissimilar);
        self.secondaries -= u64::from(member.is_secondary());
    }

    /// Whether members must be told: another page, or another content of it.
    pub(super) fn winner_changed(&self, before: Option<&(PageId, Member)>) -> bool {
        let told = |w: &(PageId, Member)| (w.0, w.1.content);
        self.winner.as_ref().map(told) != before.map(told)
    }
}

impl Member {
    /// Whether it differs from the winner, and is not known to be a duplicate of another kept page.
    pub(crate) fn is_secondary(&self) -> bool {
        self.dissimilar && !matches!(self.cover, Cover::By(..))
    }
}
