//! The command to a tier-1 node to take over a range, which an operator requests.

use doppel_model::RangeId;
use doppel_protocol::range_owner::PeerError;

use crate::transport::call::calls;
use crate::transport::listener::CallListener;
use crate::transport::peer::Peer;

/// Number of concurrent calls.
const CALLS: usize = 4;

calls! {
    TakeOver = "tier1/take-over": RangeId => Result<(), PeerError>;
}

/// Tells a node to begin taking over a range.
///
/// # Errors
/// If the node has no replica of the range, or does not answer.
pub fn take_over(peer: &Peer, range: RangeId) -> Result<(), PeerError> {
    peer.call::<TakeOver>(&range)
        .unwrap_or_else(|error| Err(PeerError::unreachable(range, error.to_string())))
}

/// Adds the take-over call to the listener of a node.
#[must_use]
pub fn serve(
    listener: CallListener,
    take_over: impl Fn(RangeId) -> Result<(), PeerError> + Send + Sync + 'static,
) -> CallListener {
    listener.at_once(CALLS).answer::<TakeOver>(take_over)
}
