//! Writes a backup file, block by block.

use std::io::{self, Write};

use doppel_model::stable_hash64;
use doppel_protocol::{BackupError, BackupSummary};
use serde::Serialize;

use super::file_format::{BLOCK_BYTES_MAX, BackupEnd, HEAD_BYTES, MAGIC, MAGIC_INCREMENT};
use super::{BackupHash, BackupHead, BlockKind, entry};
use crate::rows::record::VERSION;

/// Length of the entries at which a block is written, in bytes.
const BLOCK_BYTES: usize = 1 << 20;

/// Compression level of zstd. Signatures are hashes, so higher levels take longer and save nothing.
const LEVEL: i32 = 1;

/// Writes a backup.
pub(crate) struct BackupWriter<W> {
    out: W,
    compressor: zstd::bulk::Compressor<'static>,
    /// Entries of the next block.
    block: Vec<u8>,
    /// Kind of the next block.
    kind: BlockKind,
    /// Totals of the blocks written so far.
    end: BackupEnd,
    /// Number of bytes written so far.
    bytes: u64,
    /// A write has failed, so the file cannot become a valid backup.
    has_failed: bool,
}

impl<W: Write> BackupWriter<W> {
    /// Begins a full backup of the directory with this manifest.
    pub(crate) fn begin(out: W, manifest: &str) -> Result<Self, BackupError> {
        Self::begin_with(out, manifest, None)
    }

    /// Begins an increment that follows the backup with the hash `follows`.
    pub(super) fn begin_after(out: W, manifest: &str, follows: BackupHash) -> Result<Self, BackupError> {
        Self::begin_with(out, manifest, Some(follows))
    }

    fn begin_with(out: W, manifest: &str, follows: Option<BackupHash>) -> Result<Self, BackupError> {
        let compressor = zstd::bulk::Compressor::new(LEVEL)?;
        let mut this = Self {
            out,
            compressor,
            block: Vec::new(),
            kind: BlockKind::Rows,
            end: BackupEnd::default(),
            bytes: 0,
            has_failed: false,
        };
        let magic = if follows.is_some() { MAGIC_INCREMENT } else { MAGIC };
        this.out.write_all(&magic)?;
        this.bytes += magic.len() as u64;
        this.json(
            BlockKind::Head,
            &BackupHead { records: VERSION, directory_manifest: manifest.to_owned(), follows },
        )?;
        Ok(this)
    }

    /// Adds a row ([`BlockKind::Rows`]) or a change of one ([`BlockKind::Changes`]).
    pub(crate) fn entry(
        &mut self,
        kind: BlockKind,
        key: &[u8],
        value: Option<&[u8]>,
    ) -> Result<(), BackupError> {
        if kind != self.kind {
            self.flush()?;
            self.kind = kind;
        }
        entry::put(&mut self.block, key, value)?;
        let count = if kind == BlockKind::Rows { &mut self.end.rows } else { &mut self.end.changes };
        *count += 1;
        if self.block.len() >= BLOCK_BYTES {
            self.flush()?;
        }
        Ok(())
    }

    /// Ends the backup. The caller must add no entries afterwards.
    pub(crate) fn end(&mut self) -> Result<BackupSummary, BackupError> {
        self.flush()?;
        let end = self.end;
        self.json(BlockKind::End, &end)?;
        self.out.flush()?;
        Ok(BackupSummary { rows: end.rows, changes: end.changes, bytes: self.bytes })
    }

    /// Hash of the blocks written so far. After the end was written, this is the hash of the backup.
    pub(crate) fn hash(&self) -> BackupHash {
        BackupHash::new(self.end.checksum)
    }

    /// The output. The caller may take from it the bytes written so far.
    pub(crate) fn out(&mut self) -> &mut W {
        &mut self.out
    }

    fn flush(&mut self) -> Result<(), BackupError> {
        if self.block.is_empty() {
            return Ok(());
        }
        let mut block = std::mem::take(&mut self.block);
        self.write(self.kind, &block)?;
        block.clear();
        self.block = block;
        Ok(())
    }

    fn json(&mut self, kind: BlockKind, value: &impl Serialize) -> Result<(), BackupError> {
        let content = serde_json::to_vec(value).map_err(io::Error::from)?;
        self.write(kind, &content)
    }

    fn write(&mut self, kind: BlockKind, content: &[u8]) -> Result<(), BackupError> {
        if std::mem::replace(&mut self.has_failed, true) {
            return Err(io::Error::other("an earlier block could not be written").into());
        }
        let packed = self.compressor.compress(content)?;
        if content.len().max(packed.len()) > BLOCK_BYTES_MAX {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "a row is too long").into());
        }
        let mut block = Vec::with_capacity(HEAD_BYTES + packed.len());
        block.push(kind as u8);
        block.extend_from_slice(&(packed.len() as u32).to_le_bytes());
        block.extend_from_slice(&(content.len() as u32).to_le_bytes());
        let mut checked = block.clone();
        checked.extend_from_slice(&packed);
        let checksum = stable_hash64(&checked);
        block.extend_from_slice(&checksum.to_le_bytes());
        block.extend_from_slice(&packed);
        self.out.write_all(&block)?;
        self.bytes += block.len() as u64;
        self.end.add(checksum);
        self.has_failed = false;
        Ok(())
    }
}

impl BackupEnd {
    /// Adds a block with this checksum to the totals.
    pub(super) fn add(&mut self, checksum: u64) {
        self.blocks += 1;
        let both = [self.checksum.to_le_bytes(), checksum.to_le_bytes()].concat();
        self.checksum = stable_hash64(&both);
    }
}
