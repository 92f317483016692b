//! Storing: carries the puts and removals of consecutive orders to the nodes.
//!
//! Every node gets its part of the orders, in the order of the range's log. If a node fails, its part is sent
//! again. A node that was fed again meanwhile also gets its part again, and skips the orders that it has
//! applied.

use std::sync::Arc;

use doppel_model::{ContentHash, Epoch, Incarnation, NodeId, PageId, RangeId};
use doppel_partitioning::Plan;
use doppel_protocol::index_node::{BATCH_ORDERS_MAX, NodeError, NodeOrder, OrderBatch, fitting_count};
use doppel_protocol::{IndexCommand, Orders};

use super::round::PendingSearch;
use super::search_queue::SearchQueue;
use crate::router::{Router, RouterError, lock};

/// Consecutive orders that are being stored under one plan.
pub(in crate::router) struct StoreStage {
    plan: Arc<Plan>,
    range: RangeId,
    epoch: Epoch,
    /// Index of the order before the first order of this stage.
    after: u64,
    /// Index of the last order of this stage.
    through: u64,
    nodes: Vec<NodeWork>,
    /// Changes of the search queue, in order. They are made once everything is stored (G4).
    queue_updates: Vec<QueueUpdate>,
}

/// A change that an order makes to the search queue.
enum QueueUpdate {
    Push(PendingSearch),
    /// The page no longer has the content, so searches for it are void.
    Forget(PageId, ContentHash),
}

/// The orders of a pass that one node has to store.
#[derive(Default)]
struct NodeWork {
    orders: Vec<(u64, NodeOrder)>,
    /// The incarnation that acknowledged the orders.
    stored: Option<Incarnation>,
}

impl StoreStage {
    /// Divides orders among the nodes.
    pub(in crate::router) fn new(router: &Router, orders: Orders) -> Self {
        let Orders { range, epoch, first, commands } = orders;
        let mut stage = Self {
            after: first.saturating_sub(1),
            through: (first + commands.len() as u64).saturating_sub(1),
            range,
            epoch,
            nodes: router.nodes.iter().map(|_| NodeWork::default()).collect(),
            plan: router.plan(),
            queue_updates: Vec::new(),
        };
        for (index, command) in (first..).zip(commands) {
            stage.take(router, index, command);
        }
        stage
    }

    /// The number of orders.
    pub(in crate::router) fn orders(&self) -> usize {
        (self.through - self.after) as usize
    }

    fn take(&mut self, router: &Router, index: u64, command: IndexCommand) {
        match command {
            IndexCommand::Put { page, signature, search } => {
                let mut pending = search.map(|search| PendingSearch::new(page, signature.content(), search));
                // A content without tokens has no duplicates, and is not stored.
                if signature.tokens() == 0 {
                    self.queue_updates
                        .extend(pending.map(|pending| QueueUpdate::Push(pending.without_partners())));
                    return;
                }
                let (node, home) = router.home(&self.plan, &signature);
                let owes_search = pending.is_some();
                if let Some(pending) = &mut pending {
                    pending.set_home(&self.plan, node, &signature);
                }
                self.queue_updates.extend(pending.map(QueueUpdate::Push));
                let put = NodeOrder::Put { page, signature, home, owes_search };
                self.nodes[node.index()].orders.push((index, put));
            }
            IndexCommand::Remove { page, content } => {
                self.queue_updates.push(QueueUpdate::Forget(page, content));
                // Only a node itself knows whether it stores the content.
                for work in &mut self.nodes {
                    work.orders.push((index, NodeOrder::Remove { page, content }));
                }
            }
            IndexCommand::Search { page, content, search } => {
                self.queue_updates.push(QueueUpdate::Push(PendingSearch::new(page, content, search)));
            }
        }
    }

    /// Stores the orders until every node has acknowledged its part, and then adds their searches to `queue`.
    /// Returns the number of searches. If a node knows a later owner of the range, the remaining orders are
    /// dropped without searches. The later owner requests again what is pending.
    ///
    /// # Errors
    /// Fails if a node does not do its part now. The caller runs it again.
    pub(in crate::router) fn run(
        &mut self,
        router: &Router,
        queue: &mut SearchQueue,
    ) -> Result<usize, RouterError> {
        for node in router.nodes.iter().map(|handle| handle.id) {
            match self.store(router, node) {
                Err(RouterError::Node(node, NodeError::StaleEpoch { present })) => {
                    let (range, epoch, orders) = (self.range, self.epoch, self.orders());
                    tracing::warn!(
                        %node,
                        range = range.0,
                        %epoch,
                        %present,
                        orders,
                        "dropping orders of an earlier owner of the range"
                    );
                    router.release(range, present, self.through);
                    return Ok(0);
                }
                stored => stored?,
            }
        }
        router.release(self.range, self.epoch, self.through);
        let before = queue.len();
        for update in self.queue_updates.drain(..) {
            match update {
                QueueUpdate::Push(pending) => queue.push(pending),
                QueueUpdate::Forget(page, content) => queue.forget(page, content),
            }
        }
        Ok(queue.len() - before)
    }

    /// Has a node carry out its part, unless its present incarnation has done so.
    fn store(&mut self, router: &Router, node: NodeId) -> Result<(), RouterError> {
        let present = *lock(&router.handle(node).incarnation);
        let work = &mut self.nodes[node.index()];
        if present.is_some() && work.stored == present {
            return Ok(());
        }
        let mut after = self.after;
        let mut rest = &work.orders[..];
        loop {
            let chunk;
            (chunk, rest) = rest.split_at(orders_per_call(rest));
            let last = chunk.last().filter(|_| !rest.is_empty()).map(|(index, _)| *index);
            let through = last.unwrap_or(self.through);
            let (range, epoch) = (self.range, self.epoch);
            let batch = OrderBatch { range, epoch, after, through, orders: chunk.to_vec() };
            let applied = router.call(node, &self.plan, |node, call| node.apply(call, batch))?;
            router.handle(node).record_applied(&applied);
            after = through;
            if rest.is_empty() {
                work.stored = Some(applied.incarnation);
                return Ok(());
            }
        }
    }
}

/// Number of orders that one call may carry. At least one, if there are any.
fn orders_per_call(orders: &[(u64, NodeOrder)]) -> usize {
    let size = |(_, order): &(u64, NodeOrder)| match order {
        NodeOrder::Put { signature, .. } => signature.as_bytes().len(),
        NodeOrder::Remove { .. } => 0,
    };
    fitting_count(orders.iter().take(BATCH_ORDERS_MAX).map(size))
}
