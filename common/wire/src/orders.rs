//! Orders to the router of tier 2, which may be in another process and may move.
//!
//! [`RemoteOrders`] is the client for tier 1, and [`serve`] is the server of the router. Orders wait in a
//! queue until the router confirms that it has accepted them. A thread sends the queue in order and resends
//! it after a failure. The router ignores orders that it already has.
//!
//! A router that was restarted or moved has another session id. Orders that the previous router had accepted
//! may be lost. Therefore the queue is dropped, and the ranges learn about the loss from
//! [`IndexOrders::has_lost`].
//!
//! Invariants: the router accepts the orders of a range in sequence. The queue is never locked during a call.

mod order_sender;
mod queue;
mod router_location;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use doppel_contract::LoadReport;
use doppel_model::RangeId;
use doppel_model::signature::Signature;
use doppel_protocol::{
    IndexError, IndexOrders, Orders, PartitionLookup, RefusedOrders, Tier2Api, VerifiedPartner,
};
use serde::{Deserialize, Serialize};

use crate::router_slot::RouterSlot;
use crate::tier2::RemoteTier2;
use crate::transport::call::{calls, with};
use crate::transport::call_sizes::SIGNATURES_BYTES_MAX;
use crate::transport::listener::CallListener;
use crate::transport::peer::Peer;

use order_sender::OrderSender;
pub use router_location::{CurrentRouter, RouterLocation};

/// Number of concurrent calls: one for each node of tier 1, plus retries.
const CALLS: usize = 32;

calls! {
    Order = "tier2/orders": OrdersRequest => Result<OrdersAnswer, IndexError>
        { REQUEST_BYTES_MAX: usize = SIGNATURES_BYTES_MAX, ANSWER_BYTES_MAX: usize = 16 << 20 };
}

/// Orders for the router. Without orders, the call only asks how many orders are waiting.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct OrdersRequest {
    /// Session that the orders are for. A router with another session ignores them.
    session: Option<u64>,
    orders: Vec<Orders>,
    /// See [`Tier2Api::flush_batch`].
    flush: bool,
}

/// The router's session, and the outcomes of the orders if they were for this session.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct OrdersAnswer {
    session: u64,
    /// An outcome for each of the orders; empty if the orders were for another session.
    outcomes: Vec<Result<(), IndexError>>,
    /// See [`Tier2Api::waiting`].
    waiting: Result<u64, IndexError>,
}

/// Client of the router of tier 2, wherever the router is, as tier 1 sees it.
pub struct RemoteOrders {
    sender: OrderSender,
    router: Arc<dyn CurrentRouter>,
}

impl RemoteOrders {
    /// Creates a client of the router behind `peer`. Starts the thread `tier2-orders`, which ends with
    /// [`stop`](Self::stop) or when the last handle is dropped. It must end before the threads of the peer
    /// do.
    ///
    /// # Errors
    /// If the operating system cannot create the thread.
    pub fn start(peer: Peer) -> io::Result<Arc<Self>> {
        Self::start_at(Arc::new(peer))
    }

    /// Like [`start`](Self::start), but asks `router` before every call where the router is.
    ///
    /// # Errors
    /// If the operating system cannot create the thread.
    pub fn start_at(router: Arc<dyn CurrentRouter>) -> io::Result<Arc<Self>> {
        let location = Arc::clone(&router);
        let sender = OrderSender::start(move |request| send(&*location, request))?;
        Ok(Arc::new(Self { sender, router }))
    }

    /// Makes a call to the present router.
    fn ask<R>(&self, ask: impl FnOnce(&dyn Tier2Api) -> Result<R, IndexError>) -> Result<R, IndexError> {
        match self.router.current()? {
            RouterLocation::Here(router, _) => ask(&*router),
            RouterLocation::There(peer) => ask(&RemoteTier2::new(peer)),
        }
    }

    /// Ends the thread and waits for its present call. Shutting down the [`Runtime`](crate::Runtime) breaks
    /// off that call. Waiting orders are dropped, because tier 1 still has them.
    pub fn stop(&self) {
        self.sender.stop();
    }
}

impl IndexOrders for RemoteOrders {
    fn submit(&self, orders: Orders) -> Result<(), RefusedOrders> {
        self.sender.submit(orders)
    }

    fn has_lost(&self, range: RangeId) -> bool {
        self.sender.has_lost(range)
    }
}

impl Tier2Api for RemoteOrders {
    fn probe(&self, signature: &Signature) -> Result<Vec<VerifiedPartner>, IndexError> {
        self.ask(|router| router.probe(signature))
    }

    fn locate(&self, signature: &Signature) -> Result<PartitionLookup, IndexError> {
        self.ask(|router| router.locate(signature))
    }

    fn load(&self) -> Result<LoadReport, IndexError> {
        self.ask(|router| router.load())
    }

    /// Returns the number of orders in the queue, plus the number that the router last reported. Returns at
    /// once. Fails before the router's first answer, and if the router has not answered for some seconds.
    fn waiting(&self) -> Result<usize, IndexError> {
        self.sender.waiting()
    }

    /// Returns at once. The next calls request a flush until the orders that are queued now have been sent.
    fn flush_batch(&self) -> Result<(), IndexError> {
        self.sender.flush()
    }
}

/// Adds the orders call to the listener of a process that may have the router. While the router is elsewhere,
/// the call fails with [`IndexError::Unavailable`], and orders wait at the sender.
#[must_use]
pub fn serve(listener: CallListener, slot: &Arc<RouterSlot>) -> CallListener {
    let answer = |slot: &RouterSlot, request| {
        let (router, session) = slot.router()?;
        Ok(accept(&*router, session, request))
    };
    listener.at_once(CALLS).answer::<Order>(with!(slot, |slot, request| answer(&slot, request)))
}

/// Sends a request to the present router.
fn send(router: &dyn CurrentRouter, request: OrdersRequest) -> Result<OrdersAnswer, IndexError> {
    match router.current()? {
        RouterLocation::Here(router, session) => Ok(accept(&*router, session, request)),
        RouterLocation::There(peer) => peer.call::<Order>(&request)?,
    }
}

fn accept<R: IndexOrders + ?Sized>(router: &R, session: u64, request: OrdersRequest) -> OrdersAnswer {
    let mut outcomes = Vec::new();
    if request.session == Some(session) {
        let mut refused = BTreeMap::new();
        outcomes.extend(request.orders.into_iter().map(|orders| accept_next(router, orders, &mut refused)));
        if request.flush
            && let Err(error) = router.flush_batch()
        {
            tracing::debug!(%error, "tier 2 does not flush its batch");
        }
    }
    OrdersAnswer { session, outcomes, waiting: router.waiting().map(|waiting| waiting as u64) }
}

/// Submits orders unless the router refused earlier orders of the same range, which they would otherwise
/// overtake. Only orders with a stale epoch do not hold up later ones.
fn accept_next<R: IndexOrders + ?Sized>(
    router: &R,
    orders: Orders,
    refused: &mut BTreeMap<RangeId, IndexError>,
) -> Result<(), IndexError> {
    let range = orders.range;
    if let Some(error) = refused.get(&range) {
        return Err(error.clone());
    }
    let outcome = router.submit(orders).map_err(|refused| refused.error);
    if let Err(error) = &outcome
        && !matches!(error, IndexError::StaleEpoch { .. })
    {
        refused.insert(range, error.clone());
    }
    outcome
}
