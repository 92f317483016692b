//! A snapshot of the table on disk, so that a start need not read all rows.
//!
//! The snapshot is written while commits go on. Each entry is as the rows were at the position in the head or
//! later, or it sends readers to the rows. A start also reads from the log the rows that were written after
//! that position, and these take precedence. So the filled table agrees with the rows.
//!
//! Invariant: the snapshot misses no page. A page that moves between the two tables of pages is in the same
//! part of both, and these parts are copied under one lock.
//!
//! The file has a head and then blocks of entries. An entry that was left to the rows while it was copied
//! stays so until its page or group changes.

use std::fs::{self, File};
use std::io::{self, Read};
use std::ops::Range;
use std::path::Path;

use doppel_model::ShardId;
use doppel_protocol::LogPosition;
use doppel_snapshot::{SnapshotError, SnapshotReader, SnapshotWriter};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::changes::EntryChange;
use super::entry::{GroupEntry, PageEntry};
use super::entry_table::PARTS;
use super::secret::SecretKey;
use super::{Entries, StatusTable};

/// Name of the snapshot file.
pub(super) const SNAPSHOT: &str = "statuses.dat";

/// Name of an unfinished snapshot file.
pub(super) const UNFINISHED: &str = "statuses.new";

/// First bytes of the file, with the version of its layout.
const MAGIC: [u8; 26] = *b"doppel tier1 statuses v01\n";

/// Maximum number of entries in a block.
pub(super) const BLOCK: usize = 4_096;

/// The shards and the log position of a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Basis {
    /// First shard of the range. `end` is the shard after the last one.
    pub(crate) first: ShardId,
    pub(crate) end: ShardId,
    /// Position in the log up to which the snapshot has all rows.
    pub(crate) moment: LogPosition,
}

#[derive(Serialize, Deserialize)]
struct Head {
    basis: Basis,
    key: SecretKey,
}

/// Reads a snapshot.
pub(crate) struct Snapshot {
    pub(crate) basis: Basis,
    pub(crate) key: SecretKey,
    reader: SnapshotReader<Box<dyn Read + Send>>,
}

/// Kinds of entries in a block.
pub(super) const ALONE: u64 = 0;
pub(super) const GROUPED: u64 = 1;
pub(super) const GROUPS: u64 = 2;

/// Writes a snapshot.
pub(super) struct TableWriter<W> {
    out: SnapshotWriter<W>,
    parts: Range<usize>,
}

/// Writes a snapshot to the directory of a range. The table must have all rows up to `basis`.
pub(super) fn save(table: &StatusTable, basis: Basis, dir: &Path) -> io::Result<()> {
    let new = dir.join(UNFINISHED);
    let save = || {
        let mut saving = TableWriter::new(table, basis, File::create(&new)?)?;
        while saving.step(table)? {}
        doppel_snapshot::put(&saving.finish()?, &new, &dir.join(SNAPSHOT))
    };
    // Do not leave a partial file on a full disk.
    save().inspect_err(|_| drop(fs::remove_file(&new)))
}

impl<W: io::Write> TableWriter<W> {
    pub(super) fn new(table: &StatusTable, basis: Basis, to: W) -> io::Result<Self> {
        Ok(Self { out: begin(to, basis, table.key)?, parts: 0..PARTS })
    }

    /// Writes the next part. Returns `false` if there is none. Commits wait only while the part is copied.
    pub(super) fn step(&mut self, table: &StatusTable) -> io::Result<bool> {
        let Some(part) = self.parts.next() else { return Ok(false) };
        let (ungrouped, grouped, groups) = {
            let entries = table.entries();
            let Entries { ungrouped, grouped, groups, .. } = &*entries;
            (ungrouped.part(part).to_vec(), grouped.part(part).to_vec(), groups.part(part).to_vec())
        };
        blocks(&mut self.out, ALONE, &ungrouped)?;
        blocks(&mut self.out, GROUPED, &grouped)?;
        blocks(&mut self.out, GROUPS, &groups)?;
        Ok(true)
    }

    pub(super) fn finish(self) -> io::Result<W> {
        self.out.finish()
    }
}

/// Begins a snapshot whose entries have hashes under this key.
pub(super) fn begin<W: io::Write>(to: W, basis: Basis, key: SecretKey) -> io::Result<SnapshotWriter<W>> {
    SnapshotWriter::new(to, &MAGIC, &Head { basis, key })
}

/// Writes entries of one kind.
pub(super) fn blocks<W: io::Write>(
    out: &mut SnapshotWriter<W>,
    kind: u64,
    entries: &[impl Serialize],
) -> io::Result<()> {
    for entries in entries.chunks(BLOCK) {
        out.number(kind)?;
        out.block(&postcard::to_stdvec(entries).map_err(io::Error::other)?)?;
    }
    Ok(())
}

impl Snapshot {
    /// Opens the snapshot in the directory of a range. Returns `None` if there is no file. Only [`damage`]
    /// tells whether the whole file is sound.
    pub(crate) fn open(dir: &Path) -> Result<Option<Self>, SnapshotError> {
        // An unfinished file of an earlier process is useless.
        drop(fs::remove_file(dir.join(UNFINISHED)));
        let open = || {
            let file = File::open(dir.join(SNAPSHOT))?;
            let length = file.metadata()?.len();
            Self::read(Box::new(file), length)
        };
        match open() {
            Err(unreadable) if unreadable.is_missing() => Ok(None),
            opened => opened.map(Some),
        }
    }

    /// Starts to read a snapshot with a length of `length` bytes.
    pub(crate) fn read(from: Box<dyn Read + Send>, length: u64) -> Result<Self, SnapshotError> {
        let (reader, Head { basis, key }) = SnapshotReader::new(from, length, &MAGIC)?;
        Ok(Self { basis, key, reader })
    }

    /// Returns the entries of the next block; `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<Vec<EntryChange>>, SnapshotError> {
        if self.reader.is_at_end() {
            return Ok(None);
        }
        let kind = self.reader.number()?;
        let block = self.reader.block()?;
        let page = |page: PageEntry| EntryChange::Page(page.id(), Some(page));
        let entries = match kind {
            ALONE => {
                decode(block)?.into_iter().map(|ungrouped| page(PageEntry::Ungrouped(ungrouped))).collect()
            }
            GROUPED => decode(block)?.into_iter().map(|grouped| page(PageEntry::Grouped(grouped))).collect(),
            GROUPS => {
                let groups: Vec<GroupEntry> = decode(block)?;
                groups.into_iter().map(|group| EntryChange::Group(group.id, Some(group))).collect()
            }
            _ => return Err(SnapshotError::Damaged),
        };
        Ok(Some(entries))
    }
}

fn decode<T: DeserializeOwned>(block: &[u8]) -> Result<Vec<T>, SnapshotError> {
    postcard::from_bytes(block).map_err(|_| SnapshotError::Damaged)
}

/// Returns the reason why a snapshot file cannot be used; `None` if the file is sound or missing.
pub(crate) fn damage(dir: &Path) -> io::Result<Option<String>> {
    doppel_snapshot::damage(&dir.join(SNAPSHOT), &MAGIC)
}
