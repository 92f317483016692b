//! Something that can be read once, such as a pipe, with a copy of what was read of it, as long as that may be wanted.

use std::io::{self, Read, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tempfile::NamedTempFile;

use super::error::Reason;

/// A reader, which clones share.
#[derive(Clone)]
pub(super) struct Teed(Arc<Mutex<Tee>>);

struct Tee {
    from: Box<dyn Read + Send>,
    copy: Option<NamedTempFile>,
}

impl Teed {
    /// Reads without a copy.
    pub(super) fn new(from: impl Read + Send + 'static) -> Self {
        Self(Arc::new(Mutex::new(Tee { from: Box::new(from), copy: None })))
    }

    /// Copies what is read to a temporary file.
    pub(super) fn copying(from: impl Read + Send + 'static) -> Result<Self, Reason> {
        let this = Self::new(from);
        this.lock().copy = Some(NamedTempFile::new().map_err(Reason::Io)?);
        Ok(this)
    }

    /// Goes on without a copy.
    pub(super) fn stop(&self) {
        self.lock().copy = None;
    }

    /// A copy of all there is, which is read to its end; none where nothing was copied.
    pub(super) fn whole(&self) -> io::Result<Option<NamedTempFile>> {
        let tee = &mut *self.lock();
        let Some(mut copy) = tee.copy.take() else { return Ok(None) };
        io::copy(&mut tee.from, &mut copy)?;
        Ok(Some(copy))
    }

    fn lock(&self) -> MutexGuard<'_, Tee> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Read for Teed {
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
    fn a_copy_has_all_that_was_and_was_not_read() {
        let mut teed = Teed::copying(&b"abcdefgh"[..]).unwrap();
        teed.read_exact(&mut [0; 3]).unwrap();
        let copy = teed.whole().unwrap().unwrap();
        assert_eq!(io::read_to_string(copy.reopen().unwrap()).unwrap(), "abcdefgh");
        assert!(teed.whole().unwrap().is_none());
        let mut teed = Teed::copying(&b"abc"[..]).unwrap();
        teed.read_exact(&mut [0; 1]).unwrap();
        teed.stop();
        assert_eq!(io::read_to_string(teed).unwrap(), "bc");
    }
}
