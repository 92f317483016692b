//! Requests between the processes of a cluster: HTTP/1.1 with a compact body.
//!
//! A request is `POST /wire/CALL` with the [postcard] form of what is asked for; the answer has the form of what came of
//! it, failures of the asked role among it. Every request says which protocol version it speaks, which cluster and which
//! node it is for, and proves with the cluster's secret that it comes from there. What does not fit is refused before its
//! body is read, in plain text, so that an older or a newer version can read the reason.
//!
//! | module | what |
//! |---|---|
//! | `identity`, `secret` | which process of which cluster this is |
//! | `call` | one kind of request: its types, its limits, its time |
//! | `peer` | the asking side: deadlines, retries with jitter |
//! | `listener` | the answering side: checks, permits, worker threads |
//! | `refusal`, `json` | why a request is not carried out; values of the public contract in a body |
//! | `pieces` | how much one call brings |
//! | `haste` | calls that somebody else can answer as well |
//! | `index_node`, `range_owner`, `signatures`, `tier1`, `tier2`, `backup` | the traits of `doppel_protocol` over this |
//! | `orders` | orders to a router: a queue, and the thread that sends it to wherever the router is |
//! | `seat` | the place of a router in a process, taken or empty |
//! | `spread` | tier 1 on several nodes as one |
//! | `traffic` | how much a process has sent and received |
//!
//! Invariants: every body has a limit on both sides, and every call a deadline; a call is made again by itself only when
//! that is harmless; no call runs on an async thread; the secret is in no log and no error.
//!
//! [postcard]: https://postcard.jamesmunns.com/wire-format
#![forbid(unsafe_code)]

mod backup;
mod call;
mod haste;
mod identity;
pub mod index_node;
mod json;
mod listener;
pub mod orders;
mod peer;
mod pieces;
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
