//! The coordinator: the public HTTP interface of Doppel over both tiers.
//!
//! A request passes the fast path (`front`), the middleware, and the module of its route. Texts go through
//! the extractors of [`doppel_engine::ingest`]. The route then calls tier 1 or tier 2 through the traits of
//! `doppel_protocol`, on threads that may block. A coordinator stores no pages and no groups. It reads the
//! tiers for every answer about them, so several coordinators can run side by side.
//!
//! Invariants:
//!
//! - Advice calls a page a duplicate only after the pairwise function F was verified on current contents
//!   (guarantee G5, `doppel_engine::advise`).
//! - [`limits`] bounds every buffer, queue and wait (guarantee G6).
//! - Every error is a problem document of a named kind (`problem_kind`), built in one place (`problem`).
//! - The OpenAPI document and the routes come from one source (`router`). Rules for all operations are stated
//!   once (`contract`).
#![forbid(unsafe_code)]
#![expect(
    unused_qualifications,
    reason = "utoipa::path writes the types of its params with their full paths"
)]

pub mod access;
mod again;
mod answers;
pub mod app;
mod arrival;
mod assets;
mod backup;
mod body;
mod buffer;
mod calls;
mod changes;
mod cluster;
mod contract;
mod explain;
mod extract;
mod front;
mod group_report;
mod groups;
mod held;
mod history;
mod kept_report;
pub mod limits;
mod lines;
mod load;
mod load_history;
mod many;
mod mapping;
mod memory;
mod metrics;
mod middleware;
mod operations;
mod pages;
mod problem;
mod problem_kind;
mod query;
mod raw_page_query;
mod readiness;
mod repair;
mod repairs;
mod reports;
mod request_id;
mod router;
mod sample;
mod savings_report;
mod server;
pub(crate) mod services;
#[cfg(feature = "simulation")]
#[doc(hidden)]
pub mod simulation;
mod status;
mod stream;
mod submit;
#[cfg(test)]
mod tests;
#[cfg(feature = "otel")]
mod tracing_context;
mod waiting;
mod winners;

pub use problem::Problem;
pub use router::openapi;
pub use server::{Doors, serve};
pub use waiting::wait;
