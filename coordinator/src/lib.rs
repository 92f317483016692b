//! The front door: the public HTTP contract over both tiers.
//!
//! A request's way: [`app()`] (routes, limits) → a route's module → the extractors of [`doppel_engine::ingest`] for texts →
//! tier 1 or 2 through the traits of `doppel_protocol`, on threads that may block. The front door has
//! no state of its own that an answer depends on: it reads the tiers for every answer, so several can run side by side.
//!
//! Invariants: a page is called a duplicate only after F was checked on present contents (G5, `doppel_engine::advise`);
//! every buffer, queue and wait is bounded by [`limits`] (G6); every error is a problem document made in
//! one place (`problem`), of a kind that has a name (`problem_kind`); the OpenAPI document and the routes come from one source
//! (`router`), and what holds for all operations is said once (`contract`).
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
