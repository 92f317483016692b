//! The signature file of a node, to which signatures are appended.
//!
//! The file is a header of 16 bytes, followed by records. A record is the length of a signature in 4 bytes,
//! little-endian, and the bytes of the signature. A signature contains its version and checksum, and its
//! length follows from its contents. So the file stores nothing else, and every read is checked.
//!
//! The file is synced only before a snapshot that refers to it. It is derived data: the next start fetches
//! from tier 1 whatever is missing. At the first record whose check fails, the file is cut off.
//!
//! New records stay in memory until a megabyte can be written. A failed write leaves a gap, and the
//! signatures in it are fetched when they are needed.

use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use doppel_model::signature::Signature;

use crate::error::Error;
use crate::node::partition::columns::SignatureRecord;

/// "doppel", tier 2, and the version of the layout.
const MAGIC: [u8; 16] = *b"doppel tier2 v1\n";

/// Size of a file without signatures, in bytes.
pub(crate) const HEADER_BYTES: u64 = MAGIC.len() as u64;

/// Number of bytes of a record before the signature.
const LENGTH_BYTES: usize = 4;

/// A longer signature counts as damage. 2^26 bytes correspond to 13 million shingles.
const SIGNATURE_BYTES_MAX: u32 = 1 << 26;

/// Bytes that are kept in memory before they are written.
const TAIL_BYTES: usize = 1 << 20;

/// The file is compacted when more than half of it is unused, but only above this size.
const COMPACT_BYTES_MIN: u64 = 1 << 22;

/// An open signature file.
#[derive(Debug)]
pub(crate) struct SignatureFile {
    path: PathBuf,
    file: File,
    /// Offset where the part in memory begins.
    written: u64,
    tail: Vec<u8>,
    /// Bytes of records in use.
    live: u64,
}

impl SignatureFile {
    /// Opens or creates a file. The caller must then read its [`records`](Self::records) and call
    /// [`resume`](Self::resume), or call [`resume_at`](Self::resume_at).
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path);
        let file = file.map_err(|e| Error::io("open the signature file", path, e))?;
        Ok(Self { path: path.to_owned(), file, written: 0, tail: Vec::new(), live: 0 })
    }

    /// The records of the file.
    pub(crate) fn records(&self) -> Result<SignatureRecords, Error> {
        let fail = |e| Error::io("read the signature file", &self.path, e);
        SignatureRecords::of(self.file.try_clone().map_err(fail)?).map_err(fail)
    }

    /// Notes that a record is in use.
    pub(crate) fn retain(&mut self, record: SignatureRecord) {
        self.live += on_disk(record);
    }

    /// Continues behind the last sound record. Whatever follows it is cut off.
    pub(crate) fn resume(&mut self, records: &SignatureRecords) -> Result<(), Error> {
        if let Some(damage) = &records.damage {
            let (path, offset) = (self.path.display(), records.sound);
            tracing::warn!(
                %path,
                offset,
                damage,
                "the signature file is damaged; fetching the signatures behind this offset"
            );
        }
        self.resume_at(records.sound)
    }

    /// Continues at byte `end`. Whatever follows it is cut off.
    pub(crate) fn resume_at(&mut self, end: u64) -> Result<(), Error> {
        let fail = |e| Error::io("write the signature file", &self.path, e);
        self.file.set_len(end).map_err(fail)?;
        self.written = end;
        if self.written == 0 {
            self.file.write_all_at(&MAGIC, 0).map_err(fail)?;
            self.written = MAGIC.len() as u64;
        }
        Ok(())
    }

    /// Appends a signature. A signature that is too long for the file is not stored, and is fetched when it
    /// is needed.
    pub(crate) fn append(&mut self, signature: &Signature) -> SignatureRecord {
        let bytes = signature.as_bytes();
        if bytes.len() > SIGNATURE_BYTES_MAX as usize {
            return SignatureRecord::NOWHERE;
        }
        let offset = self.written + (self.tail.len() + LENGTH_BYTES) as u64;
        let record = SignatureRecord { offset, bytes: bytes.len() as u32 };
        self.tail.extend(record.bytes.to_le_bytes());
        self.tail.extend(bytes);
        self.live += on_disk(record);
        if self.tail.len() >= TAIL_BYTES {
            self.flush();
        }
        record
    }

    /// Writes the part in memory to the file. If that fails, its signatures are lost here.
    pub(crate) fn flush(&mut self) {
        if let Err(error) = self.file.write_all_at(&self.tail, self.written) {
            tracing::error!(
                path = %self.path.display(),
                %error,
                "cannot write signatures; they are fetched when needed"
            );
        }
        self.written += self.tail.len() as u64;
        self.tail.clear();
    }

    /// Notes that a record is no longer in use.
    pub(crate) fn release(&mut self, record: SignatureRecord) {
        self.live = self.live.saturating_sub(on_disk(record));
    }

    /// Reads the signature of a record. `buffer` is scratch space.
    pub(crate) fn read(
        &self,
        record: SignatureRecord,
        buffer: &mut Vec<u8>,
    ) -> Result<Signature, SignatureFileError> {
        if let Some(start) = record.offset.checked_sub(self.written) {
            let start = usize::try_from(start).unwrap_or(usize::MAX);
            let end = start.saturating_add(record.bytes as usize);
            let bytes = self
                .tail
                .get(start..end)
                .ok_or(SignatureFileError::Io(io::ErrorKind::UnexpectedEof.into()))?;
            return Ok(Signature::from_bytes(bytes)?);
        }
        buffer.resize(record.bytes as usize, 0);
        self.file.read_exact_at(buffer, record.offset)?;
        Ok(Signature::from_bytes(buffer)?)
    }

    /// Size of the file, including the part in memory, in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.written + self.tail.len() as u64
    }

    /// Whether more than half of the file is unused.
    pub(crate) fn is_compaction_due(&self) -> bool {
        self.bytes() > COMPACT_BYTES_MIN && self.bytes() > 2 * self.live
    }

    /// Creates a new file beside this one. [`replace`](Self::replace) puts it in the place of this one.
    pub(crate) fn successor(&self) -> Result<Self, Error> {
        let path = self.path.with_extension("new");
        let fail = |e| Error::io("write a signature file", &path, e);
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(&path)
            .map_err(fail)?;
        file.write_all_at(&MAGIC, 0).map_err(fail)?;
        Ok(Self { path, file, written: MAGIC.len() as u64, tail: Vec::new(), live: 0 })
    }

    /// Replaces this file with `successor`.
    pub(crate) fn replace(&mut self, mut successor: Self) -> Result<(), Error> {
        successor.flush();
        std::fs::rename(&successor.path, &self.path)
            .map_err(|e| Error::io("replace the signature file", &self.path, e))?;
        successor.path = std::mem::take(&mut self.path);
        *self = successor;
        Ok(())
    }
}

/// The sound records of a file, in order.
pub(crate) struct SignatureRecords {
    reader: BufReader<File>,
    length: u64,
    /// Offset behind the last sound record.
    sound: u64,
    /// Why the next record is not sound. `None` if the file ends there.
    damage: Option<String>,
    buffer: Vec<u8>,
}

impl Iterator for SignatureRecords {
    type Item = (SignatureRecord, Signature);

    fn next(&mut self) -> Option<Self::Item> {
        if self.damage.is_some() || self.sound == self.length {
            return None;
        }
        self.read().unwrap_or_else(|damage| {
            self.damage = Some(damage.to_string());
            None
        })
    }
}

impl SignatureRecords {
    /// The records of an open file.
    pub(crate) fn of(file: File) -> io::Result<Self> {
        let length = file.metadata()?.len();
        let reader = BufReader::with_capacity(TAIL_BYTES, file);
        Ok(Self { reader, length, sound: 0, damage: None, buffer: Vec::new() })
    }

    /// Offset of the first damaged record, and what is wrong with it. `None` if all records are sound.
    pub(crate) fn damage(&self) -> Option<(u64, &str)> {
        self.damage.as_deref().map(|damage| (self.sound, damage))
    }

    /// Reads the next record. `None` if the file has only a header.
    fn read(&mut self) -> Result<Option<(SignatureRecord, Signature)>, SignatureFileError> {
        if self.sound == 0 {
            let mut magic = [0; MAGIC.len()];
            self.reader.read_exact(&mut magic)?;
            if magic != MAGIC {
                return Err(SignatureFileError::Version);
            }
            self.sound = MAGIC.len() as u64;
            if self.sound == self.length {
                return Ok(None);
            }
        }
        let mut length = [0; LENGTH_BYTES];
        self.reader.read_exact(&mut length)?;
        let record =
            SignatureRecord { offset: self.sound + LENGTH_BYTES as u64, bytes: u32::from_le_bytes(length) };
        if record.bytes > SIGNATURE_BYTES_MAX {
            return Err(SignatureFileError::Length(record.bytes));
        }
        self.buffer.resize(record.bytes as usize, 0);
        self.reader.read_exact(&mut self.buffer)?;
        let signature = Signature::from_bytes(&self.buffer)?;
        self.sound += on_disk(record);
        Ok(Some((record, signature)))
    }
}

/// Why a signature cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SignatureFileError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("it has another version, or is not a signature file")]
    Version,
    #[error("a record of {0} bytes is longer than any signature")]
    Length(u32),
    #[error(transparent)]
    Source(#[from] doppel_protocol::SourceError),
    #[error(transparent)]
    Damaged(#[from] doppel_model::signature::SignatureError),
}

/// Size of a record in the file, in bytes.
fn on_disk(record: SignatureRecord) -> u64 {
    u64::from(record.bytes) + LENGTH_BYTES as u64
}
