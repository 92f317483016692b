//! What a group's row counts of its members.

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
}

impl Member {
    /// Whether it differs from the winner, and is not known to be a duplicate of another kept page.
    pub(crate) fn is_secondary(&self) -> bool {
        self.dissimilar && !matches!(self.cover, Cover::By(..))
    }
}
