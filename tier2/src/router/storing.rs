//! Puts and removals of consecutive orders on their way to the nodes.
//!
//! Every node gets its part in the order of the range's log. If a node fails, its part is sent again. A node that was fed anew meanwhile
//! gets its orders again, and skips those it knows.

use std::sync::Arc;

use doppel_model::{ContentHash, Epoch, Incarnation, NodeId, PageId, RangeId};
use doppel_partitioning::Plan;
use doppel_protocol::index_node::{BATCH_MAX, NodeError, NodeOrder, OrderBatch, fitting};
use doppel_protocol::{IndexCommand, Orders};

use super::round::Asked;
use super::search_queue::SearchQueue;
use super::{Router, RouterError, lock};

/// Orders that are being stored under one plan.
pub(super) struct Storing {
    plan: Arc<Plan>,
    range: RangeId,
    epoch: Epoch,
    /// Index of the last order before these, and of the last of them.
    after: u64,
    through: u64,
    nodes: Vec<NodeWork>,
    /// What the queue of searches is told once everything is stored (G4), in order.
    told: Vec<QueueUpdate>,
}

/// What an order means for the queue of searches.
enum QueueUpdate {
    Push(Asked),
    /// The page no longer has the content.
    Forget(PageId, ContentHash),
}

/// What there is for a node.
#[derive(Default)]
struct NodeWork {
    orders: Vec<(u64, NodeOrder)>,
    /// The incarnation that acknowledged the orders.
    stored: Option<Incarnation>,
}

impl Storing {
    /// Divides orders by node.
    pub(super) fn new(router: &Router, orders: Orders) -> Self {
        let Orders { range, epoch, first, commands } = orders;
        let mut storing = Self {
            after: first.saturating_sub(1),
            through: (first + commands.len() as u64).saturating_sub(1),
            range,
            epoch,
            nodes: router.nodes.iter().map(|_| NodeWork::default()).collect(),
            plan: router.plan(),
            told: Vec::new(),
        };
        for (index, command) in (first..).zip(commands) {
            storing.take(router, index, command);
        }
        storing
    }

    /// The number of orders.
    pub(super) fn orders(&self) -> usize {
        (self.through - self.after) as usize
    }

    fn take(&mut self, router: &Router, index: u64, command: IndexCommand) {
        match command {
            IndexCommand::Put { page, signature, search } => {
                let mut asked = search.map(|search| Asked::new(page, signature.content(), search));
                // Without tokens it is nobody's duplicate, and is not stored.
                if signature.tokens() == 0 {
                    self.told.extend(asked.map(|asked| QueueUpdate::Push(asked.without_partners())));
                    return;
                }
                let (node, home) = router.home(&self.plan, &signature);
                let owes_search = asked.is_some();
                if let Some(asked) = &mut asked {
                    asked.is_stored_at(&self.plan, node, &signature);
                }
                self.told.extend(asked.map(QueueUpdate::Push));
                let put = NodeOrder::Put { page, signature, home, owes_search };
                self.nodes[node.index()].orders.push((index, put));
            }
            IndexCommand::Remove { page, content } => {
                self.told.push(QueueUpdate::Forget(page, content));
                // Nobody but the node itself knows whether it has the content.
                for work in &mut self.nodes {
                    work.orders.push((index, NodeOrder::Remove { page, content }));
                }
            }
            IndexCommand::Search { page, content, search } => {
                self.told.push(QueueUpdate::Push(Asked::new(page, content, search)));
            }
        }
    }

    /// Stores until every node has acknowledged its part, and adds the searches to `queue`. Returns their number. If a node knows a later owner
    /// of the range, the rest is dropped without a search: the later owner asks again for what is pending.
    ///
    /// # Errors
    /// When a node does not do its part now. It is run again then.
    pub(super) fn run(&mut self, router: &Router, queue: &mut SearchQueue) -> Result<usize, RouterError> {
        for node in router.nodes.iter().map(|handle| handle.id) {
            match self.store(router, node) {
                Err(RouterError::Node(node, NodeError::StaleEpoch { present })) => {
                    let (range, epoch, orders) = (self.range, self.epoch, self.orders());
                    tracing::warn!(%node, range = range.0, %epoch, %present, orders, "orders of an earlier owner are dropped");
                    router.release(range, present, self.through);
                    return Ok(0);
                }
                stored => stored?,
            }
        }
        router.release(self.range, self.epoch, self.through);
        let before = queue.len();
        for update in self.told.drain(..) {
            match update {
                QueueUpdate::Push(asked) => queue.push(asked),
                QueueUpdate::Forget(page, content) => queue.forget(page, content),
            }
        }
        Ok(queue.len() - before)
    }

    /// Has a node carry out its orders, unless its present incarnation has done so.
    fn store(&mut self, router: &Router, node: NodeId) -> Result<(), RouterError> {
        let present = *lock(&router.handle(node).incarnation);
        let work = &mut self.nodes[node.index()];
        if present.is_some() && work.stored == present {
            return Ok(());
        }
        let mut after = self.after;
        let mut rest = &work.orders[..];
        loop {
            let some;
            (some, rest) = rest.split_at(bounded(rest));
            let last = some.last().filter(|_| !rest.is_empty()).map(|(index, _)| *index);
            let through = last.unwrap_or(self.through);
            let (range, epoch) = (self.range, self.epoch);
            let batch = OrderBatch { range, epoch, after, through, orders: some.to_vec() };
            let applied = router.call(node, &self.plan, |node, call| node.apply(call, batch))?;
            router.handle(node).told(&applied);
            after = through;
            if rest.is_empty() {
                work.stored = Some(applied.incarnation);
                return Ok(());
            }
        }
    }
}

/// How many of the orders a call may bring: at least one, where there is one.
fn bounded(orders: &[(u64, NodeOrder)]) -> usize {
    let size = |(_, order): &(u64, NodeOrder)| match order {
        NodeOrder::Put { signature, .. } => signature.as_bytes().len(),
        NodeOrder::Remove { .. } => 0,
    };
    fitting(orders.iter().take(BATCH_MAX).map(size))
}
