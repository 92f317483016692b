//! Signatures of contents that are kept no longer than the process: the first of them in memory, those past a limit in a
//! temporary file.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use doppel_model::signature::Signature;

use crate::{ContentIndex, JoinError};

/// Bytes that are collected before they are written to the file.
const BUFFER_BYTES: usize = 1 << 20;

/// Where a signature is.
#[derive(Debug)]
enum Place {
    Memory(Arc<Signature>),
    /// Its first byte and its length.
    File(u64, u32),
}

/// The signatures of contents, in the order of their numbers.
#[derive(Debug)]
pub struct Signatures {
    places: Vec<Place>,
    /// Bytes of those in memory, and the limit.
    bytes: usize,
    limit: usize,
    dir: PathBuf,
    file: Option<Spill>,
}

#[derive(Debug)]
struct Spill {
    file: File,
    /// Bytes in the file.
    written: u64,
    buffer: Vec<u8>,
}

impl Signatures {
    /// None yet. Those past `limit` bytes go to a temporary file in `dir`.
    #[must_use]
    pub fn new(limit: usize, dir: &Path) -> Self {
        Self { places: Vec::new(), bytes: 0, limit, dir: dir.to_owned(), file: None }
    }

    /// Takes the signature of the next content.
    ///
    /// # Errors
    /// When the temporary file fails.
    pub fn push(&mut self, signature: &Arc<Signature>) -> Result<(), JoinError> {
        let bytes = signature.as_bytes();
        let place = if self.bytes + bytes.len() <= self.limit {
            self.bytes += bytes.len();
            Place::Memory(Arc::clone(signature))
        } else {
            self.spill(bytes).map_err(|source| self.failure(source))?
        };
        self.places.push(place);
        Ok(())
    }

    fn spill(&mut self, bytes: &[u8]) -> std::io::Result<Place> {
        let file = match &mut self.file {
            Some(file) => file,
            None => {
                let file = tempfile::tempfile_in(&self.dir)?;
                self.file.insert(Spill { file, written: 0, buffer: Vec::with_capacity(BUFFER_BYTES) })
            }
        };
        let place = Place::File(file.written + file.buffer.len() as u64, bytes.len() as u32);
        file.buffer.extend_from_slice(bytes);
        if file.buffer.len() >= BUFFER_BYTES {
            file.flush()?;
        }
        Ok(place)
    }

    /// Makes all that was pushed readable.
    ///
    /// # Errors
    /// When the temporary file fails.
    pub fn flush(&mut self) -> Result<(), JoinError> {
        let flushed = self.file.as_mut().map_or(Ok(()), Spill::flush);
        flushed.map_err(|source| self.failure(source))
    }

    /// The signature of a content, after a [`flush`](Self::flush).
    ///
    /// # Errors
    /// When the temporary file fails.
    pub fn get(&self, content: ContentIndex) -> Result<Arc<Signature>, JoinError> {
        match (&self.places[content.0 as usize], &self.file) {
            (Place::Memory(signature), _) => Ok(Arc::clone(signature)),
            (Place::File(offset, length), Some(spill)) => {
                let mut bytes = vec![0; *length as usize];
                spill.file.read_exact_at(&mut bytes, *offset).map_err(|source| self.failure(source))?;
                let read = Signature::from_bytes(&bytes).map_err(std::io::Error::other);
                read.map(Arc::new).map_err(|source| self.failure(source))
            }
            (Place::File(..), None) => Err(self.failure(std::io::ErrorKind::NotFound.into())),
        }
    }

    fn failure(&self, source: std::io::Error) -> JoinError {
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
