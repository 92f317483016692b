//! [`TeeReader`]: a reader over a pipe that copies what it reads to a temporary file.
//!
//! Some decisions about a pipe are known only after its first bytes were consumed, and a pipe cannot go back.
//! While such a decision is open, the copy keeps the whole content available. The owner stops the copy as
//! soon as it is not needed.

use std::io::{self, Read, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tempfile::NamedTempFile;

use super::error::Reason;

/// A reader whose clones share one source and one copy.
#[derive(Clone)]
pub struct TeeReader(Arc<Mutex<TeeState>>);

struct TeeState {
    from: Box<dyn Read + Send>,
    copy: Option<NamedTempFile>,
}

impl TeeReader {
    /// Creates a reader that makes no copy.
    pub fn new(from: impl Read + Send + 'static) -> Self {
        Self(Arc::new(Mutex::new(TeeState { from: Box::new(from), copy: None })))
    }

    /// Creates a reader that copies what it reads to a temporary file.
    pub fn copying(from: impl Read + Send + 'static) -> Result<Self, Reason> {
        let this = Self::new(from);
        this.lock().copy = Some(NamedTempFile::new().map_err(Reason::Io)?);
        Ok(this)
    }

    /// Drops the copy and continues without one.
    pub fn stop_copying(&self) {
        self.lock().copy = None;
    }

    /// Reads the source to its end and returns a copy of its whole content. `None` if the reader makes no
    /// copy.
    pub fn take_whole_copy(&self) -> io::Result<Option<NamedTempFile>> {
        let tee = &mut *self.lock();
        let Some(mut copy) = tee.copy.take() else { return Ok(None) };
        io::copy(&mut tee.from, &mut copy)?;
        Ok(Some(copy))
    }

    fn lock(&self) -> MutexGuard<'_, TeeState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Read for TeeReader {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let tee = &mut *self.lock();
        let bytes = tee.from.read(out)?;
        if let Some(copy) = &mut tee.copy {
            copy.write_all(&out[..bytes])?;
        }
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_contains_the_bytes_read_before_and_the_rest() {
        let mut teed = TeeReader::copying(&b"abcdefgh"[..]).unwrap();
        teed.read_exact(&mut [0; 3]).unwrap();
        let copy = teed.take_whole_copy().unwrap().unwrap();
        assert_eq!(io::read_to_string(copy.reopen().unwrap()).unwrap(), "abcdefgh");
        assert!(teed.take_whole_copy().unwrap().is_none());
        let mut teed = TeeReader::copying(&b"abc"[..]).unwrap();
        teed.read_exact(&mut [0; 1]).unwrap();
        teed.stop_copying();
        assert_eq!(io::read_to_string(teed).unwrap(), "bc");
    }
}
