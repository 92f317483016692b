//! The service around the ranges: their threads, their queues, and the calls of the coordinator, of tier 2
//! and of other nodes.
//!
//! Every part of the service is a module with a type of its own, which keeps the state that this part needs:
//! - [`ownership`]: which ranges this process owns, and whether it accepts writes;
//! - [`writer`]: the only thread that changes a range;
//! - [`submissions`]: the way of pages to the writers;
//! - [`questions`]: reads for callers, from any range;
//! - [`upkeep`]: work that no caller waits for;
//! - [`replication`]: the replicas of a node;
//! - [`index_side`]: what tier 2 sees of tier 1;
//! - [`backups`]: backups while the service runs.
//!
//! [`Tier1`] holds these parts and hands each call to one of them. Only [`open`] and [`lifecycle`] name all
//! parts, because they create them and start and end their threads.

mod api;
mod backups;
mod content_source;
mod flush;
mod index_side;
mod lifecycle;
mod open;
mod ownership;
mod questions;
mod range_owner;
mod replication;
#[cfg(feature = "simulation")]
mod simulated;
mod submissions;
#[cfg(test)]
mod tests;
pub(crate) mod upkeep;
mod writer;

pub use index_side::index_state::IndexStateRows;
pub use open::{Config, Error};
#[cfg(feature = "simulation")]
pub(crate) use ownership::feed_extents::extent;
pub use ownership::ranges::OtherRanges;
pub use replication::{Keeper, ReplicatedRange, ReplicationConfig};

use std::ops::Deref;
use std::sync::Arc;

use doppel_contract::Counters;
use doppel_model::RangeId;
use doppel_protocol::range_owner::{PeerError, RangeOwner};
use doppel_protocol::{StoredSignatures, Tier1Error};

use crate::rows::totals;
use crate::storage::store::{ErrorClass, StoreError};
use backups::Backups;
use index_side::IndexSide;
use lifecycle::Lifecycle;
use ownership::OwnedRanges;
use ownership::collection::CollectionFacts;
use ownership::owner::Owner;
use questions::Questions;
use submissions::Submissions;
use upkeep::Upkeep;

/// Tier 1 of one process, which owns all ranges of a collection or some.
///
/// It reaches the ranges of other processes through [`RangeOwner`], so every process answers every question.
/// The ranges that it owns may change while it runs.
pub struct Tier1 {
    collection: CollectionFacts,
    owned: Arc<OwnedRanges>,
    questions: Questions,
    submissions: Submissions,
    upkeep: Arc<Upkeep>,
    index_side: IndexSide,
    backups: Backups,
    lifecycle: Lifecycle,
}

impl Tier1 {
    /// Counters of the ranges that this process owns.
    #[must_use]
    pub fn own_counters(&self) -> Counters {
        totals::add(self.owned.ranges.owners().iter().map(|owner| owner.totals())).0
    }

    /// Bytes of the databases on disk.
    #[must_use]
    pub fn bytes_on_disk(&self) -> u64 {
        self.owned.ranges.all_owners().iter().map(|owner| owner.store.bytes_on_disk()).sum()
    }

    /// The signatures on this machine, for an index beside tier 1. `None` if a range has no database, or if
    /// another process owns a range or may come to own one.
    #[must_use]
    pub fn stored_signatures(&self) -> Option<Arc<dyn StoredSignatures>> {
        self.index_side.stored_signatures()
    }

    /// The durable items of the router of the index, which sits in the process that owns the first range.
    ///
    /// # Errors
    /// If this process does not own the first range at present.
    pub fn index_state(&self) -> Result<IndexStateRows, Tier1Error> {
        self.index_side.state_rows()
    }

    /// Fails while this process accepts no writes.
    fn check(&self) -> Result<(), Tier1Error> {
        self.owned.refusals.check()
    }

    /// The owner of a range, if this process owns it and may answer for it.
    fn answering_owner(&self, range: RangeId) -> Result<Arc<Owner>, PeerError> {
        self.owned.ranges.answering_owner(range)
    }

    /// The node that owns a range: this process, or another one that the directory knows.
    fn node_of(&self, range: RangeId) -> Result<RangeNode<'_>, PeerError> {
        if self.owned.ranges.local_owner(range).is_some() {
            return Ok(RangeNode::Local(self));
        }
        Ok(RangeNode::Remote(self.owned.ranges.remote_owner(range)?))
    }
}

/// The node that owns a range.
enum RangeNode<'t> {
    Local(&'t Tier1),
    Remote(Arc<dyn RangeOwner>),
}

impl Deref for RangeNode<'_> {
    type Target = dyn RangeOwner;

    fn deref(&self) -> &Self::Target {
        match self {
            Self::Local(tier1) => *tier1,
            Self::Remote(other) => &**other,
        }
    }
}

impl From<StoreError> for Tier1Error {
    fn from(error: StoreError) -> Self {
        let what = error.to_string();
        match error.class() {
            ErrorClass::DiskFull => Self::DiskFull(what),
            ErrorClass::Damage => Self::Damaged(what),
            ErrorClass::Transient => Self::Unavailable(what),
            ErrorClass::Failure => Self::ReadOnly(what),
        }
    }
}
