//! Maintenance that a node does between two calls: it rebuilds its tables when their numbers run out,
//! refines crowded buckets, and compacts its signature file.

mod refinement;

use doppel_model::InsertSeq;
use doppel_protocol::index_node::NodeError;
use hashbrown::HashMap;

use super::core::Core;
use super::partition::columns::Center;
use super::signatures::fetch::{FetchedSignatures, MissingSignature, with_fetched};
use super::signatures::file::SignatureFile;
use super::tables::{EntryRef, IndexTables};
use super::{ChangeState, LocalNode, lock};
use crate::error::Error;
use crate::seed::Seeded;

/// Entries of the new tables whose signatures had to be fetched.
type FetchedEntries = Vec<(EntryRef, std::sync::Arc<doppel_model::signature::Signature>)>;

impl LocalNode {
    /// Does the maintenance that is due. Does nothing while entries are exported or partitions change,
    /// because maintenance would change the numbers and places that name those entries.
    pub(super) fn maintain(&self, change: &mut ChangeState) -> Result<(), NodeError> {
        if self.is_changing(change) {
            return Ok(());
        }
        if self.read().tables.is_renewal_due() {
            self.renew()?;
        }
        self.refine_crowded();
        if self.read().signatures.own().is_some_and(SignatureFile::is_compaction_due)
            && let Err(error) = self.compact()
        {
            tracing::error!(%error, "cannot compact the signature file; it keeps growing");
        }
        Ok(())
    }

    /// Rebuilds the tables. Entries keep their order and their centers. Insertion sequences and query orders
    /// start again.
    pub(crate) fn renew(&self) -> Result<(), NodeError> {
        let (new, fetched) = with_fetched(&*self.source, |fetched| rebuilt(&self.read(), fetched))?;
        let mut core = self.write();
        let old = std::mem::replace(&mut core.tables, new);
        lock(&self.interrupted).clear();
        for (entry, signature) in fetched {
            core.rewrite(entry, &signature);
        }
        drop(core);
        // Freed without the lock, because it may be gigabytes.
        drop(old);
        Ok(())
    }

    /// Writes the signatures in use to a new file, in their order.
    fn compact(&self) -> Result<(), Error> {
        let core = self.read();
        let Some(before) = core.signatures.own() else { return Ok(()) };
        let tables = &core.tables;
        let mut entries: Vec<EntryRef> = tables.contents.iter().copied().collect();
        entries.sort_unstable_by_key(|entry| core.record(*entry).offset);
        let (mut file, before) = (before.successor()?, before.bytes());
        let (mut buffer, nothing) = (Vec::new(), FetchedSignatures::default());
        let mut moved = Vec::with_capacity(entries.len());
        for entry in entries {
            // A signature that cannot be read now is not copied. Its record becomes invalid, so it is fetched
            // when it is needed.
            if let Ok(Some(read)) = core.read(entry, &nothing, &mut buffer) {
                moved.push((entry, file.append(&read.signature)));
            }
        }
        drop(core);
        let mut core = self.write();
        let after = file.bytes();
        if let Some(own) = core.signatures.own_mut() {
            own.replace(file)?;
        }
        for (entry, record) in moved {
            core.tables.partition_mut(entry).columns.set_record(entry.slot, record);
        }
        tracing::info!(before, after, "compacted the signature file");
        Ok(())
    }
}

/// Returns rebuilt tables, or the signatures that have to be fetched first.
fn rebuilt(
    core: &Core,
    fetched: &FetchedSignatures,
) -> Result<(IndexTables, FetchedEntries), Vec<MissingSignature>> {
    let old = &core.tables;
    let mut new = old.empty_copy();
    let insert_seq = |entry: &EntryRef| old.insert_seq(*entry);
    let mut entries: Vec<EntryRef> = old.entries().collect();
    entries.sort_unstable_by_key(insert_seq);

    let mut insert_seqs: HashMap<InsertSeq, InsertSeq, Seeded> = HashMap::default();
    let (mut rewritten, mut missing, mut buffer) = (Vec::new(), Vec::new(), Vec::new());
    for entry in entries {
        let host = old.partition(entry);
        let read = match core.read(entry, fetched, &mut buffer) {
            Ok(Some(read)) => read,
            Ok(None) => {
                let content = host.columns.content(entry.slot);
                tracing::debug!(%content, "no page has this content any more; dropping it");
                continue;
            }
            Err(more) => {
                missing.push(more);
                continue;
            }
        };
        let Some(home) = new.local(host.id) else { continue };
        let page = host.columns.page(entry.slot);
        let lengths = host.columns.vector(entry.slot);
        let at = new.insert((home, lengths), page, &read.signature, host.columns.record(entry.slot));
        if read.fetched {
            rewritten.push((at, read.signature));
        }
        let partition = new.partition_mut(at);
        host.pages.of(entry.slot).for_each(|page| partition.add_page(at.slot, page));
        insert_seqs.insert(insert_seq(&entry), partition.columns.insert_seq(at.slot));
        // A center is older than its entry. If it still exists, it has its new number already.
        let renumbered = |center: Center, gone: Center| match insert_seqs.get(&center.insert_seq) {
            Some(insert_seq) => Center { insert_seq: *insert_seq, ..center },
            None if center.is_entry() => gone,
            None => center,
        };
        partition.columns.set_center(at.slot, renumbered(host.columns.center(entry.slot), Center::UNKNOWN));
        let second = renumbered(host.columns.second_center(entry.slot), Center::NONE);
        partition.columns.set_second_center(at.slot, second);
        partition.columns.set_query_order(at.slot, host.columns.is_searched(entry.slot).into());
        if host.columns.is_center(entry.slot) {
            new.mark_center(at);
        }
    }
    if missing.is_empty() { Ok((new, rewritten)) } else { Err(missing) }
}
