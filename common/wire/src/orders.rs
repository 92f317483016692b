//! Orders to the router of tier 2 in another process.
//!
//! [`RemoteOrders`] is the side of tier 1, [`serve`] that of the router. Orders wait in a queue until the router says that it
//! has taken them. A thread sends the queue in order, and again after a failure: what the router has it ignores. A router that
//! was started anew names another session. What the one before had taken may be lost then, so the queue is dropped and the
//! ranges are told ([`IndexOrders::has_lost`]).
//!
//! Invariant: orders of a range are taken in their order. Nothing is sent while the queue is locked.

mod courier;
mod queue;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use doppel_model::RangeId;
use doppel_model::signature::Signature;
use doppel_protocol::{
    IndexError, IndexOrders, LoadReport, Orders, Pair, PartitionLookup, RefusedOrders, Tier2Api,
};
use serde::{Deserialize, Serialize};

use crate::call::calls;
use crate::listener::Listener;
use crate::peer::Peer;
use crate::pieces::SIGNATURES_BYTES_MAX;
use crate::tier2::RemoteTier2;

use courier::Courier;

/// Calls at once: one for each node of tier 1, and those that are made again.
const CALLS: usize = 32;

calls! {
    Order = "tier2/orders": OrdersRequest => OrdersAnswer
        { REQUEST_BYTES_MAX: usize = SIGNATURES_BYTES_MAX, ANSWER_BYTES_MAX: usize = 16 << 20 };
}

/// Orders, or the question how many wait.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct OrdersRequest {
    /// The session that the orders are for. In any other they are not taken.
    session: Option<u64>,
    orders: Vec<Orders>,
    /// See [`Tier2Api::flush_batch`].
    flush: bool,
}

/// What the router says of its session, and of the orders if they were for it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct OrdersAnswer {
    session: u64,
    /// One for each of the orders; none when they were for another session.
    taken: Vec<Result<(), IndexError>>,
    /// See [`Tier2Api::waiting`].
    waiting: Result<u64, IndexError>,
}

/// The router of tier 2 in another process, as tier 1 sees it.
pub struct RemoteOrders {
    courier: Courier,
    router: RemoteTier2,
}

impl RemoteOrders {
    /// The router in the process that answers there. Starts the thread `tier2-orders`; it ends with [`stop`](Self::stop), or
    /// with the last handle, and before the threads of the peer do.
    ///
    /// # Errors
    /// When the operating system gives no thread.
    pub fn start(peer: Peer) -> io::Result<Arc<Self>> {
        let router = RemoteTier2::new(peer.clone());
        let courier = Courier::start(move |request: &OrdersRequest| peer.call::<Order>(request))?;
        Ok(Arc::new(Self { courier, router }))
    }

    /// Ends the thread, and waits for the call that it makes; the end of the [`Runtime`](crate::Runtime) breaks that off. Orders
    /// that wait are dropped: tier 1 has them.
    pub fn stop(&self) {
        self.courier.stop();
    }
}

impl IndexOrders for RemoteOrders {
    fn submit(&self, orders: Orders) -> Result<(), RefusedOrders> {
        self.courier.submit(orders)
    }

    fn has_lost(&self, range: RangeId) -> bool {
        self.courier.has_lost(range)
    }
}

impl Tier2Api for RemoteOrders {
    fn probe(&self, signature: &Signature) -> Result<Vec<Pair>, IndexError> {
        self.router.probe(signature)
    }

    fn locate(&self, signature: &Signature) -> Result<PartitionLookup, IndexError> {
        self.router.locate(signature)
    }

    fn load(&self) -> Result<LoadReport, IndexError> {
        self.router.load()
    }

    /// Those in the queue and those of which the router has last said that they wait there. Returns at once; fails before the
    /// router has answered, and when it has not for some seconds.
    fn waiting(&self) -> Result<usize, IndexError> {
        self.courier.waiting()
    }

    /// Returns at once: the next calls say so, until what is queued now has been sent.
    fn flush_batch(&self) -> Result<(), IndexError> {
        self.courier.flush()
    }
}

/// Adds the call of tier 1 to the listener of a router's process. `session` is a number that no other life of the router has.
#[must_use]
pub fn serve(listener: Listener, orders: &Arc<dyn IndexOrders>, session: u64) -> Listener {
    let orders = Arc::clone(orders);
    listener.at_once(CALLS).answer::<Order>(move |request| take(&*orders, session, request))
}

fn take(router: &dyn IndexOrders, session: u64, request: OrdersRequest) -> OrdersAnswer {
    let mut taken = Vec::new();
    if request.session == Some(session) {
        let mut refused = BTreeMap::new();
        taken.extend(request.orders.into_iter().map(|orders| take_next(router, orders, &mut refused)));
        if request.flush
            && let Err(error) = router.flush_batch()
        {
            tracing::debug!(%error, "tier 2 does not flush its batch");
        }
    }
    OrdersAnswer { session, taken, waiting: router.waiting().map(|waiting| waiting as u64) }
}

/// Takes orders unless earlier ones of the range were not: they would overtake those. Only what is stale holds up nothing.
fn take_next(
    router: &dyn IndexOrders,
    orders: Orders,
    refused: &mut BTreeMap<RangeId, IndexError>,
) -> Result<(), IndexError> {
    let range = orders.range;
    if let Some(error) = refused.get(&range) {
        return Err(error.clone());
    }
    let taken = router.submit(orders).map_err(|refused| refused.error);
    if let Err(error) = &taken
        && !matches!(error, IndexError::StaleEpoch { .. })
    {
        refused.insert(range, error.clone());
    }
    taken
}
