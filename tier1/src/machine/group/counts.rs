//! Counters in a group's row that summarise its members' rows.
//!
//! Invariant: the counters equal the sums over the member rows of the group. A handler replaces a row by
//! removing the old row from the counters and then adding the new row.

use crate::rows::record::{Cover, Group, Member};

impl Group {
    /// Adds a member's row to the counters.
    pub(in crate::machine) fn count(&mut self, member: &Member) {
        self.members += 1;
        self.with_inbound_redirects += u64::from(member.has_inbound_redirects);
        self.dissimilar += u64::from(member.dissimilar);
        self.secondaries += u64::from(member.is_secondary());
    }

    /// Removes a member's row from the counters.
    pub(in crate::machine) fn uncount(&mut self, member: &Member) {
        self.members -= 1;
        self.with_inbound_redirects -= u64::from(member.has_inbound_redirects);
        self.dissimilar -= u64::from(member.dissimilar);
        self.secondaries -= u64::from(member.is_secondary());
    }
}

impl Member {
    /// Returns whether the member differs from the winner and is not known to be a duplicate of another kept
    /// page.
    pub(crate) fn is_secondary(&self) -> bool {
        self.dissimilar && !matches!(self.cover, Cover::By(..))
    }
}
