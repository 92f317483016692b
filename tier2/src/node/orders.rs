//! Puts and removals. The node applies the orders of a range in their order, each once.

use doppel_model::{ContentHash, PageId, RangeId};
use doppel_protocol::PageRange;
use doppel_protocol::index_node::{BATCH_ORDERS_MAX, NodeError, NodeOrder, OrderBatch};

use super::signatures::fetch::with_fetched;
use super::{LocalNode, check_limit, lock};

impl LocalNode {
    /// Applies the orders that are not applied yet. If an order fails, neither it nor any later order is
    /// applied.
    pub(super) fn carry_out(&self, batch: OrderBatch) -> Result<(), NodeError> {
        let OrderBatch { range, epoch, after, through, orders } = batch;
        check_limit(orders.len(), BATCH_ORDERS_MAX)?;
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

    /// Removes a content from a page. If it was the first page of the content, the next page has to be
    /// searched for. The answers for copies name only the first page, and the answer for the first page may
    /// be lost.
    pub(super) fn remove(&self, range: RangeId, page: PageId, content: ContentHash) -> Result<(), NodeError> {
        lock(&self.interrupted).forget(content);
        if self.read().tables.find(content).is_none() {
            return Ok(());
        }
        let keys = with_fetched(&*self.source, |fetched| {
            self.read().keys_to_remove(page, content, fetched).map_err(|missing| vec![missing])
        })?;
        let next = self.write().remove(page, content, keys);
        if let Some(next) = next {
            let of = PageRange::of(&self.hosted().ranges, next).unwrap_or(range);
            self.with_repeats(of, |repeats| repeats.push(next, content));
        }
        Ok(())
    }
}
