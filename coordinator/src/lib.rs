//! The coordinator: the public HTTP interface of Doppel over both tiers.
//!
//! A request passes the fast path and the middleware (`server`), and reaches the handler of its route
//! (`routes`). Texts go through the extractors of [`doppel_engine::ingest`]. The handler then calls tier 1 or
//! tier 2 through the traits of `doppel_protocol`, on threads that may block (`app`). A coordinator stores no
//! pages and no groups. It reads the tiers for every answer about them, so several coordinators can run side
//! by side.
//!
//! Invariants:
//!
//! - Advice calls a page a duplicate only after the pairwise function F was verified on current contents
//!   (guarantee G5, `doppel_engine::advise`).
//! - [`limits`] bounds every buffer, queue and wait (guarantee G6).
//! - Every error is a problem document of a named kind, built in one place (`problem`).
//! - The OpenAPI document and the routes come from one source (`routes`). Rules for all operations are stated
//!   once (`contract`).
#![forbid(unsafe_code)]
#![expect(
    unused_qualifications,
    reason = "utoipa::path writes the types of its params with their full paths"
)]

pub mod access;
pub mod app;
mod contract;
pub mod limits;
mod metrics;
mod problem;
mod reports;
mod request;
mod response;
mod routes;
mod server;
#[cfg(feature = "simulation")]
#[doc(hidden)]
pub mod simulation;
#[cfg(test)]
mod tests;

pub use problem::Problem;
pub use routes::openapi;
pub use server::startup::serve_until_reached;
pub use server::{ServerListeners, serve};
