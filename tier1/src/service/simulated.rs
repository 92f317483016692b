//! What the simulation reaches inside a service whose threads never start: its rows, its feed, and the work
//! of its upkeep.

use std::sync::Arc;

use doppel_model::{GroupId, RangeId};
use doppel_protocol::range_owner::FeedExtent;
use doppel_protocol::{Submission, Tier1Error};

use super::Tier1;
use super::upkeep::Upkeep;
use super::upkeep::cover::FoundCover;
use super::upkeep::recomputation::{Recomputation, RecomputeWhen};
use crate::machine::Hint;
use crate::statuses::Statuses;
use crate::storage::store::Store;

impl Tier1 {
    /// The rows of a range, to write past the range.
    pub(crate) fn store_of(&self, range: RangeId) -> Arc<dyn Store> {
        Arc::clone(&self.answering_owner(range).expect("this process owns the range").store)
    }

    /// The status tables, which the simulation always keeps.
    pub(crate) fn statuses(&self) -> &Statuses {
        self.questions.statuses.as_ref().expect("the configuration asks for status tables")
    }

    /// Sets how far the feed of every shard extends.
    pub(crate) fn set_feed(&self, extents: Vec<FeedExtent>) {
        *self.owned.feed.lock() = extents;
    }

    /// Compares submissions with the representatives of their pages.
    pub(crate) fn hints(&self, submissions: &[Submission]) -> Vec<Option<Hint>> {
        self.submissions.hints(submissions)
    }

    /// The upkeep, for comparisons of members with their winners.
    pub(crate) fn upkeep(&self) -> &Upkeep {
        &self.upkeep
    }

    /// Recomputes a group. `None` if the group is not active or owes no recomputation.
    pub(crate) fn recompute(
        &self,
        group: GroupId,
        when: RecomputeWhen,
    ) -> Result<Option<Recomputation>, Tier1Error> {
        self.upkeep.recompute(group, when)
    }

    /// Finds the cover of a group. `None` if the group is not active or owes no cover.
    pub(crate) fn find_cover(&self, group: GroupId) -> Result<Option<FoundCover>, Tier1Error> {
        self.upkeep.find_cover(group)
    }
}
