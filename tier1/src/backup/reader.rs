//! Reads a backup file, and verifies everything that it reads.

use std::io::{self, Read};

use doppel_model::stable_hash64;
use doppel_protocol::BackupSummary;
use serde::de::DeserializeOwned;

use super::file_format::{BLOCK_BYTES_MAX, BackupEnd, HEAD_BYTES, MAGIC, MAGIC_INCREMENT};
use super::{BackupHash, BackupHead, BlockKind, entry};
use crate::rows::record::VERSION;
use crate::storage::store::Write;

/// Why a file cannot be used as a backup.
#[derive(Debug, thiserror::Error)]
pub enum BackupFileError {
    /// The file cannot be read.
    #[error("the file cannot be read")]
    Io(#[source] io::Error),
    /// The file is not a backup, or not of the expected kind.
    #[error("it is not a Doppel backup, or has the layout of another version")]
    Foreign,
    /// The file has records of another program version.
    #[error(
        "it has records of version {found}, and this program has version {VERSION}: restore it with the \
         program that made it, and load the pages into a new directory of this program"
    )]
    Records {
        /// Version of the records in the file.
        found: u8,
    },
    /// The file ends too early. Contains the number of complete blocks.
    #[error("it is cut off after {0} complete blocks; copy it again, or use another backup")]
    Cut(u64),
    /// A block differs from what was written.
    #[error("block {block} is damaged: {reason}")]
    Damaged {
        /// Number of the block, counted from 1.
        block: u64,
        /// How the damage was detected.
        reason: &'static str,
    },
    /// The rows of a full backup are not in the order of their keys.
    #[error("its rows are not in order, so no increment can follow it; make a full backup")]
    Unordered,
    /// The file differs from the file that was verified before.
    #[error("it was changed while it was read; try again")]
    Replaced,
}

/// A backup file that is open for reading.
pub struct BackupReader<R> {
    input: R,
    head: BackupHead,
    /// Totals of the blocks read so far.
    read: BackupEnd,
    /// Number of bytes read so far.
    bytes: u64,
}

impl<R: Read> BackupReader<R> {
    /// Opens a backup and reads its head.
    ///
    /// # Errors
    /// If the file is not a backup, is of another version, or has a damaged head.
    pub fn open(mut input: R) -> Result<Self, BackupFileError> {
        let mut magic = [0; MAGIC.len()];
        read_exact(&mut input, &mut magic)?.ok_or(BackupFileError::Foreign)?;
        if magic != MAGIC && magic != MAGIC_INCREMENT {
            return Err(BackupFileError::Foreign);
        }
        let head = BackupHead { records: 0, directory_manifest: String::new(), follows: None };
        let mut this = Self { input, head, read: BackupEnd::default(), bytes: MAGIC.len() as u64 };
        let (kind, content) = this.block()?;
        if kind != BlockKind::Head {
            return Err(this.damaged("it should be the head"));
        }
        this.head = this.json(&content)?;
        if this.head.follows.is_some() != (magic == MAGIC_INCREMENT) {
            return Err(this.damaged("its kind of backup differs from the first line"));
        }
        match this.head.records {
            VERSION => Ok(this),
            found => Err(BackupFileError::Records { found }),
        }
    }

    /// The head of the backup.
    #[must_use]
    pub fn head(&self) -> &BackupHead {
        &self.head
    }

    /// Numbers of rows, changes, and bytes read so far.
    #[must_use]
    pub fn summary(&self) -> BackupSummary {
        BackupSummary { rows: self.read.rows, changes: self.read.changes, bytes: self.bytes }
    }

    /// Hash of the blocks read so far. After the end was read, this is the hash of the backup.
    #[must_use]
    pub fn hash(&self) -> BackupHash {
        BackupHash::new(self.read.checksum)
    }

    /// Returns the next writes, which the caller applies in order. Returns `None` after the whole backup was
    /// read and verified.
    ///
    /// # Errors
    /// If the backup is damaged or cut off.
    pub fn writes(&mut self) -> Result<Option<Vec<Write>>, BackupFileError> {
        Ok(self.entries()?.map(|(_, writes)| writes))
    }

    /// Like [`writes`](Self::writes), but also returns the kind of the block: rows, or changes that were
    /// committed while the rows were read.
    pub(crate) fn entries(&mut self) -> Result<Option<(BlockKind, Vec<Write>)>, BackupFileError> {
        let before = self.read;
        let (kind, content) = self.block()?;
        match kind {
            BlockKind::Head => Err(self.damaged("it is a second head")),
            BlockKind::End => {
                let end: BackupEnd = self.json(&content)?;
                if end != before {
                    return Err(self.damaged("its totals differ from the blocks before it"));
                }
                match read_exact(&mut self.input, &mut [0])? {
                    None => Ok(None),
                    Some(()) => Err(self.damaged("more bytes follow the end")),
                }
            }
            BlockKind::Rows if before.changes > 0 => Err(self.damaged("it has rows, but follows changes")),
            BlockKind::Rows | BlockKind::Changes => {
                let mut input = content.as_slice();
                let mut writes = Vec::new();
                while let Some(write) = entry::read(&mut input, content.len())
                    .map_err(|_| self.damaged("it ends within a row"))?
                {
                    writes.push(write);
                }
                let count =
                    if kind == BlockKind::Rows { &mut self.read.rows } else { &mut self.read.changes };
                *count += writes.len() as u64;
                Ok(Some((kind, writes)))
            }
        }
    }

    fn block(&mut self) -> Result<(BlockKind, Vec<u8>), BackupFileError> {
        let cut = BackupFileError::Cut(self.read.blocks);
        let mut head = [0; HEAD_BYTES];
        if read_exact(&mut self.input, &mut head)?.is_none() {
            return Err(cut);
        }
        let number = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let (packed, unpacked) = (number(1) as usize, number(5) as usize);
        if packed.max(unpacked) > BLOCK_BYTES_MAX {
            return Err(self.damaged("it claims to be longer than any block"));
        }
        let mut checked = head[..9].to_vec();
        // The buffer grows with the bytes that the file really has, whatever length the block claims.
        let read =
            self.input.by_ref().take(packed as u64).read_to_end(&mut checked).map_err(BackupFileError::Io)?;
        if read < packed {
            return Err(cut);
        }
        let checksum = stable_hash64(&checked);
        if head[9..] != checksum.to_le_bytes() {
            return Err(self.damaged("its checksum does not fit"));
        }
        let kind = match head[0] {
            b'h' => BlockKind::Head,
            b'r' => BlockKind::Rows,
            b'c' => BlockKind::Changes,
            b'e' => BlockKind::End,
            _ => return Err(self.damaged("its kind is unknown")),
        };
        let content = zstd::bulk::decompress(&checked[9..], unpacked)
            .ok()
            .filter(|content| content.len() == unpacked)
            .ok_or_else(|| self.damaged("it cannot be unpacked"))?;
        self.read.add(checksum);
        self.bytes += (HEAD_BYTES + packed) as u64;
        Ok((kind, content))
    }

    fn json<T: DeserializeOwned>(&self, content: &[u8]) -> Result<T, BackupFileError> {
        serde_json::from_slice(content)
            .map_err(|_| self.damaged("its JSON does not have the expected fields"))
    }

    fn damaged(&self, reason: &'static str) -> BackupFileError {
        BackupFileError::Damaged { block: self.read.blocks + 1, reason }
    }
}

/// Fills the buffer. Returns `None` if the input ends before the buffer is full.
fn read_exact(input: &mut dyn Read, buffer: &mut [u8]) -> Result<Option<()>, BackupFileError> {
    match input.read_exact(buffer) {
        Ok(()) => Ok(Some(())),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(BackupFileError::Io(error)),
    }
}
