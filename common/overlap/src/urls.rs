//! Stores the URLs of documents: the most recent URLs in memory, the others in a temporary file.

use crate::budget::MemoryClaim;
use crate::external_sort::temporary_file::TemporaryFile;
use crate::{Budget, OverlapError};

/// The URLs of all documents, by document number.
#[derive(Debug)]
pub(crate) struct Urls {
    /// Offset of the end of each URL in the concatenation of all URLs. The memory claim of `Documents` covers
    /// the memory of this list.
    ends: Vec<u64>,
    /// Concatenation of the URLs that are not in the temporary file yet.
    text: Vec<u8>,
    room: usize,
    file: TemporaryFile,
    _claim: MemoryClaim,
}

impl Urls {
    /// Creates an empty table that claims `room` bytes of memory for recent URLs. Before the URLs exceed
    /// `room` bytes, the table writes them to a temporary file. A URL that is longer than `room` bytes still
    /// stays in memory until the next URL is added.
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

    /// Reads the URL of the document with number `document`.
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
