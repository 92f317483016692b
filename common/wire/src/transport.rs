//! The transport of calls: HTTP requests and answers with limits, deadlines, retries, and proofs of identity.
//!
//! `peer` is the client and `listener` is the server. Both know calls only by the trait `call::Call`, so they
//! know nothing of the traits that the calls carry.

pub(crate) mod call;
pub(crate) mod call_sizes;
pub(crate) mod circuit_breaker;
pub(crate) mod identity;
pub(crate) mod json;
pub(crate) mod listener;
pub(crate) mod peer;
pub(crate) mod refusal;
pub(crate) mod secret;
pub(crate) mod wire_error;
