//! Resources that a node needs when it is opened: its settings, its threads, and a locked directory.

use std::fs::{File, TryLockError};
use std::path::Path;
use std::sync::Arc;

use doppel_model::{Incarnation, NodeId};
use doppel_snapshot::create_directories;
use doppel_threads::{LoweredPriority, lower_priority};

use crate::config::Config;
use crate::error::Error;
use crate::node::NodeConfig;

const LOCK: &str = "lock";

/// Settings of a node of this index.
pub(crate) fn node_config(
    config: &Config,
    id: NodeId,
    pool: Option<Arc<rayon::ThreadPool>>,
    incarnation: Incarnation,
) -> NodeConfig {
    NodeConfig {
        id,
        dir: config.dir.join(node_dir(id)),
        policy: config.policy,
        crowding: config.crowding,
        incarnation,
        pool,
        stored: None,
    }
}

/// Starts the threads that compare signatures. `None` for a single thread: then the caller's thread compares.
pub(crate) fn pool(threads: usize) -> Result<Option<Arc<rayon::ThreadPool>>, Error> {
    if threads == 1 {
        return Ok(None);
    }
    let name = |i| format!("tier2-compare-{i}");
    let builder = rayon::ThreadPoolBuilder::new().num_threads(threads).thread_name(name);
    let pool = builder.start_handler(|_| lower_priority(LoweredPriority::BelowAnswers)).build();
    pool.map(|pool| Some(Arc::new(pool))).map_err(|e| Error::Threads(e.to_string()))
}

/// Name of a node's directory within the directory of the index.
pub(crate) fn node_dir(node: NodeId) -> String {
    format!("node-{node}")
}

/// Creates the directory if it does not exist, and locks it for this process.
pub(crate) fn lock(dir: &Path) -> Result<File, Error> {
    create_directories(dir).map_err(|e| Error::io("create the directory", dir, e))?;
    let path = dir.join(LOCK);
    let fail = |e| Error::io("lock", &path, e);
    let file = File::create(&path).map_err(fail)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(Error::InUse(dir.to_owned())),
        Err(TryLockError::Error(error)) => Err(fail(error)),
    }
}
