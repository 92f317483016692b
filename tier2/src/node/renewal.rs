//! What a node does for itself between two calls: tables made anew when their numbers run out, and compaction of the
//! file.

use doppel_model::InsertSeq;
use doppel_protocol::index_node::NodeError;
use hashbrown::HashMap;

use super::columns::Center;
use super::core::Core;
use super::fetched::{Fetched, Wanted, with_fetched};
use super::file::SignatureFile;
use super::tables::{EntryRef, Tables};
use super::{Change, LocalNode, lock};
use crate::error::Error;
use crate::seed::Seeded;

/// Entries whose signatures had to be fetched.
type Rewritten = Vec<(EntryRef, std::sync::Arc<doppel_model::signature::Signature>)>;

impl LocalNode {
    /// Does what is due, unless entries are on their way: they are named by what would change.
    pub(super) fn maintain(&self, change: &mut Change) -> Result<(), NodeError> {
        if self.is_changing(change) {
            return Ok(());
        }
        if self.read().tables.want_renewal() {
            self.renew()?;
        }
        if self.read().signatures.own().is_some_and(SignatureFile::wants_compaction)
            && let Err(error) = self.compact()
        {
            tracing::error!(%error, "cannot compact the signature file; it goes on growing");
        }
        Ok(())
    }

    /// Makes the tables anew. Entries keep their order and their centers; insertion numbers and query order start again.
    pub(crate) fn renew(&self) -> Result<(), NodeError> {
        let (new, fetched) = with_fetched(&*self.source, |fetched| renewed(&self.read(), fetched))?;
        let mut core = self.write();
        let old = std::mem::replace(&mut core.tables, new);
        lock(&self.interrupted).clear();
        for (entry, signature) in fetched {
            core.rewrite(entry, &signature);
        }
        drop(core);
        // Not under the lock: it may be gigabytes.
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
        let (mut buffer, nothing) = (Vec::new(), Fetched::default());
        let mut moved = Vec::with_capacity(entries.len());
        for entry in entries {
            // What cannot be read now keeps a place where nothing is, and is fetched when it is needed.
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

fn renewed(core: &Core, fetched: &Fetched) -> Result<(Tables, Rewritten), Vec<Wanted>> {
    let old = &core.tables;
    let mut new = old.anew();
    let insert_seq = |entry: &EntryRef| old.insert_seq(*entry);
    let mut entries: Vec<EntryRef> = old.entries().collect();
    entries.sort_unstable_by_key(insert_seq);

    let mut insert_seqs: HashMap<InsertSeq, InsertSeq, Seeded> = HashMap::default();
    let (mut rewritten, mut wanted, mut buffer) = (Vec::new(), Vec::new(), Vec::new());
    for entry in entries {
        let host = old.partition(entry);
        let read = match core.read(entry, fetched, &mut buffer) {
            Ok(Some(read)) => read,
            Ok(None) => {
                let content = host.columns.content(entry.slot);
                tracing::debug!(%content, "no page has this content any more; it is dropped");
                continue;
            }
            Err(more) => {
                wanted.push(more);
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
        // A center is older, so it has its new number already, if it is still there.
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
            new.keep_center(at);
        }
    }
    if wanted.is_empty() { Ok((new, rewritten)) } else { Err(wanted) }
}
