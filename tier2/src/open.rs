//! Opening an index: from its files, and from tier 1 what they do not have.

use std::fs::{self, File, TryLockError};
use std::path::Path;

use crate::seed::Seeded;
use doppel_common::mapping::PartitionMap;
use doppel_common::model::{ContentHash, PageId};
use hashbrown::HashMap;
use smallvec::SmallVec;

use crate::error::Error;
use crate::file::SignatureFile;
use crate::index::{Fetch, Index};
use crate::map_file;
use crate::service::Config;

/// Names of the files of an index.
pub(crate) const SIGNATURES: &str = "signatures.dat";
pub(crate) const MAP: &str = "map.json";
const LOCK: &str = "lock";

/// The pages of each content that is not stored yet.
type Missing = HashMap<ContentHash, SmallVec<[PageId; 1]>, Seeded>;

/// Opens the index of `config.dir` for exactly these contents. The file returned holds the lock.
pub(crate) fn open(
    config: &Config,
    contents: &mut dyn Iterator<Item = (PageId, ContentHash)>,
    fetch: Fetch,
) -> Result<(Index, File), Error> {
    fs::create_dir_all(&config.dir).map_err(|e| Error::io("create the directory", &config.dir, e))?;
    let lock = lock(&config.dir)?;
    let mut missing = Missing::default();
    for (page, content) in contents {
        missing.entry(content).or_default().push(page);
    }

    let usable = |map: &PartitionMap| {
        map.tau() == config.policy.tau && map.lexicon().dimensions() == config.dimensions
    };
    let stored = map_file::read(&config.dir.join(MAP)).filter(|(map, _)| usable(map));
    let (map, learned) = match stored {
        Some((map, learned)) => (map, Some(learned)),
        None => (PartitionMap::one(config.dimensions, config.policy.tau)?, None),
    };
    let file = SignatureFile::open(&config.dir.join(SIGNATURES))?;
    let mut records = file.records()?;
    let mut index = Index::new(config.policy, map, file, fetch);
    index.learned = learned;
    for (record, signature) in &mut records {
        if let Some(pages) = missing.remove(&signature.content())
            && signature.tokens() > 0
        {
            index.tables.insert(pages[0], &signature, record);
            index.file.retain(record);
            pages[1..].iter().for_each(|page| index.put(*page, &signature));
        }
    }
    index.file.resume(&records)?;
    let read = index.tables.contents.len();
    fill(&mut index, missing);
    tracing::info!(dir = %config.dir.display(), read, fetched = index.tables.contents.len() - read, "tier 2 is open");
    Ok((index, lock))
}

/// Fetches what was not in the file.
fn fill(index: &mut Index, missing: Missing) {
    let fetch = index.fetch.clone();
    // The same collection gives the same index.
    let mut missing: Vec<_> = missing.into_iter().collect();
    missing.sort_unstable_by_key(|(content, _)| *content);
    for (content, pages) in missing {
        let signature = pages.iter().filter_map(|page| fetch(*page)).find(|s| s.content() == content);
        match signature {
            Some(signature) => pages.iter().for_each(|page| index.put(*page, &signature)),
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
