//! A node that can die and come back. Calls to it can fail before or after they are carried out.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use doppel_model::{Epoch, Incarnation, RangeId, stable_hash64};
use doppel_protocol::index_node::{
    AppliedState, CallContext, EntriesPage, EntriesRequest, HostingPlan, IndexNode, IngestAnswer,
    IngestBatch, NodeError, NodeLoadReport, NodeOrder, OrderBatch, SampleAnswer, SampleRequest, SearchBatch,
    SearchOutcome,
};
use doppel_protocol::{LogPosition, Repeat};

use crate::node::LocalNode;

/// Faults of the calls between the router and a node.
#[derive(Debug, Clone, Copy, Default)]
pub struct CallFaults {
    /// One call in this many fails. 0 means that none fails.
    pub one_in: u64,
    /// Whether one removal in three is acknowledged and not carried out. This is a planted mistake.
    pub lose_removals: bool,
    /// Whether a node that starts counts as fed. This is a planted mistake.
    pub unfed: bool,
}

/// A node that can die.
#[derive(Default)]
pub(super) struct Slot {
    node: RwLock<Option<Arc<LocalNode>>>,
    faults: Mutex<(CallFaults, u64)>,
    /// The last position that the node acknowledged, by range.
    last: Mutex<BTreeMap<RangeId, (Epoch, u64)>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Slot {
    pub(super) fn set(&self, node: Option<Arc<LocalNode>>) {
        *self.node.write().unwrap_or_else(PoisonError::into_inner) = node;
    }

    pub(super) fn set_faults(&self, faults: CallFaults, seed: u64) {
        *lock(&self.faults) = (faults, seed);
    }

    pub(super) fn get(&self) -> Option<Arc<LocalNode>> {
        self.node.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn faults(&self) -> CallFaults {
        lock(&self.faults).0
    }

    /// Returns true once in `n` calls on average.
    fn once_in(&self, n: u64) -> bool {
        let mut faults = lock(&self.faults);
        faults.1 = stable_hash64(&faults.1.to_le_bytes());
        n > 0 && faults.1.is_multiple_of(n)
    }

    fn call<T>(&self, call: impl FnOnce(&LocalNode) -> Result<T, NodeError>) -> Result<T, NodeError> {
        let lost = |what: &str| NodeError::Unavailable(format!("the {what} is lost"));
        let Some(node) = self.get() else { return Err(NodeError::Unavailable("it is dead".to_owned())) };
        let one_in = self.faults().one_in;
        if self.once_in(one_in) {
            return Err(lost("request"));
        }
        let answer = call(&node)?;
        if self.once_in(one_in) { Err(lost("answer")) } else { Ok(answer) }
    }
}

impl IndexNode for Slot {
    fn host(&self, hosting: HostingPlan) -> Result<Incarnation, NodeError> {
        let (plan, ranges) = (hosting.version, hosting.ranges.clone());
        let incarnation = self.call(|node| node.host(hosting))?;
        if self.faults().unfed {
            for range in ranges {
                let last = lock(&self.last).get(&range.range).copied();
                let (epoch, index) = last.unwrap_or_default();
                let fed = IngestBatch::Fed { range: range.range, epoch: epoch.max(range.epoch), index };
                self.get().map_or(Ok(IngestAnswer::default()), |node| {
                    node.ingest(CallContext { plan, incarnation }, fed)
                })?;
            }
        }
        Ok(incarnation)
    }

    fn applied(&self, range: RangeId) -> Result<AppliedState, NodeError> {
        self.call(|node| node.applied(range))
    }

    fn apply(&self, call: CallContext, mut batch: OrderBatch) -> Result<AppliedState, NodeError> {
        if self.faults().lose_removals {
            batch.orders.retain(|(_, order)| !(matches!(order, NodeOrder::Remove { .. }) && self.once_in(3)));
        }
        let range = batch.range;
        let applied = self.call(|node| node.apply(call, batch))?;
        lock(&self.last).insert(range, applied.position.unwrap_or_default());
        Ok(applied)
    }

    fn search(&self, call: CallContext, batch: SearchBatch) -> Result<Vec<SearchOutcome>, NodeError> {
        self.call(|node| node.search(call, batch))
    }

    fn entries(&self, call: CallContext, request: EntriesRequest) -> Result<EntriesPage, NodeError> {
        self.call(|node| node.entries(call, request))
    }

    fn ingest(&self, call: CallContext, batch: IngestBatch) -> Result<IngestAnswer, NodeError> {
        self.call(|node| node.ingest(call, batch))
    }

    fn drop_partition(&self, call: CallContext, limit: usize) -> Result<bool, NodeError> {
        self.call(|node| node.drop_partition(call, limit))
    }

    fn save(&self, call: CallContext, moments: Vec<(RangeId, LogPosition)>) -> Result<(), NodeError> {
        self.call(|node| node.save(call, moments))
    }

    fn load(&self, call: CallContext) -> Result<NodeLoadReport, NodeError> {
        self.call(|node| node.load(call))
    }

    fn sample(&self, call: CallContext, request: SampleRequest) -> Result<SampleAnswer, NodeError> {
        self.call(|node| node.sample(call, request))
    }

    fn repeats(&self, call: CallContext, range: RangeId, after: u64) -> Result<Vec<Repeat>, NodeError> {
        self.call(|node| node.repeats(call, range, after))
    }

    fn acknowledge_repeats(&self, call: CallContext, range: RangeId, through: u64) -> Result<(), NodeError> {
        self.call(|node| node.acknowledge_repeats(call, range, through))
    }
}
