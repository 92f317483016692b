//! Where the router is, looked up for every call.

use std::sync::Arc;

use doppel_protocol::{IndexError, IndexOrders};

use crate::peer::Peer;

/// Where a router is.
pub enum RouterAt {
    /// In this process, with its session: see [`RouterSeat::sit`](crate::seat::RouterSeat::sit). It is the router itself, not a
    /// way to it.
    Here(Arc<dyn IndexOrders>, u64),
    /// In that process.
    There(Peer),
}

/// Knows where the router is.
pub trait CurrentRouter: Send + Sync {
    /// Where it is at present. Does not block.
    ///
    /// # Errors
    /// When nobody knows. Orders wait until somebody does.
    fn current(&self) -> Result<RouterAt, IndexError>;
}

/// A router that is always in that process.
impl CurrentRouter for Peer {
    fn current(&self) -> Result<RouterAt, IndexError> {
        Ok(RouterAt::There(self.clone()))
    }
}
