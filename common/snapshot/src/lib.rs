//! Snapshots: files that are derived from what is durable elsewhere, and make a start short.
//!
//! A file begins with a name of its kind and version and a head in JSON. Numbers, blocks of bytes and columns of fixed-width
//! items follow, and a checksum (XXH3-64) over all of it. It is written under another name, synced, and [put](put) in the
//! place of the one before. [`create_directories`] makes the directories that such files lie in.
#![forbid(unsafe_code)]

mod directories;
mod due;
mod file;
mod item;

pub use directories::{create_directories, sync_directory};
pub use due::{LOOK, is_due};
pub use file::{BLOCK_MAX, Reader, Unreadable, Writer, damage, put, sync_name, verify};
pub use item::Item;
