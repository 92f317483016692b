//! The location of the router, which is looked up for every call.

use std::sync::Arc;

use doppel_protocol::{IndexError, IndexOrders};

use crate::transport::peer::Peer;

/// Location of a router.
pub enum RouterLocation {
    /// The router is in this process. The number is its session: see
    /// [`RouterSlot::install`](crate::router_slot::RouterSlot::install). The handle must be the router itself, not a client
    /// of it.
    Here(Arc<dyn IndexOrders>, u64),
    /// The router is in the process behind this peer.
    There(Peer),
}

/// Knows the present location of the router.
pub trait CurrentRouter: Send + Sync {
    /// Returns the present location. Must not block.
    ///
    /// # Errors
    /// If the location is unknown. Orders then wait until it is known.
    fn current(&self) -> Result<RouterLocation, IndexError>;
}

/// A router that stays in the process behind this peer.
impl CurrentRouter for Peer {
    fn current(&self) -> Result<RouterLocation, IndexError> {
        Ok(RouterLocation::There(self.clone()))
    }
}
