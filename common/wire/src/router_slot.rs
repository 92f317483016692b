//! The slot for the router of tier 2 in a process. The slot may be empty, and its router may change while
//! calls arrive.

use std::mem;
use std::sync::{Arc, PoisonError, RwLock};

use doppel_contract::{LoadReport, RebalanceOutcome, RebalancePlan, RebalanceProgress, RebalanceRequest};
use doppel_model::RangeId;
use doppel_model::signature::Signature;
use doppel_partitioning::Plan;
use doppel_protocol::{
    IndexError, IndexOrders, MappingApi, Orders, PartitionLookup, RebalanceError, RefusedOrders, Tier2Api,
    VerifiedPartner,
};

use crate::tier2::ask_present_router;

/// A router of tier 2, as tier 1 and a coordinator see it.
pub trait RouterApi: IndexOrders + MappingApi {}

impl<T: IndexOrders + MappingApi + ?Sized> RouterApi for T {}

/// The slot for the router in this process. While it is empty, every call fails with
/// [`IndexError::Unavailable`].
///
/// If the router leaves during a call, that router still answers the call.
#[derive(Default)]
pub struct RouterSlot(RwLock<Option<(Arc<dyn RouterApi>, u64)>>);

impl RouterSlot {
    /// Creates an empty slot.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Puts a router into the slot. `session` must be unique among all runs of all routers, and among all
    /// times at which this router was installed. From a new session, senders of orders conclude that earlier
    /// orders may be lost.
    pub fn install(&self, router: Arc<dyn RouterApi>, session: u64) {
        self.set(Some((router, session)));
    }

    /// Removes the router from the slot.
    pub fn clear(&self) {
        self.set(None);
    }

    fn set(&self, taken: Option<(Arc<dyn RouterApi>, u64)>) {
        let left = mem::replace(&mut *self.0.write().unwrap_or_else(PoisonError::into_inner), taken);
        // This handle may be the last. Dropping the router takes time, so it happens without the lock.
        drop(left);
    }

    /// Returns the router in the slot and its session.
    ///
    /// # Errors
    /// [`IndexError::Unavailable`] if the slot is empty.
    pub fn router(&self) -> Result<(Arc<dyn RouterApi>, u64), IndexError> {
        let taken = self.0.read().unwrap_or_else(PoisonError::into_inner).clone();
        taken.ok_or_else(|| IndexError::Unavailable("the router of the index is not at this node".to_owned()))
    }

    fn present(&self) -> Result<Arc<dyn RouterApi>, IndexError> {
        self.router().map(|(router, _)| router)
    }
}

ask_present_router!(RouterSlot);

impl IndexOrders for RouterSlot {
    fn submit(&self, orders: Orders) -> Result<(), RefusedOrders> {
        match self.present() {
            Ok(router) => router.submit(orders),
            Err(error) => Err(RefusedOrders { orders, error }),
        }
    }

    /// Returns what the present router reports about itself. It does not report a change of routers. Senders
    /// of orders to a router that moves use [`RemoteOrders`](crate::orders::RemoteOrders), which detects
    /// changes.
    fn has_lost(&self, range: RangeId) -> bool {
        self.present().is_ok_and(|router| router.has_lost(range))
    }
}
