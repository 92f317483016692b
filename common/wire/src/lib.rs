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
//! | `identity`, `secret` | identity of a process in its cluster |
//! | `call` | a kind of call: its types, limits and deadline |
//! | `peer` | the client: deadlines, retries with jitter |
//! | `listener` | the server: checks, permits, worker threads |
//! | `refusal`, `json` | why a request is refused; values of the public contract in a body |
//! | `call_sizes` | splitting of work that is too large for one call |
//! | `circuit_breaker` | fast failure of calls that another node can answer as well |
//! | `index_node`, `range_owner`, `signatures`, `tier1`, `tier2`, `backup` | traits as calls |
//! | `orders` | orders to the router: a queue, and the thread that sends it to the present router |
//! | `seat` | the slot for the router in a process, which may be empty |
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
mod call;
mod call_sizes;
mod circuit_breaker;
mod identity;
pub mod index_node;
mod json;
mod listener;
pub mod orders;
mod peer;
pub mod range_owner;
mod refusal;
pub mod seat;
mod secret;
pub mod signatures;
pub mod spread;
pub mod take_over;
#[cfg(test)]
mod tests;
pub mod tier1;
pub mod tier2;
pub mod traffic;

pub use call::{Call, VERSION};
pub use identity::{Identity, InvalidName, NodeName};
pub use listener::{Listener, Panics};
pub use peer::{Peer, Runtime, WireError};
pub use refusal::Refusal;
pub use secret::{Secret, SecretError};
