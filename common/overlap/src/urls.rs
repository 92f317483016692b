//! The URLs of documents: the last of them in memory, the others in a temporary file.

use crate::budget::Claim;
use crate::spill::Spill;
use crate::{Budget, OverlapError};

/// URLs by the number of the document. Where each begins is counted with what is kept of a document.
#[derive(Debug)]
pub(crate) struct Urls {
    /// Where each ends.
    ends: Vec<u64>,
    /// Those that are not in the file.
    text: Vec<u8>,
    room: usize,
    spill: Spill,
    _claim: Claim,
}

impl Urls {
    /// None yet, in so many bytes of memory.
    pub(crate) fn new(budget: &Budget, room: u64) -> Result<Self, OverlapError> {
        let claim = budget.claim(room, "URLs")?;
        let text = Vec::with_capacity(room as usize);
        Ok(Self { ends: Vec::new(), text, room: room as usize, spill: Spill::new(budget)?, _claim: claim })
    }

    /// Takes that of the next document.
    pub(crate) fn push(&mut self, url: &str) -> Result<(), OverlapError> {
        if self.text.len() + url.len() > self.room {
            self.spill.append(&self.text)?;
            self.text.clear();
        }
        self.text.extend_from_slice(url.as_bytes());
        self.ends.push(self.spill.len() + self.text.len() as u64);
        Ok(())
    }

    /// Bytes of all of them, and of where each ends.
    pub(crate) fn bytes(&self) -> u64 {
        self.spill.len() + self.text.len() as u64 + 8 * self.ends.len() as u64
    }

    /// That of a document.
    pub(crate) fn get(&self, document: u32) -> Result<String, OverlapError> {
        let at = document as usize;
        let from = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        let length = (self.ends[at] - from) as usize;
        let bytes = match from.checked_sub(self.spill.len()) {
            Some(from) => self.text[from as usize..][..length].to_vec(),
            None => {
                let mut bytes = vec![0; length];
                self.spill.read(&mut bytes, from)?;
                bytes
            }
        };
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}
