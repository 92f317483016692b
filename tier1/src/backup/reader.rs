//! Reads a backup and trusts nothing of it.

use std::io::{self, Read};

use doppel_model::stable_hash64;
use doppel_protocol::BackupSummary;
use serde::de::DeserializeOwned;

use super::{BLOCK_BYTES_MAX, BackupHash, End, HEAD_BYTES, Head, Kind, MAGIC, MAGIC_INCREMENT, entry};
use crate::record::VERSION;
use crate::store::Write;

/// Why a file cannot be restored.
#[derive(Debug, thiserror::Error)]
pub enum Unusable {
    /// It cannot be read.
    #[error("cannot read it")]
    Io(#[source] io::Error),
    /// Something else.
    #[error("it is no backup of this program, or of another version's layout")]
    Foreign,
    /// Records of another program version.
    #[error(
        "it has records of version {found}, and this program has version {VERSION}: restore it with the \
         program that made it, and load the pages into a new directory of this one"
    )]
    Records {
        /// Its version.
        found: u8,
    },
    /// It ends too early.
    #[error("it is cut off after {0} whole blocks")]
    Cut(u64),
    /// It is not what was written.
    #[error("block {block} is damaged: {reason}")]
    Damaged {
        /// Counted from 1.
        block: u64,
        /// What is wrong.
        reason: &'static str,
    },
    /// Rows of a full backup are not in the order of their keys.
    #[error("its rows are not in order; nothing can be compared with it, so take a full backup")]
    Unordered,
    /// Another file than the one that was verified.
    #[error("it was changed while it was read")]
    Replaced,
}

/// An open backup.
pub struct Reader<R> {
    input: R,
    head: Head,
    read: End,
    bytes: u64,
}

impl<R: Read> Reader<R> {
    /// Reads what it is of.
    ///
    /// # Errors
    /// When it is no backup, damaged there, or of another version.
    pub fn open(mut input: R) -> Result<Self, Unusable> {
        let mut magic = [0; MAGIC.len()];
        read_exact(&mut input, &mut magic)?.ok_or(Unusable::Foreign)?;
        if magic != MAGIC && magic != MAGIC_INCREMENT {
            return Err(Unusable::Foreign);
        }
        let head = Head { records: 0, manifest: String::new(), follows: None };
        let mut this = Self { input, head, read: End::default(), bytes: MAGIC.len() as u64 };
        let (kind, content) = this.block()?;
        if kind != Kind::Head {
            return Err(this.damaged("it is not the head"));
        }
        this.head = this.json(&content)?;
        if this.head.follows.is_some() != (magic == MAGIC_INCREMENT) {
            return Err(this.damaged("it does not fit the first line"));
        }
        match this.head.records {
            VERSION => Ok(this),
            found => Err(Unusable::Records { found }),
        }
    }

    /// What it is of.
    #[must_use]
    pub fn head(&self) -> &Head {
        &self.head
    }

    /// What was read so far.
    #[must_use]
    pub fn summary(&self) -> BackupSummary {
        BackupSummary { rows: self.read.rows, changes: self.read.changes, bytes: self.bytes }
    }

    /// Names all that was read so far; the backup, when it was read to its end.
    #[must_use]
    pub fn hash(&self) -> BackupHash {
        BackupHash::new(self.read.checksum)
    }

    /// The next writes, to be applied in order; none when the whole backup was read, and is whole.
    ///
    /// # Errors
    /// When it is damaged or cut off.
    pub fn writes(&mut self) -> Result<Option<Vec<Write>>, Unusable> {
        Ok(self.entries()?.map(|(_, writes)| writes))
    }

    /// The same, with whether they are rows, or changes that were committed after all rows were read.
    pub(crate) fn entries(&mut self) -> Result<Option<(Kind, Vec<Write>)>, Unusable> {
        let before = self.read;
        let (kind, content) = self.block()?;
        match kind {
            Kind::Head => Err(self.damaged("a second head")),
            Kind::End => {
                let end: End = self.json(&content)?;
                if end != before {
                    return Err(self.damaged("the totals do not fit what was before"));
                }
                match read_exact(&mut self.input, &mut [0])? {
                    None => Ok(None),
                    Some(()) => Err(self.damaged("something follows the end")),
                }
            }
            Kind::Rows if before.changes > 0 => Err(self.damaged("rows after the changes")),
            Kind::Rows | Kind::Changes => {
                let mut input = content.as_slice();
                let mut writes = Vec::new();
                while let Some(write) =
                    entry::read(&mut input, content.len()).map_err(|_| self.damaged("a row breaks off"))?
                {
                    writes.push(write);
                }
                let count = if kind == Kind::Rows { &mut self.read.rows } else { &mut self.read.changes };
                *count += writes.len() as u64;
                Ok(Some((kind, writes)))
            }
        }
    }

    fn block(&mut self) -> Result<(Kind, Vec<u8>), Unusable> {
        let cut = Unusable::Cut(self.read.blocks);
        let mut head = [0; HEAD_BYTES];
        if read_exact(&mut self.input, &mut head)?.is_none() {
            return Err(cut);
        }
        let number = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let (packed, unpacked) = (number(1) as usize, number(5) as usize);
        if packed.max(unpacked) > BLOCK_BYTES_MAX {
            return Err(self.damaged("it is longer than any block"));
        }
        let mut checked = head[..9].to_vec();
        // Grows with what is there, whatever the length says.
        let read = self.input.by_ref().take(packed as u64).read_to_end(&mut checked).map_err(Unusable::Io)?;
        if read < packed {
            return Err(cut);
        }
        let checksum = stable_hash64(&checked);
        if head[9..] != checksum.to_le_bytes() {
            return Err(self.damaged("its checksum does not fit"));
        }
        let kind = match head[0] {
            b'h' => Kind::Head,
            b'r' => Kind::Rows,
            b'c' => Kind::Changes,
            b'e' => Kind::End,
            _ => return Err(self.damaged("it is of no known kind")),
        };
        let content = zstd::bulk::decompress(&checked[9..], unpacked)
            .ok()
            .filter(|content| content.len() == unpacked)
            .ok_or_else(|| self.damaged("it cannot be unpacked"))?;
        self.read.add(checksum);
        self.bytes += (HEAD_BYTES + packed) as u64;
        Ok((kind, content))
    }

    fn json<T: DeserializeOwned>(&self, content: &[u8]) -> Result<T, Unusable> {
        serde_json::from_slice(content).map_err(|_| self.damaged("it does not say what it should"))
    }

    fn damaged(&self, reason: &'static str) -> Unusable {
        Unusable::Damaged { block: self.read.blocks + 1, reason }
    }
}

/// Fills the buffer; none when the input ends before.
fn read_exact(input: &mut dyn Read, buffer: &mut [u8]) -> Result<Option<()>, Unusable> {
    match input.read_exact(buffer) {
        Ok(()) => Ok(Some(())),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(Unusable::Io(error)),
    }
}
