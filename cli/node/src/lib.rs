//! A node of Doppel: the data directory of a collection, the tiers assembled on it, and the parts that all
//! server processes share.
//!
//! Only this crate names all roles. The command line and the evaluation start nodes through it.
#![forbid(unsafe_code)]

pub mod args;
pub mod directory;
pub mod engine;
pub mod front_door;
pub mod process;
pub mod winners;
