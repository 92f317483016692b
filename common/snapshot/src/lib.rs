//! Snapshots: files with data that can be rebuilt from durable state elsewhere. A process that finds a
//! snapshot starts faster.
//!
//! A file consists of magic bytes that name its kind and version, a head in JSON, a body, and a checksum. The
//! body is a sequence of numbers, blocks of bytes, and columns of fixed-width items. The checksum is XXH3-64
//! over everything before it.
//!
//! A damaged or incomplete file must never pass for a sound one: [`SnapshotReader::finish`] verifies the
//! checksum. A crash must never leave a half-written file under the final name. A caller therefore writes a
//! new file under a temporary name, and then calls [`put`]. That function syncs the file and renames it over
//! the previous snapshot. [`create_directories`] creates the directories for such files.
#![forbid(unsafe_code)]

mod directories;
mod due;
mod file;
mod item;

pub use directories::{create_directories, sync_directory};
pub use due::{LOOK, is_due};
pub use file::{BLOCK_MAX, SnapshotError, SnapshotReader, SnapshotWriter, damage, put, sync_name, verify};
pub use item::SnapshotItem;
