//! The contents of the reports: this room computes, records and caches them. The routes in `routes::reports`
//! answer requests for reports.
//!
//! Invariant: a report that reads the whole collection is made by one thread at a time, and is cached in
//! proportion to the time that it took (`cache`).

pub(crate) mod balance_history;
pub(crate) mod cache;
pub(crate) mod group_sizes;
pub(crate) mod load_history;
pub(crate) mod savings;
