//! A node of Doppel: the data directory of a collection, the tiers that are assembled on it, and what every server process does.
//!
//! This crate is the one place that names all roles. The command line and the evaluation start nodes through it.
#![forbid(unsafe_code)]

pub mod args;
pub mod directory;
pub mod engine;
pub mod front_door;
pub mod process;
pub mod winners;
