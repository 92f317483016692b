//! The start of a node: what signatures there are.
//!
//! Whatever is sound and at home here is stored at once, in the order of the files, and waits for a page that claims it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use doppel_model::PageId;
use doppel_model::signature::Signature;
use doppel_partitioning::Lexicon;
use doppel_snapshot::create_directories;

use super::columns::Record;
use super::core::Core;
use super::file::SignatureFile;
use super::signatures::{Shared, Signatures};
use super::tables::Tables;
use super::{NodeConfig, SIGNATURES};
use crate::error::Error;

/// Stands in the place of the page of an entry that nobody has claimed.
const NOBODY: PageId = PageId::from_bytes([0; 16]);

/// A node before it is known what its signatures are for.
pub(super) fn open(config: &NodeConfig) -> Result<Core, Error> {
    let dir = &config.dir;
    create_directories(dir).map_err(|e| Error::io("create the directory", dir, e))?;
    let signatures = match &config.stored {
        Some(stored) => Signatures::Shared(Shared::new(Arc::clone(stored), dir)),
        None => Signatures::Own(SignatureFile::open(&dir.join(SIGNATURES))?),
    };
    let tables = Tables::new(config.policy, Arc::new(Lexicon::unlearned(1)?));
    Ok(Core::new(tables, signatures))
}

/// Stores what belongs to the partitions that the node has now.
pub(super) fn read(core: &mut Core, stopping: &AtomicBool) -> Result<(), Error> {
    let Core { tables, signatures, .. } = core;
    match signatures {
        Signatures::Own(file) => {
            let mut records = file.records()?;
            for (record, signature) in &mut records {
                if store(tables, &signature, record) {
                    file.retain(record);
                }
            }
            file.resume(&records)
        }
        Signatures::Shared(shared) => {
            let read = shared.stored.each(&mut |place, bytes| {
                if let Ok(signature) = Signature::from_bytes(bytes) {
                    store(tables, &signature, Record { offset: place.at, bytes: place.bytes });
                }
                !stopping.load(Ordering::Relaxed)
            });
            // What was not read is fetched when its page claims it.
            if let Err(error) = read {
                tracing::warn!(%error, "not all signatures can be read; those that are missing are fetched");
            }
            Ok(())
        }
    }
}

/// Whether a signature is stored with this record.
fn store(tables: &mut Tables, signature: &Signature, record: Record) -> bool {
    let lengths = tables.lexicon().lengths(signature);
    // Under the plan of before it may have been at home here, and it may be there twice.
    let Some(home) = tables.home(&lengths).filter(|_| signature.tokens() > 0) else { return false };
    if tables.find(signature.content()).is_some() {
        return false;
    }
    let at = tables.insert((home, lengths), NOBODY, signature, record);
    tables.partition_mut(at).columns.set_unclaimed(at.slot);
    true
}
