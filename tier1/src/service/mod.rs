//! The service around the ranges: threads, queues, and the one front door over all of them.
//!
//! Each range has one writer thread, which owns its shards. Callers hand it tasks over a channel and wait for the
//! commit; while one commit is flushed the next tasks gather, so load makes the commits larger by itself.

mod api;
mod asked;
mod audit;
mod background;
mod backup;
mod changes;
mod content_source;
pub(crate) mod cover;
mod deliveries;
mod feed;
mod figures;
mod flush;
mod free_room;
mod group_work;
mod groups;
mod hint;
mod index_state;
pub(crate) mod job;
mod keeper;
mod members;
mod open;
pub(crate) mod owner;
mod ownership;
mod queue;
mod range_backups;
mod range_owner;
mod ranges;
mod read;
mod refusals;
pub(crate) mod repair;
mod room;
mod rows;
mod sender;
mod statuses;
mod stored_signatures;
mod stuck;
mod sweep;
mod task;
#[cfg(test)]
mod tests;
mod throttle;
mod winner_signatures;
pub(crate) mod worker;
mod writer;

#[cfg(feature = "simulation")]
pub(crate) use feed::extent;
pub use index_state::IndexStateRows;
pub use keeper::{Keeper, ReplicatedRange, Replication};
pub use open::{Config, Error};
pub use ranges::OtherRanges;

use std::ops::Deref;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use doppel_model::{PageId, RangeId, ShardId};
use doppel_protocol::range_owner::{FeedExtent, PeerError, RangeOwner};

use crate::machine::Settings;
use crate::peers::Peers;
use crate::statuses::Statuses;
use crate::store::{ErrorClass, StoreError};
use crate::totals;
use deliveries::Deliveries;
use doppel_contract::{Backlog, Counters};
use doppel_protocol::{RangeMap, Tier1Error};
use owner::Owner;
use ownership::Phase;
use range_backups::RangeBackups;
use ranges::Ranges;
use refusals::Refusals;
use room::{Arrivals, Rooms};
use rows::Rows;
use winner_signatures::WinnerSignatures;

/// Tier 1 of one process: ranges of a collection, all of them or some. Those of other processes are reached through
/// [`RangeOwner`], so that every question may be asked of every process. Which ranges it has may change while it runs.
pub struct Tier1 {
    settings: Settings,
    map: RangeMap,
    /// Those that it owns at present, and whoever owns the others.
    ranges: Arc<Ranges>,
    deliveries: Deliveries,
    range_backups: RangeBackups,
    peers: Arc<dyn Peers>,
    /// What is mostly asked of pages; none where nobody asks.
    pub(crate) statuses: Option<Statuses>,
    pub(crate) rows: Rows,
    /// The same for work that answers nobody, so that it goes on where questions are not answered for a while.
    work_rows: Rows,
    pending_max: u64,
    collection: u64,
    manifest: String,
    /// Where the changes during a backup are kept.
    dir: PathBuf,
    /// Between two snapshots of a status table.
    snapshot_pause: Duration,
    winner_signatures: WinnerSignatures,
    /// Pages handed in and not yet committed.
    arriving: Arc<Arrivals>,
    /// Room for what waits for the writers of its ranges.
    waiting_rooms: Rooms,
    /// How far the feed of every shard goes, and news of its growth.
    pub(crate) feed: Mutex<Vec<FeedExtent>>,
    feed_grew: Condvar,
    /// What other processes have said of theirs.
    other_feeds: Mutex<feed::Others>,
    refusals: Arc<Refusals>,
    stopping: AtomicBool,
    phase: Mutex<Phase>,
    /// Those of no range, and those of ranges that have ended, which may still do their last job.
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Tier1 {
    /// What the ranges of this process have counted.
    #[must_use]
    pub fn own_counters(&self) -> Counters {
        totals::add(self.ranges.owners().iter().map(|owner| owner.totals())).0
    }

    /// Bytes of the databases on disk.
    #[must_use]
    pub fn bytes_on_disk(&self) -> u64 {
        self.ranges.all().iter().map(|owner| owner.store.bytes_on_disk()).sum()
    }

    fn check(&self) -> Result<(), Tier1Error> {
        self.refusals.check()
    }

    fn shard_of(&self, page: PageId) -> ShardId {
        page.shard(self.settings.shards)
    }

    /// A range that this process owns and may answer for. Every question and every write of a caller comes this way.
    fn own(&self, range: RangeId) -> Result<Arc<Owner>, PeerError> {
        self.ranges.own(range)
    }

    /// Whether all ranges are of this process at present.
    fn owns_all(&self) -> bool {
        self.ranges.owners().iter().count() == self.map.count()
    }

    /// Whoever owns a range: this process, or else another one that is known to.
    fn at(&self, range: RangeId) -> Result<Node<'_>, PeerError> {
        if self.ranges.here(range).is_some() {
            return Ok(Node::Here(self));
        }
        Ok(Node::There(self.ranges.other(range)?))
    }

    /// Pages pending in the ranges of this process.
    fn pending(&self) -> u64 {
        self.ranges.owners().iter().map(|owner| owner.totals().1.pending).sum()
    }

    /// Whether nothing is on its way from these ranges to any group: no page is to be decided or searched for, no message waits.
    fn is_quiet(&self) -> bool {
        self.ranges.owners().iter().all(|owner| {
            let Backlog { pending, deferred_searches, messages, .. } = owner.totals().1;
            pending + deferred_searches + messages == 0
        })
    }
}

/// The node that owns a range.
enum Node<'t> {
    Here(&'t Tier1),
    There(Arc<dyn RangeOwner>),
}

impl Deref for Node<'_> {
    type Target = dyn RangeOwner;

    fn deref(&self) -> &Self::Target {
        match self {
            Self::Here(tier1) => *tier1,
            Self::There(other) => &**other,
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
