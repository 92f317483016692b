//! The place of the router of tier 2 in a process: it may be taken or empty, and change while calls come.

use std::mem;
use std::sync::{Arc, PoisonError, RwLock};

use doppel_model::RangeId;
use doppel_model::signature::Signature;
use doppel_partitioning::Plan;
use doppel_protocol::{
    IndexError, IndexOrders, LoadReport, MappingApi, Orders, Pair, PartitionLookup, RebalanceError,
    RebalanceOutcome, RebalancePlan, RebalanceProgress, RebalanceRequest, RefusedOrders, Tier2Api,
};

use crate::tier2::ask_present_router;

/// A router of tier 2, as tier 1 and a front door see it.
pub trait Router: IndexOrders + MappingApi {}

impl<T: IndexOrders + MappingApi + ?Sized> Router for T {}

/// Where the router of this process is, when it is here. Otherwise every call fails with [`IndexError::Unavailable`].
///
/// A call that is under way when the router leaves is answered by that router still.
#[derive(Default)]
pub struct RouterSeat(RwLock<Option<(Arc<dyn Router>, u64)>>);

impl RouterSeat {
    /// An empty seat.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The router is here from now on. `session` is a number that no other life of a router has, here or elsewhere, and no other
    /// time that this one sat anywhere: by it those who give orders see that earlier ones may be lost.
    pub fn sit(&self, router: Arc<dyn Router>, session: u64) {
        self.set(Some((router, session)));
    }

    /// There is no router here from now on.
    pub fn leave(&self) {
        self.set(None);
    }

    fn set(&self, taken: Option<(Arc<dyn Router>, u64)>) {
        let left = mem::replace(&mut *self.0.write().unwrap_or_else(PoisonError::into_inner), taken);
        // This may be its last handle, and its end takes time: not under the lock.
        drop(left);
    }

    /// The router that is here, and its session.
    ///
    /// # Errors
    /// [`IndexError::Unavailable`] when there is none.
    pub fn taken(&self) -> Result<(Arc<dyn Router>, u64), IndexError> {
        let taken = self.0.read().unwrap_or_else(PoisonError::into_inner).clone();
        taken.ok_or_else(|| IndexError::Unavailable("the router of the index is not at this node".to_owned()))
    }

    fn present(&self) -> Result<Arc<dyn Router>, IndexError> {
        self.taken().map(|(router, _)| router)
    }
}

ask_present_router!(RouterSeat);

impl IndexOrders for RouterSeat {
    fn submit(&self, orders: Orders) -> Result<(), RefusedOrders> {
        match self.present() {
            Ok(router) => router.submit(orders),
            Err(error) => Err(RefusedOrders { orders, error }),
        }
    }

    /// What the present router says of itself. That it is another one than before is not told here: whoever gives orders to a
    /// router that moves has [`RemoteOrders`](crate::orders::RemoteOrders) follow it.
    fn has_lost(&self, range: RangeId) -> bool {
        self.present().is_ok_and(|router| router.has_lost(range))
    }
}
