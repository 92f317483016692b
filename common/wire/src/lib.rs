//! Calls between the processes of a cluster, over HTTP/1.1 with a compact body.
//!
//! A request is `POST /wire/CALL`. Its body is the [postcard] encoding of the call's arguments. The body of
//! the answer encodes the result, including errors of the called role. Every request states the protocol
//! version, the cluster, and the receiving node. The cluster's secret proves that it comes from a process of
//! the cluster. The receiver refuses a wrong request before it reads the body. The reason is plain text, so
//! that an older or newer version can read it.
//!
//! | module | responsibility |
//! |---|---|
//! | `transport::identity`, `transport::secret` | identity of a process in its cluster |
//! | `transport::call` | a kind of call: its types, limits and deadline |
//! | `transport::peer`, `transport::wire_error` | the client: deadlines, retries with jitter, and its errors |
//! | `transport::listener` | the server: checks, permits, worker threads |
//! | `transport::refusal`, `transport::json` | why a request is refused; values of the public contract in a body |
//! | `transport::call_sizes` | splitting of work that is too large for one call |
//! | `transport::circuit_breaker` | fast failure of calls that another node can answer as well |
//! | `index_node`, `range_owner`, `signatures`, `tier1`, `tier2`, `backup` | traits as calls |
//! | `orders` | orders to the router: a queue, and the thread that sends it to the present router |
//! | `router_slot` | the slot for the router in a process, which may be empty |
//! | `spread` | several nodes of tier 1 as a single tier 1 |
//! | `take_over` | the command to take over a range |
//! | `traffic` | counts of the bytes that a process sends and receives |
//!
//! Invariants: every body has a size limit on both sides, and every call has a deadline. A call is retried
//! automatically only if that is harmless. No call runs on an async thread. The secret never appears in a log
//! or an error.
//!
//! [postcard]: https://postcard.jamesmunns.com/wire-format
#![forbid(unsafe_code)]

mod backup;
pub mod index_node;
pub mod orders;
pub mod range_owner;
pub mod router_slot;
pub mod signatures;
pub mod spread;
pub mod take_over;
pub mod tier1;
pub mod tier2;
pub mod traffic;
mod transport;

pub use transport::call::{Call, VERSION};
pub use transport::identity::{Identity, InvalidNodeName, NodeName};
pub use transport::listener::{CallListener, PanicPolicy};
pub use transport::peer::{Peer, Runtime};
pub use transport::refusal::Refusal;
pub use transport::secret::{Secret, SecretError};
pub use transport::wire_error::WireError;

#[cfg(test)]
mod tests;
