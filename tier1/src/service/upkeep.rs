//! Upkeep of a range: the work that no caller waits for, and the status table.
//!
//! The rows name everything that a range owes: deferred searches, recomputations of groups, covers,
//! verifications, and rows whose time is over. Upkeep finds this work ([`worker`]), does it while there is
//! time ([`background`]), and hands the results to the writer as commands. It never writes a row itself.
//! Because the rows name the work, nothing here is durable, and a crash loses none of it.
//!
//! Invariant: results name the counts of changes that their group had before its rows were read. The machine
//! compares these counts and drops a result that is out of date.

pub(in crate::service) mod background;
pub(in crate::service) mod cover;
pub(in crate::service) mod failures;
pub(in crate::service) mod group_work;
pub(crate) mod job;
pub(in crate::service) mod members;
pub(crate) mod recomputation;
pub(in crate::service) mod status_table;
pub(in crate::service) mod sweep;
pub(in crate::service) mod throttle;
pub(in crate::service) mod unique_queue;
pub(crate) mod worker;

use std::sync::Arc;
use std::time::Duration;

use crate::peers::Peers;
use crate::service::ownership::OwnedRanges;
use crate::service::ownership::collection::CollectionFacts;
use crate::service::ownership::ranges::RangeRegistry;
use crate::service::ownership::refusals::Refusals;
use crate::service::questions::rows::RowReader;

/// The rows that the workers of all ranges read, and the registry that tells them when to end.
pub(crate) struct Upkeep {
    collection: CollectionFacts,
    ranges: Arc<RangeRegistry>,
    refusals: Arc<Refusals>,
    /// Rows for work that answers no question. It goes on while owners may not answer.
    rows: RowReader,
    /// Rows whose owners are asked whether they may answer, as for a caller.
    question_rows: RowReader,
    /// The least time between two snapshots of a status table.
    snapshot_pause: Duration,
}

impl Upkeep {
    /// Creates the upkeep of the ranges of a process.
    pub(in crate::service) fn new(
        owned: &OwnedRanges,
        question_rows: RowReader,
        snapshot_pause: Duration,
    ) -> Self {
        let peers: &Arc<dyn Peers> = &owned.peers;
        Self {
            collection: owned.collection,
            ranges: Arc::clone(&owned.ranges),
            refusals: Arc::clone(&owned.refusals),
            rows: RowReader::new(owned.collection.map, Arc::clone(peers), None),
            question_rows,
            snapshot_pause,
        }
    }
}
