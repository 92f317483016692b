//! Stores the URLs of documents: the most recent URLs in memory, the others in a temporary file.

use crate::budget::MemoryClaim;
use crate::external_sort::temporary_file::TemporaryFile;
use crate::{Budget, OverlapError};

/// URLs by document number.
#[derive(Debug)]
pub(crate) struct Urls {
    /// Offset of the end of each URL in the concatenation of all URLs. The memory claim of `Documents` covers
    /// the memory of this list.
    ends: Vec<u64>,
    /// URLs that are not in the temporary file yet.
    text: Vec<u8>,
    room: usize,
    file: TemporaryFile,
    _claim: MemoryClaim,
}

impl Urls {
    /// Creates an empty table that keeps up to `room` bytes of URLs in memory.
    pub(crate) fn new(budget: &Budget, room: u64) -> Result<Self, OverlapError> {
        let claim = budget.claim(room, "URLs")?;
        let text = Vec::with_capacity(room as usize);
        Ok(Self {
            ends: Vec::new(),
            text,
            room: room as usize,
            file: TemporaryFile::new(budget)?,
            _claim: claim,
        })
    }

    /// Adds the URL of the next document.
    pub(crate) fn push(&mut self, url: &str) -> Result<(), OverlapError> {
        if self.text.len() + url.len() > self.room {
            self.file.append(&self.text)?;
            self.text.clear();
        }
        self.text.extend_from_slice(url.as_bytes());
        self.ends.push(self.file.len() + self.text.len() as u64);
        Ok(())
    }

    /// Bytes of all URLs and of their end offsets, whether in memory or in the temporary file.
    pub(crate) fn bytes(&self) -> u64 {
        self.file.len() + self.text.len() as u64 + 8 * self.ends.len() as u64
    }

    /// Reads the URL of a document.
    pub(crate) fn get(&self, document: u32) -> Result<String, OverlapError> {
        let at = document as usize;
        let from = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        let length = (self.ends[at] - from) as usize;
        let bytes = match from.checked_sub(self.file.len()) {
            Some(from) => self.text[from as usize..][..length].to_vec(),
            None => {
                let mut bytes = vec![0; length];
                self.file.read(&mut bytes, from)?;
                bytes
            }
        };
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}
