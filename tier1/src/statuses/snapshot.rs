//! A table on disk, so that a start need not read all rows.
//!
//! It is written while commits go on: what is written of a page or group is what the rows had at the moment of the head, or
//! later, or that the rows have to be asked. Rows that were written since that moment are read from the log, and count
//! instead. So a start has what the rows have.
//!
//! Invariant: no page is left out. One that moves from a table to another is in the same part of both, and these are
//! copied under one lock.
//!
//! The file has blocks of entries behind its head. An entry that was left to the rows while it was copied stays so until its
//! page or group changes.

use std::fs::{self, File};
use std::io::{self, Read};
use std::ops::Range;
use std::path::Path;

use doppel_model::ShardId;
use doppel_protocol::LogPosition;
use doppel_snapshot::{SnapshotReader, SnapshotWriter, Unreadable};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::changes::Change;
use super::entry::{Group, Page};
use super::secret::SecretKey;
use super::slots::PARTS;
use super::{Entries, StatusTable};

/// The name of the file.
const SNAPSHOT: &str = "statuses.dat";

/// The name of one that is being written.
const UNFINISHED: &str = "statuses.new";

/// The kind of the file, and the version of its layout.
const MAGIC: [u8; 26] = *b"doppel tier1 statuses v01\n";

/// Entries of a block.
const BLOCK: usize = 4_096;

/// What a snapshot is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Basis {
    /// The shards of the range: the first, and the one behind the last.
    pub(crate) first: ShardId,
    pub(crate) end: ShardId,
    /// All rows up to this record of the log are in it.
    pub(crate) moment: LogPosition,
}

#[derive(Serialize, Deserialize)]
struct Head {
    basis: Basis,
    key: SecretKey,
}

/// A snapshot that is being read.
pub(crate) struct Snapshot {
    pub(crate) basis: Basis,
    pub(crate) key: SecretKey,
    reader: SnapshotReader<Box<dyn Read + Send>>,
}

/// What kind of entries a block has.
const ALONE: u64 = 0;
const GROUPED: u64 = 1;
const GROUPS: u64 = 2;

/// A snapshot that is being written.
pub(super) struct Saving<W> {
    out: SnapshotWriter<W>,
    parts: Range<usize>,
}

/// Writes a snapshot into the directory of a range. The rows of `basis` must be in the table.
pub(super) fn save(table: &StatusTable, basis: Basis, dir: &Path) -> io::Result<()> {
    let new = dir.join(UNFINISHED);
    let save = || {
        let mut saving = Saving::new(table, basis, File::create(&new)?)?;
        while saving.step(table)? {}
        doppel_snapshot::put(&saving.finish()?, &new, &dir.join(SNAPSHOT))
    };
    // A disk that is full has no use for a part of it.
    save().inspect_err(|_| drop(fs::remove_file(&new)))
}

impl<W: io::Write> Saving<W> {
    pub(super) fn new(table: &StatusTable, basis: Basis, to: W) -> io::Result<Self> {
        let out = SnapshotWriter::new(to, &MAGIC, &Head { basis, key: table.key })?;
        Ok(Self { out, parts: 0..PARTS })
    }

    /// Writes another part; false when there is none. Commits wait while it is copied, and no longer.
    pub(super) fn step(&mut self, table: &StatusTable) -> io::Result<bool> {
        let Some(part) = self.parts.next() else { return Ok(false) };
        let (alone, grouped, groups) = {
            let entries = table.entries();
            let Entries { alone, grouped, groups, .. } = &*entries;
            (alone.part(part).to_vec(), grouped.part(part).to_vec(), groups.part(part).to_vec())
        };
        blocks(&mut self.out, ALONE, &alone)?;
        blocks(&mut self.out, GROUPED, &grouped)?;
        blocks(&mut self.out, GROUPS, &groups)?;
        Ok(true)
    }

    pub(super) fn finish(self) -> io::Result<W> {
        self.out.finish()
    }
}

fn blocks<W: io::Write>(
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
    /// Opens the snapshot in the directory of a range; none where there is none. Whether it is sound is not known before
    /// [`damage`] says so.
    pub(crate) fn open(dir: &Path) -> Result<Option<Self>, Unreadable> {
        // What a crash has left is of no use.
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

    /// Reads a snapshot of so many bytes.
    pub(crate) fn read(from: Box<dyn Read + Send>, length: u64) -> Result<Self, Unreadable> {
        let (reader, Head { basis, key }) = SnapshotReader::new(from, length, &MAGIC)?;
        Ok(Self { basis, key, reader })
    }

    /// The entries of the next block; none at the end.
    pub(super) fn next(&mut self) -> Result<Option<Vec<Change>>, Unreadable> {
        if self.reader.is_at_end() {
            return Ok(None);
        }
        let kind = self.reader.number()?;
        let block = self.reader.block()?;
        let page = |page: Page| Change::Page(page.id(), Some(page));
        let entries = match kind {
            ALONE => decode(block)?.into_iter().map(|alone| page(Page::Alone(alone))).collect(),
            GROUPED => decode(block)?.into_iter().map(|grouped| page(Page::Grouped(grouped))).collect(),
            GROUPS => {
                let groups: Vec<Group> = decode(block)?;
                groups.into_iter().map(|group| Change::Group(group.id, Some(group))).collect()
            }
            _ => return Err(Unreadable::Damaged),
        };
        Ok(Some(entries))
    }
}

fn decode<T: DeserializeOwned>(block: &[u8]) -> Result<Vec<T>, Unreadable> {
    postcard::from_bytes(block).map_err(|_| Unreadable::Damaged)
}

/// Why the snapshot in the directory of a range would not be used, as far as the file alone shows.
pub(crate) fn damage(dir: &Path) -> io::Result<Option<String>> {
    doppel_snapshot::damage(&dir.join(SNAPSHOT), &MAGIC)
}
