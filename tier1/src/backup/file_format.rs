//! Layout of a backup file: its signature, its blocks, and the contents of its head and end.
//!
//! The file begins with a signature of 16 bytes, followed by blocks. All integers are little-endian.
//!
//! | bytes | field of a block |
//! |---|---|
//! | 1 | kind: `h` head, `r` rows, `c` changes, `e` end |
//! | 4 | length of the content as stored, in bytes |
//! | 4 | length of the unpacked content, in bytes |
//! | 8 | XXH3-64 of the preceding 9 bytes and of the content as stored |
//! | | the content, compressed with zstd |
//!
//! The head and the end are JSON. The head contains the version of the records and the directory's manifest.
//! The end contains the numbers of blocks, rows, and changes, and a checksum of all block checksums. A reader
//! therefore locates damage to one block, and recognises a file that was cut, even between two blocks, by the
//! missing end. The content of the other blocks is a list of entries ([`entry`](super::entry)). A reader that
//! applies the entries in order gets the state that was backed up.

use serde::{Deserialize, Serialize};

use super::BackupHash;

/// Signature of a full backup, with the version of the layout.
pub(super) const MAGIC: [u8; 16] = *b"doppel backup 1\n";
/// Signature of an increment. It differs, so that a program without support for increments refuses the file.
pub(super) const MAGIC_INCREMENT: [u8; 16] = *b"doppel increm 1\n";

/// Length of a block's fields before its content, in bytes.
pub(super) const HEAD_BYTES: usize = 17;

/// Maximum length of a block's content, packed or unpacked. A row is never split between blocks. The longest
/// signature, of a page of 16 MB, takes a third of this length.
pub(super) const BLOCK_BYTES_MAX: usize = 1 << 27;

/// Kind of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum BlockKind {
    Head = b'h',
    Rows = b'r',
    Changes = b'c',
    End = b'e',
}

/// Head of a backup: what the backup was made of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupHead {
    /// Version of the records.
    pub records: u8,
    /// Text of the data directory's manifest.
    #[serde(rename = "manifest")]
    pub directory_manifest: String,
    /// Backup that an increment follows; `None` for a full backup.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub follows: Option<BackupHash>,
}

/// Totals of a backup, which its last block contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct BackupEnd {
    pub(super) blocks: u64,
    pub(super) rows: u64,
    pub(super) changes: u64,
    pub(super) checksum: u64,
}
