//! Pages that are grouped several times, under policies of one kind of signature: each signature once, in memory or past a
//! limit in a temporary file.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::path::Path;

use doppel_join::{ContentIndex, JoinError, Signatures};
use doppel_model::ContentHash;
use doppel_protocol::{Body, Submission};

/// Bytes of signatures in memory; the others are in a temporary file.
pub(super) const SIGNATURES_MAX: usize = 64 << 20;

/// The pages so far, in order.
#[derive(Debug)]
pub(super) struct Spool {
    pages: Vec<Spooled>,
    numbers: HashMap<ContentHash, ContentIndex>,
    signatures: Signatures,
}

/// A page without its signature.
#[derive(Debug)]
enum Spooled {
    Content(Box<Submission>, ContentIndex),
    Other(Box<Submission>),
}

impl Spool {
    pub(super) fn new(temp_dir: &Path) -> Self {
        let signatures = Signatures::new(SIGNATURES_MAX, temp_dir);
        Self { pages: Vec::new(), numbers: HashMap::new(), signatures }
    }

    pub(super) fn push(&mut self, page: &Submission) -> Result<(), JoinError> {
        let Body::Content(signature) = &page.body else {
            self.pages.push(Spooled::Other(Box::new(page.clone())));
            return Ok(());
        };
        let next = ContentIndex(self.numbers.len() as u32);
        let content = match self.numbers.entry(signature.content()) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(entry) => {
                self.signatures.push(signature)?;
                *entry.insert(next)
            }
        };
        // The place of the signature is taken by what needs no room.
        let page = Submission { body: Body::Dead, canonical: None, language: None, ..page.clone() };
        self.pages.push(Spooled::Content(Box::new(page), content));
        Ok(())
    }

    /// Makes all that was pushed readable.
    pub(super) fn flush(&mut self) -> Result<(), JoinError> {
        self.signatures.flush()
    }

    /// Every page, as it was pushed but for what plays no part in grouping.
    pub(super) fn pages(&self) -> impl Iterator<Item = Result<Submission, JoinError>> + '_ {
        self.pages.iter().map(|page| match page {
            Spooled::Content(page, content) => {
                let body = Body::Content(self.signatures.get(*content)?);
                Ok(Submission { body, ..Submission::clone(page) })
            }
            Spooled::Other(page) => Ok(Submission::clone(page)),
        })
    }
}
