//! Puts and removals: in the order of their range's log, each applied once.

use doppel_model::{ContentHash, PageId, RangeId};
use doppel_protocol::PageRange;
use doppel_protocol::index_node::{BATCH_MAX, NodeError, NodeOrder, OrderBatch};

use super::fetched::with_fetched;
use super::{LocalNode, bounded, lock};

impl LocalNode {
    /// Applies the orders that are not applied yet. One that fails is not applied, nor is any after it.
    pub(super) fn carry_out(&self, batch: OrderBatch) -> Result<(), NodeError> {
        let OrderBatch { range, epoch, after, through, orders } = batch;
        bounded(orders.len(), BATCH_MAX)?;
        let position = self.hosted().positions.get(&range).copied();
        let (present, applied) = position.ok_or(NodeError::NotFed(range))?;
        if epoch < present {
            return Err(NodeError::StaleEpoch { present });
        }
        if after > applied {
            return Err(NodeError::Gap { applied });
        }
        let done = |index: u64| {
            self.hosted_mut().positions.insert(range, (epoch, index));
        };
        for (index, order) in orders.into_iter().filter(|(index, _)| *index > applied) {
            std::thread::yield_now();
            match order {
                NodeOrder::Put { page, signature, home, owes_search } => {
                    let mut core = self.write();
                    let partition = core.tables.local(home.partition);
                    let partition = partition.ok_or(NodeError::NoPartition(home.partition))?;
                    core.put(page, &signature, (partition, home.lengths), owes_search);
                }
                NodeOrder::Remove { page, content } => self.remove(range, page, content)?,
            }
            done(index);
        }
        done(through.max(applied));
        Ok(())
    }

    /// Takes a content from a page. Where that was the first of its pages, the copies have named nobody else, and its own
    /// answer may not have been taken: the next one is to be searched for.
    pub(super) fn remove(&self, range: RangeId, page: PageId, content: ContentHash) -> Result<(), NodeError> {
        lock(&self.interrupted).forget(content);
        if self.read().tables.find(content).is_none() {
            return Ok(());
        }
        let band_keys = with_fetched(&*self.source, |fetched| {
            self.read().band_keys_to_remove(page, content, fetched).map_err(|wanted| vec![wanted])
        })?;
        let next = self.write().remove(page, content, band_keys);
        if let Some(next) = next {
            let of = PageRange::of(&self.hosted().ranges, next).unwrap_or(range);
            self.with_repeats(of, |repeats| repeats.push(next, content));
        }
        Ok(())
    }
}
