//! Opening a cluster: from its files, and from tier 1 what they do not have.

use std::fs::{self, File, TryLockError};
use std::path::Path;
use std::sync::Arc;

use crate::seed::Seeded;
use doppel_model::{ContentHash, PageId};
use doppel_partitioning::{PartitionMap, Plan};
use doppel_protocol::RebalanceRequest;
use hashbrown::HashMap;
use smallvec::SmallVec;

use crate::cluster::Cluster;
use crate::error::Error;
use crate::file::SignatureFile;
use crate::index::{Fetch, Index};
use crate::map_file::{self, LearnedFrom};
use crate::rebalance_file::{self, RebalanceRequests};
use crate::service::Config;

/// Names of the files: the signatures of a node, the plan, what is requested of it, the lock.
pub(crate) const SIGNATURES: &str = "signatures.dat";
pub(crate) const MAP: &str = "map.json";
pub(crate) const REBALANCE: &str = "request.json";
const LOCK: &str = "lock";

/// The pages of each content that is not stored yet.
type Missing = HashMap<ContentHash, SmallVec<[PageId; 1]>, Seeded>;

/// A cluster that was opened.
pub(crate) struct Opened {
    pub(crate) cluster: Cluster,
    /// What is requested of its mapping.
    pub(crate) requests: RebalanceRequests,
    /// Held for as long as the cluster is open.
    pub(crate) lock: File,
}

/// Opens the cluster of `config.dir` for exactly these contents.
pub(crate) fn open(
    config: &Config,
    contents: &mut dyn Iterator<Item = (PageId, ContentHash)>,
    fetch: Fetch,
) -> Result<Opened, Error> {
    fs::create_dir_all(&config.dir).map_err(|e| Error::io("create the directory", &config.dir, e))?;
    let lock = lock(&config.dir)?;
    let mut missing = Missing::default();
    for (page, content) in contents {
        missing.entry(content).or_default().push(page);
    }

    let mut requests = rebalance_file::read(&config.dir.join(REBALANCE));
    let (plan, learned) = plan(config, &mut requests)?;
    let plan = Arc::new(plan);
    let mut nodes = Vec::new();
    let mut records = Vec::new();
    for node in 0..config.nodes {
        let dir = config.dir.join(node_dir(node));
        fs::create_dir_all(&dir).map_err(|e| Error::io("create the directory", &dir, e))?;
        let file = SignatureFile::open(&dir.join(SIGNATURES))?;
        records.push(file.records()?);
        nodes.push(Index::new(config.policy, Arc::clone(&plan), node, file, Arc::clone(&fetch)));
    }
    let mut cluster = Cluster::new(plan, nodes, fetch, learned);
    let mut elsewhere = Vec::new();
    for (node, mut records) in (0..).zip(records) {
        for (record, signature) in &mut records {
            // Of a content that two files have, after a crash in a move, one is taken.
            let Some(pages) = missing.get(&signature.content()).filter(|_| signature.tokens() > 0) else {
                continue;
            };
            let (home_node, home) = cluster.home(&signature);
            if home_node != node {
                // It may be there as well, under the plan of before a crash.
                elsewhere.push((node, record));
                continue;
            }
            let index = cluster.node_mut(node);
            index.tables.insert(home, pages[0], &signature, record);
            index.file.retain(record);
            pages[1..].iter().for_each(|page| index.put(*page, &signature, home));
            missing.remove(&signature.content());
        }
        cluster.node_mut(node).file.resume(&records)?;
    }
    for (node, record) in elsewhere {
        let signature = cluster.node(node).file.read(record, &mut Vec::new()).ok();
        let Some(signature) = signature.filter(|s| missing.contains_key(&s.content())) else { continue };
        let pages = missing.remove(&signature.content()).unwrap_or_default();
        pages.iter().for_each(|page| cluster.put(*page, &signature));
    }
    forget_nodes(config);
    let read = cluster.len();
    fill(&mut cluster, missing);
    tracing::info!(dir = %config.dir.display(), read, fetched = cluster.len() - read, "tier 2 is open");
    Ok(Opened { cluster, requests, lock })
}

/// The stored plan where it is one for this configuration, or the one to begin with.
fn plan(config: &Config, requests: &mut RebalanceRequests) -> Result<(Plan, Option<LearnedFrom>), Error> {
    let usable = |plan: &Plan| {
        let map = plan.map();
        map.tau() == config.policy.tau && map.lexicon().dimensions() == config.dimensions
    };
    let map = PartitionMap::one(config.dimensions, config.policy.tau)?;
    let (before, learned) = match map_file::read(&config.dir.join(MAP)) {
        Some((plan, learned)) if usable(&plan) && plan.nodes() == config.nodes => {
            return Ok((plan, Some(learned)));
        }
        Some((plan, learned)) => (plan, learned),
        None => return Ok((Plan::on_first(map, config.nodes)?, None)),
    };
    // Nodes that are drained stay so, and another plan has another number.
    let plan_version = before.map().version() + 1;
    if !usable(&before) {
        let mut plan = Plan::on_first(map, config.nodes)?;
        for node in before.drained() {
            // Of nodes that are no more, or of the last one, there is nothing to say.
            let _ = plan.set_drained(*node, true);
        }
        let first = plan.serving().next().unwrap_or_default();
        plan.place(0, first)?;
        plan.set_version(plan_version);
        return Ok((plan, None));
    }
    let mut plan = before.over_nodes(config.nodes)?;
    plan.set_version(plan_version);
    if !requests.contains(&RebalanceRequest::Balance) {
        requests.push_back(RebalanceRequest::Balance);
    }
    // The request is first, so that it is not missing where the plan is there.
    let stored = rebalance_file::write(&config.dir.join(REBALANCE), requests)
        .and_then(|()| map_file::write(&config.dir.join(MAP), &plan, learned));
    if let Err(error) = stored {
        tracing::error!(%error, "the plan for another number of nodes is not stored; the next start makes it again");
    }
    Ok((plan, Some(learned)))
}

/// Removes the files of nodes that there are no more.
fn forget_nodes(config: &Config) {
    for node in config.nodes.. {
        let dir = config.dir.join(node_dir(node));
        if !dir.is_dir() {
            break;
        }
        if let Err(error) = fs::remove_dir_all(&dir) {
            tracing::warn!(dir = %dir.display(), %error, "cannot remove the files of a node that there is no more");
        }
    }
}

/// The directory of a node within that of the cluster.
pub(crate) fn node_dir(node: u32) -> String {
    format!("node-{node}")
}

/// Fetches what was not in the files.
fn fill(cluster: &mut Cluster, missing: Missing) {
    let fetch = Arc::clone(&cluster.fetch);
    // The same collection gives the same index.
    let mut missing: Vec<_> = missing.into_iter().collect();
    missing.sort_unstable_by_key(|(content, _)| *content);
    for (content, pages) in missing {
        let signature = pages.iter().filter_map(|page| fetch(*page)).find(|s| s.content() == content);
        match signature {
            Some(signature) => pages.iter().for_each(|page| cluster.put(*page, &signature)),
            None => tracing::warn!(%content, "no page has this content any more; it is left out"),
        }
    }
}

fn lock(dir: &Path) -> Result<File, Error> {
    let path = dir.join(LOCK);
    let fail = |e| Error::io("lock", &path, e);
    let file = File::create(&path).map_err(fail)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(Error::InUse(dir.to_owned())),
        Err(TryLockError::Error(error)) => Err(fail(error)),
    }
}
