//! Writes a backup, block by block.

use std::io::{self, Write};

use doppel_model::stable_hash64;
use doppel_protocol::{BackupError, BackupSummary};
use serde::Serialize;

use super::{BLOCK_BYTES_MAX, BackupHash, End, HEAD_BYTES, Head, Kind, MAGIC, MAGIC_INCREMENT, entry};
use crate::record::VERSION;

/// Bytes of entries that make a block.
const BLOCK_BYTES: usize = 1 << 20;

/// The level of zstd. Signatures are hashes, so higher levels take longer and save nothing.
const LEVEL: i32 = 1;

pub(crate) struct Writer<W> {
    out: W,
    compressor: zstd::bulk::Compressor<'static>,
    /// Entries of the next block, and its kind.
    block: Vec<u8>,
    kind: Kind,
    end: End,
    bytes: u64,
    /// A write has failed: what follows it would be no backup.
    has_failed: bool,
}

impl<W: Write> Writer<W> {
    /// Begins a backup of the directory with this manifest.
    pub(crate) fn begin(out: W, manifest: &str) -> Result<Self, BackupError> {
        Self::begin_with(out, manifest, None)
    }

    /// Begins an increment that follows another backup.
    pub(super) fn begin_after(out: W, manifest: &str, follows: BackupHash) -> Result<Self, BackupError> {
        Self::begin_with(out, manifest, Some(follows))
    }

    fn begin_with(out: W, manifest: &str, follows: Option<BackupHash>) -> Result<Self, BackupError> {
        let compressor = zstd::bulk::Compressor::new(LEVEL)?;
        let mut this = Self {
            out,
            compressor,
            block: Vec::new(),
            kind: Kind::Rows,
            end: End::default(),
            bytes: 0,
            has_failed: false,
        };
        let magic = if follows.is_some() { MAGIC_INCREMENT } else { MAGIC };
        this.out.write_all(&magic)?;
        this.bytes += magic.len() as u64;
        this.json(Kind::Head, &Head { records: VERSION, manifest: manifest.to_owned(), follows })?;
        Ok(this)
    }

    /// Adds a row ([`Kind::Rows`]) or a change of one ([`Kind::Changes`]).
    pub(crate) fn entry(&mut self, kind: Kind, key: &[u8], value: Option<&[u8]>) -> Result<(), BackupError> {
        if kind != self.kind {
            self.flush()?;
            self.kind = kind;
        }
        entry::put(&mut self.block, key, value)?;
        let count = if kind == Kind::Rows { &mut self.end.rows } else { &mut self.end.changes };
        *count += 1;
        if self.block.len() >= BLOCK_BYTES {
            self.flush()?;
        }
        Ok(())
    }

    /// Ends it. Nothing may be added afterwards.
    pub(crate) fn end(&mut self) -> Result<BackupSummary, BackupError> {
        self.flush()?;
        let end = self.end;
        self.json(Kind::End, &end)?;
        self.out.flush()?;
        Ok(BackupSummary { rows: end.rows, changes: end.changes, bytes: self.bytes })
    }

    /// Names all that was written so far; the backup, once it is ended.
    pub(crate) fn hash(&self) -> BackupHash {
        BackupHash::new(self.end.checksum)
    }

    /// What was written to, to take from it what is there so far.
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

    fn json(&mut self, kind: Kind, value: &impl Serialize) -> Result<(), BackupError> {
        let content = serde_json::to_vec(value).map_err(io::Error::from)?;
        self.write(kind, &content)
    }

    fn write(&mut self, kind: Kind, content: &[u8]) -> Result<(), BackupError> {
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

impl End {
    /// Counts a block.
    pub(super) fn add(&mut self, checksum: u64) {
        self.blocks += 1;
        let both = [self.checksum.to_le_bytes(), checksum.to_le_bytes()].concat();
        self.checksum = stable_hash64(&both);
    }
}
