//! Opening a cluster: from its files, and from tier 1 what they do not have.

use std::fs::{self, File, TryLockError};
use std::path::Path;
use std::sync::Arc;

use crate::seed::Seeded;
use doppel_common::api::Rebalance;
use doppel_common::mapping::{PartitionMap, Plan};
use doppel_common::model::{ContentHash, PageId};
use hashbrown::HashMap;
use smallvec::SmallVec;

use crate::cluster::Cluster;
use crate::error::Error;
use crate::file::SignatureFile;
use crate::index::{Fetch, Index};
use crate::map_file::{self, Learned};
use crate::service::Config;
use crate::wish_file;

/// Names of the files: the signatures of a node, the plan, what is wished of it, the lock.
pub(crate) const SIGNATURES: &str = "signatures.dat";
pub(crate) const MAP: &str = "map.json";
pub(crate) const WISH: &str = "wish.json";
const LOCK: &str = "lock";

/// The pages of each content that is not stored yet.
type Missing = HashMap<ContentHash, SmallVec<[PageId; 1]>, Seeded>;

/// Opens the cluster of `config.dir` for exactly these contents. The file returned holds the lock.
pub(crate) fn open(
    config: &Config,
    contents: &mut dyn Iterator<Item = (PageId, ContentHash)>,
    fetch: Fetch,
) -> Result<(Cluster, File), Error> {
    fs::create_dir_all(&config.dir).map_err(|e| Error::io("create the directory", &config.dir, e))?;
    let lock = lock(&config.dir)?;
    let mut missing = Missing::default();
    for (page, content) in contents {
        missing.entry(content).or_default().push(page);
    }

    let (plan, learned) = plan(config)?;
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
    Ok((cluster, lock))
}

/// The stored plan where it is one for this configuration, or the one to begin with.
fn plan(config: &Config) -> Result<(Plan, Option<Learned>), Error> {
    let usable = |plan: &Plan| {
        let map = plan.map();
        map.tau() == config.policy.tau && map.lexicon().dimensions() == config.dimensions
    };
    let (map_path, wish_path) = (config.dir.join(MAP), config.dir.join(WISH));
    let Some((plan, learned)) = map_file::read(&map_path).filter(|(plan, _)| usable(plan)) else {
        let map = PartitionMap::one(config.dimensions, config.policy.tau)?;
        return Ok((Plan::on_first(map, config.nodes)?, None));
    };
    let (epoch, nodes) = (plan.map().epoch(), plan.nodes());
    let mut plan = plan.over_nodes(config.nodes)?;
    if nodes != config.nodes {
        // Another number of nodes is a wish, too, and a plan of its own. The wish is first: it is not missing then.
        if wish_file::read(&wish_path).is_none() {
            wish_file::write(&wish_path, Rebalance::Balance)?;
        }
        plan.set_epoch(epoch + 1);
        map_file::write(&map_path, &plan, learned)?;
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
