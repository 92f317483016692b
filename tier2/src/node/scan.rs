//! The start of a node: what its file holds.
//!
//! Whatever is sound and at home here is stored at once, in the order of the file, and waits for a page that claims it.

use std::fs;
use std::sync::Arc;

use doppel_model::PageId;
use doppel_model::signature::Signature;
use doppel_partitioning::Lexicon;

use super::core::Core;
use super::file::{Records, SignatureFile};
use super::tables::Tables;
use super::{NodeConfig, SIGNATURES};
use crate::error::Error;

/// Stands in the place of the page of an entry that nobody has claimed.
const NOBODY: PageId = PageId::from_bytes([0; 16]);

/// The files of a node, before it is known what they are for.
pub(super) fn open(config: &NodeConfig) -> Result<(Core, Records), Error> {
    let dir = &config.dir;
    fs::create_dir_all(dir).map_err(|e| Error::io("create the directory", dir, e))?;
    let file = SignatureFile::open(&dir.join(SIGNATURES))?;
    let records = file.records()?;
    let tables = Tables::new(config.policy, Arc::new(Lexicon::unlearned(1)?));
    Ok((Core::new(config.policy, tables, file), records))
}

/// Stores what belongs to the partitions that the node has now.
pub(super) fn read(core: &mut Core, mut records: Records) -> Result<(), Error> {
    for (record, signature) in &mut records {
        if signature.tokens() > 0 {
            store(core, &signature, record);
        }
    }
    core.file.resume(&records)
}

fn store(core: &mut Core, signature: &Signature, record: super::columns::Record) {
    let lengths = core.tables.lexicon().lengths(signature);
    // Under the plan of before it may have been at home here, and it may be there twice.
    let Some(home) = core.tables.home(&lengths) else { return };
    if core.tables.find(signature.content()).is_some() {
        return;
    }
    let at = core.tables.insert((home, lengths), NOBODY, signature, record);
    core.tables.partition_mut(at).columns.set_unclaimed(at.slot);
    core.file.retain(record);
}
