//! Orders to the router of tier 2, in another process or wherever it is at present.
//!
//! [`RemoteOrders`] is the side of tier 1, [`serve`] that of the router. Orders wait in a queue until the router says that it
//! has taken them. A thread sends the queue in order, and again after a failure: what the router has it ignores. A router that
//! was started anew or is at another place names another session. What the one before had taken may be lost then, so the queue
//! is dropped and the ranges are told ([`IndexOrders::has_lost`]).
//!
//! Invariant: orders of a range are taken in their order. Nothing is sent while the queue is locked.

mod courier;
mod queue;
#[cfg(test)]
mod tests;
mod way;

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use doppel_model::RangeId;
use doppel_model::signature::Signature;
use doppel_protocol::{
    IndexError, IndexOrders, LoadReport, Orders, Pair, PartitionLookup, RefusedOrders, Tier2Api,
};
use serde::{Deserialize, Serialize};

use crate::call::{calls, with};
use crate::listener::Listener;
use crate::peer::Peer;
use crate::pieces::SIGNATURES_BYTES_MAX;
use crate::seat::RouterSeat;
use crate::tier2::RemoteTier2;

use courier::Courier;
pub use way::{CurrentRouter, RouterAt};

/// Calls at once: one for each node of tier 1, and those that are made again.
const CALLS: usize = 32;

calls! {
    Order = "tier2/orders": OrdersRequest => Result<OrdersAnswer, IndexError>
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

/// The router of tier 2 wherever it is, as tier 1 sees it.
pub struct RemoteOrders {
    courier: Courier,
    router: Arc<dyn CurrentRouter>,
}

impl RemoteOrders {
    /// The router in the process that answers there. Starts the thread `tier2-orders`; it ends with [`stop`](Self::stop), or
    /// with the last handle, and before the threads of the peer do.
    ///
    /// # Errors
    /// When the operating system gives no thread.
    pub fn start(peer: Peer) -> io::Result<Arc<Self>> {
        Self::start_at(Arc::new(peer))
    }

    /// The router wherever `router` says that it is; it is asked for every call. Otherwise as [`start`](Self::start).
    ///
    /// # Errors
    /// When the operating system gives no thread.
    pub fn start_at(router: Arc<dyn CurrentRouter>) -> io::Result<Arc<Self>> {
        let way = Arc::clone(&router);
        let courier = Courier::start(move |request| send(&*way, request))?;
        Ok(Arc::new(Self { courier, router }))
    }

    /// Asks the router where it is at present.
    fn ask<R>(&self, ask: impl FnOnce(&dyn Tier2Api) -> Result<R, IndexError>) -> Result<R, IndexError> {
        match self.router.current()? {
            RouterAt::Here(router, _) => ask(&*router),
            RouterAt::There(peer) => ask(&RemoteTier2::new(peer)),
        }
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
        self.ask(|router| router.probe(signature))
    }

    fn locate(&self, signature: &Signature) -> Result<PartitionLookup, IndexError> {
        self.ask(|router| router.locate(signature))
    }

    fn load(&self) -> Result<LoadReport, IndexError> {
        self.ask(|router| router.load())
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

/// Adds the call of tier 1 to the listener of a process where the router may be. While it is not, the call says so, and orders
/// wait where they are.
#[must_use]
pub fn serve(listener: Listener, seat: &Arc<RouterSeat>) -> Listener {
    let answer = |seat: &RouterSeat, request| {
        let (router, session) = seat.taken()?;
        Ok(take(&*router, session, request))
    };
    listener.at_once(CALLS).answer::<Order>(with!(seat, |seat, request| answer(&seat, request)))
}

/// Hands a call over to the router where it is at present.
fn send(router: &dyn CurrentRouter, request: OrdersRequest) -> Result<OrdersAnswer, IndexError> {
    match router.current()? {
        RouterAt::Here(router, session) => Ok(take(&*router, session, request)),
        RouterAt::There(peer) => peer.call::<Order>(&request)?,
    }
}

fn take<R: IndexOrders + ?Sized>(router: &R, session: u64, request: OrdersRequest) -> OrdersAnswer {
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
fn take_next<R: IndexOrders + ?Sized>(
    router: &R,
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
