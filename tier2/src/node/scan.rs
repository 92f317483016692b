//! Opening a node, and filling its tables from all stored signatures.
//!
//! A sound signature whose home is on this node is stored at once, in the order of the store. Its entry waits
//! for a page that claims it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use doppel_model::PageId;
use doppel_model::signature::Signature;
use doppel_partitioning::Lexicon;
use doppel_snapshot::create_directories;
use rayon::ThreadPool;

use super::core::Core;
use super::partition::columns::SignatureRecord;
use super::signatures::file::SignatureFile;
use super::signatures::{NodeSignatures, Tier1Signatures};
use super::tables::IndexTables;
use super::{NodeConfig, SIGNATURES};
use crate::error::Error;

/// Placeholder for the first page of an entry that no page has claimed.
const UNCLAIMED_PAGE: PageId = PageId::from_bytes([0; 16]);

/// Opens the signatures of a node. Its tables stay empty until a router tells the node what to host.
pub(super) fn open(config: &NodeConfig) -> Result<Core, Error> {
    let dir = &config.dir;
    create_directories(dir).map_err(|e| Error::io("create the directory", dir, e))?;
    let signatures = match &config.stored {
        Some(stored) => NodeSignatures::Tier1(Tier1Signatures::new(Arc::clone(stored), dir)),
        None => NodeSignatures::Own(SignatureFile::open(&dir.join(SIGNATURES))?),
    };
    let tables = IndexTables::new(config.policy, Arc::new(Lexicon::unlearned(1)?), config.crowding);
    Ok(Core::new(tables, signatures))
}

/// Stores all signatures whose home is a partition of this node. The partitions must be empty.
pub(super) fn read(core: &mut Core, pool: Option<&ThreadPool>, stopping: &AtomicBool) -> Result<(), Error> {
    core.tables.begin_filling();
    let read = read_signatures(core, stopping);
    // The process ends without the index if the scan was stopped.
    if !stopping.load(Ordering::Relaxed) {
        core.tables.end_filling(pool);
    }
    read
}

fn read_signatures(core: &mut Core, stopping: &AtomicBool) -> Result<(), Error> {
    let Core { tables, signatures, .. } = core;
    match signatures {
        NodeSignatures::Own(file) => {
            let mut records = file.records()?;
            for (record, signature) in &mut records {
                if store(tables, &signature, record) {
                    file.retain(record);
                }
            }
            file.resume(&records)
        }
        NodeSignatures::Tier1(shared) => {
            let read = shared.stored.each(&mut |place, bytes| {
                if let Ok(signature) = Signature::from_bytes(bytes) {
                    store(tables, &signature, SignatureRecord { offset: place.at, bytes: place.bytes });
                }
                !stopping.load(Ordering::Relaxed)
            });
            // A signature that was not read is fetched when a page claims it.
            if let Err(error) = read {
                tracing::warn!(
                    %error,
                    "cannot read all signatures of tier 1; fetching the missing ones when needed"
                );
            }
            Ok(())
        }
    }
}

/// Stores an entry for a signature, which has this record. Returns `false` and stores nothing if the content
/// has no tokens, has its home on another node, or is stored already.
fn store(tables: &mut IndexTables, signature: &Signature, record: SignatureRecord) -> bool {
    let lengths = tables.lexicon().lengths(signature);
    // Skips a signature whose home is on another node under the present plan, and one that the store has
    // twice.
    let Some(home) = tables.home(&lengths).filter(|_| signature.tokens() > 0) else { return false };
    if tables.find(signature.content()).is_some() {
        return false;
    }
    let at = tables.insert((home, lengths), UNCLAIMED_PAGE, signature, record);
    tables.partition_mut(at).columns.set_unclaimed(at.slot);
    true
}
