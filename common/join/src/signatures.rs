//! Stores the signatures of contents for the lifetime of the process: in memory up to a limit, and in a
//! temporary file if they do not fit.
//!
//! The file has no name, so it disappears with the process. Signatures in the file can be read only after a
//! flush.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use doppel_model::signature::Signature;

use crate::{ContentIndex, JoinError};

/// Number of bytes that are collected in memory before they are written to the file.
const BUFFER_BYTES: usize = 1 << 20;

/// Where a signature is stored.
#[derive(Debug)]
enum SignatureLocation {
    Memory(Arc<Signature>),
    /// In the temporary file, at a byte offset and with a length in bytes.
    File {
        offset: u64,
        length: u32,
    },
}

/// The signatures of contents, in the order of the contents' numbers.
#[derive(Debug)]
pub struct Signatures {
    locations: Vec<SignatureLocation>,
    /// Bytes of the signatures in memory.
    memory_bytes: usize,
    /// Maximum number of bytes of the signatures in memory.
    memory_limit: usize,
    dir: PathBuf,
    file: Option<Spill>,
}

/// The temporary file, and the bytes that are not written to it yet.
#[derive(Debug)]
struct Spill {
    file: File,
    /// Number of bytes that are in the file already.
    written: u64,
    buffer: Vec<u8>,
}

impl Signatures {
    /// Creates an empty store with `limit` bytes of memory. Signatures that do not fit go to a temporary file
    /// in `dir`.
    #[must_use]
    pub fn new(limit: usize, dir: &Path) -> Self {
        Self { locations: Vec::new(), memory_bytes: 0, memory_limit: limit, dir: dir.to_owned(), file: None }
    }

    /// Stores the signature of the next content.
    ///
    /// # Errors
    /// If the temporary file cannot be created or written.
    pub fn push(&mut self, signature: &Arc<Signature>) -> Result<(), JoinError> {
        let bytes = signature.as_bytes();
        let location = if self.memory_bytes + bytes.len() <= self.memory_limit {
            self.memory_bytes += bytes.len();
            SignatureLocation::Memory(Arc::clone(signature))
        } else {
            self.spill(bytes).map_err(|source| self.error(source))?
        };
        self.locations.push(location);
        Ok(())
    }

    /// Appends a signature to the temporary file. Creates the file if there is none.
    fn spill(&mut self, bytes: &[u8]) -> std::io::Result<SignatureLocation> {
        let file = match &mut self.file {
            Some(file) => file,
            None => {
                let file = tempfile::tempfile_in(&self.dir)?;
                self.file.insert(Spill { file, written: 0, buffer: Vec::with_capacity(BUFFER_BYTES) })
            }
        };
        let offset = file.written + file.buffer.len() as u64;
        let location = SignatureLocation::File { offset, length: bytes.len() as u32 };
        file.buffer.extend_from_slice(bytes);
        if file.buffer.len() >= BUFFER_BYTES {
            file.flush()?;
        }
        Ok(location)
    }

    /// Writes all buffered signatures, so that [`get`](Self::get) can read them.
    ///
    /// # Errors
    /// If the temporary file cannot be written.
    pub fn flush(&mut self) -> Result<(), JoinError> {
        let flushed = self.file.as_mut().map_or(Ok(()), Spill::flush);
        flushed.map_err(|source| self.error(source))
    }

    /// The signature of a content. After the last [`push`](Self::push), the caller must call
    /// [`flush`](Self::flush) before it calls this function.
    ///
    /// # Errors
    /// If the temporary file cannot be read, or contains an invalid signature.
    pub fn get(&self, content: ContentIndex) -> Result<Arc<Signature>, JoinError> {
        match (&self.locations[content.0 as usize], &self.file) {
            (SignatureLocation::Memory(signature), _) => Ok(Arc::clone(signature)),
            (SignatureLocation::File { offset, length }, Some(spill)) => {
                let mut bytes = vec![0; *length as usize];
                spill.file.read_exact_at(&mut bytes, *offset).map_err(|source| self.error(source))?;
                let signature = Signature::from_bytes(&bytes).map_err(std::io::Error::other);
                signature.map(Arc::new).map_err(|source| self.error(source))
            }
            (SignatureLocation::File { .. }, None) => Err(self.error(std::io::ErrorKind::NotFound.into())),
        }
    }

    fn error(&self, source: std::io::Error) -> JoinError {
        JoinError { dir: self.dir.clone(), source }
    }
}

impl Spill {
    fn flush(&mut self) -> std::io::Result<()> {
        self.file.write_all(&self.buffer)?;
        self.written += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }
}
