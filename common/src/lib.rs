//! What every role of Doppel must agree on.
//!
//! The modules build on each other from left to right and never the other way:
//! `model` → `sketch` → `signature` → `pairwise` → `mapping` → `api`, with `text` (pages to signatures)
//! on `signature`, and `input` (crawls on disk) on `api`. Nothing here knows a store, a socket or a clock.
#![forbid(unsafe_code)]

pub mod api;
mod give_way;
pub mod input;
pub mod mapping;
pub mod model;
pub mod pairwise;
pub mod signature;
pub mod sketch;
pub mod text;

pub use give_way::give_way;
