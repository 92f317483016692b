//! Settings of an index, their default values, and their limits.

use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use doppel_model::pairwise::Policy;
use doppel_partitioning::{MappingError, NODES_MAX, PARTITIONS_MAX};
use doppel_protocol::index_node::SearchLimits;

use crate::error::Error;
use crate::node::partition::buckets::CrowdingLimits;

/// Default number of partitions if there are several nodes.
const PARTITIONS: u32 = 16;

/// Default limits of searches. A search may take about 2 ms. The searches of one round may take about 200 ms
/// at each node. Nodes search one after the other.
const SEARCH_LIMITS: SearchLimits = SearchLimits { search: 1 << 16, call: 1 << 22 };

/// Default for [`Config::snapshot_pause`]: 5 minutes.
pub const SNAPSHOT_PAUSE: Duration = Duration::from_secs(5 * 60);

/// Settings of an index of tier 2.
#[derive(Debug, Clone)]
pub struct Config {
    /// Directory of the index. The index creates it if it does not exist.
    pub dir: PathBuf,
    /// Policy that decides which contents are near-duplicates.
    pub policy: Policy,
    /// Number of index nodes. Each node has its own tables and files.
    pub nodes: u32,
    /// Number of partitions on all nodes together. Each node has at least one. `None` means one partition on
    /// a single node, where more partitions cost time and save nothing, and otherwise 16. The index has one
    /// partition until it stores enough contents to learn a map.
    pub partitions: Option<u32>,
    /// Number of sub-dictionaries of a length vector, N in the paper.
    pub dimensions: usize,
    /// Number of waiting orders at which a pass starts at once.
    pub batch_max: usize,
    /// When a bucket of the candidate tables is crowded, so that its entries get keys that distinguish them.
    pub crowding: CrowdingLimits,
    /// How much searches may cost before the searches of other clients get their turn.
    pub search_limits: SearchLimits,
    /// How long the first order of a pass waits for more orders.
    pub batch_age: Duration,
    /// Number of threads that compare signatures.
    pub threads: usize,
    /// Shortest time between two snapshots while the index runs. The index writes one more snapshot when it
    /// stops.
    pub snapshot_pause: Duration,
    /// Number of contents that one migration step copies or drops.
    pub step: usize,
}

impl Config {
    /// Settings with default values: one node, one partition, 3 dimensions, passes of 5,000 orders or 50 ms,
    /// and one thread per core.
    #[must_use]
    pub fn new(dir: impl Into<PathBuf>, policy: Policy) -> Self {
        Self {
            dir: dir.into(),
            policy,
            nodes: 1,
            partitions: None,
            dimensions: 3,
            batch_max: 5_000,
            crowding: CrowdingLimits::DEFAULT,
            search_limits: SEARCH_LIMITS,
            batch_age: Duration::from_millis(50),
            threads: thread::available_parallelism().map_or(1, usize::from),
            snapshot_pause: SNAPSHOT_PAUSE,
            step: 128,
        }
    }

    /// Number of partitions that the plan should have: at least one per node.
    pub(crate) fn partitions_wanted(&self) -> u32 {
        let unless_given = if self.nodes == 1 { 1 } else { PARTITIONS };
        self.partitions.unwrap_or(unless_given).max(self.nodes)
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        let settings = [
            ("partitions", self.partitions.map_or(1, |partitions| partitions as usize)),
            ("batch_max", self.batch_max),
            ("threads", self.threads),
            ("step", self.step),
        ];
        if let Some((name, _)) = settings.into_iter().find(|(_, value)| *value == 0) {
            return Err(Error::Zero(name));
        }
        if let Some(partitions) = self.partitions.filter(|partitions| *partitions as usize > PARTITIONS_MAX) {
            return Err(MappingError::Partitions(partitions as usize).into());
        }
        if !(1..=NODES_MAX).contains(&self.nodes) {
            return Err(MappingError::Nodes(self.nodes).into());
        }
        Ok(())
    }
}
