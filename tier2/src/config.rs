//! Settings of an index.

use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use doppel_model::pairwise::Policy;
use doppel_partitioning::{MappingError, NODES_MAX, PARTITIONS_MAX};
use doppel_protocol::index_node::SearchLimits;

use crate::error::Error;

/// Partitions wanted on several nodes, unless a number is given.
const PARTITIONS: u32 = 16;

/// Limits of searches, unless others are given: about 2 ms for a search, and 200 ms for the searches of a round at each node, of which one
/// searches after the other.
const SEARCH_LIMITS: SearchLimits = SearchLimits { search: 1 << 16, call: 1 << 22 };

/// The least time between two snapshots, unless another is given.
pub const SNAPSHOT_PAUSE: Duration = Duration::from_secs(5 * 60);

/// Settings of an index.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where its files are; made if it is not there.
    pub dir: PathBuf,
    /// How contents are compared.
    pub policy: Policy,
    /// Nodes, each with tables and files of its own.
    pub nodes: u32,
    /// Partitions wanted, on all nodes together; at least one for each. None: one on one node, where more would cost and
    /// save nothing, and otherwise 16. There is one until there are enough contents to learn a map from.
    pub partitions: Option<u32>,
    /// Sub-dictionaries of a length vector, N.
    pub dimensions: usize,
    /// Orders that make a pass start.
    pub batch_max: usize,
    /// How much searches may cost before others have their turn.
    pub search_limits: SearchLimits,
    /// How long the first order of a pass waits for more.
    pub batch_age: Duration,
    /// Threads that compare.
    pub threads: usize,
    /// The least time between two snapshots while it runs; one more is written at the end.
    pub snapshot_pause: Duration,
    /// Contents copied or dropped at a time when the mapping changes.
    pub step: usize,
}

impl Config {
    /// The defaults: one node, one partition, 3 dimensions, passes of 5,000 orders or 50 ms, a thread per core.
    #[must_use]
    pub fn new(dir: impl Into<PathBuf>, policy: Policy) -> Self {
        Self {
            dir: dir.into(),
            policy,
            nodes: 1,
            partitions: None,
            dimensions: 3,
            batch_max: 5_000,
            search_limits: SEARCH_LIMITS,
            batch_age: Duration::from_millis(50),
            threads: thread::available_parallelism().map_or(1, usize::from),
            snapshot_pause: SNAPSHOT_PAUSE,
            step: 128,
        }
    }

    /// Partitions wanted: at least one for each node.
    pub(crate) fn wanted(&self) -> u32 {
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
