//! Pages that are grouped several times, under policies of one kind of signature: each signature once, in memory or past a
//! limit in a temporary file.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::path::Path;

use doppel_join::{ContentIndex, JoinError, Signatures};
use doppel_model::ContentHash;
use doppel_protocol::{Body, Submission};
use doppel_tier1::bulk::InputRecord;

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
struct Spooled {
    record: InputRecord,
    page: Box<Submission>,
    /// None where it has no content.
    content: Option<ContentIndex>,
}

impl Spool {
    pub(super) fn new(temp_dir: &Path) -> Self {
        let signatures = Signatures::new(SIGNATURES_MAX, temp_dir);
        Self { pages: Vec::new(), numbers: HashMap::new(), signatures }
    }

    pub(super) fn push(&mut self, record: InputRecord, page: &Submission) -> Result<(), JoinError> {
        let Body::Content(signature) = &page.body else {
            self.pages.push(Spooled { record, page: Box::new(page.clone()), content: None });
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
        self.pages.push(Spooled { record, page: Box::new(page), content: Some(content) });
        Ok(())
    }

    /// Makes all that was pushed readable.
    pub(super) fn flush(&mut self) -> Result<(), JoinError> {
        self.signatures.flush()
    }

    /// Every page, as it was pushed but for what plays no part in grouping.
    pub(super) fn pages(&self) -> impl Iterator<Item = Result<(InputRecord, Submission), JoinError>> + '_ {
        self.pages.iter().map(|Spooled { record, page, content }| {
            let page = Submission::clone(page);
            let body = match content {
                Some(content) => Body::Content(self.signatures.get(*content)?),
                None => page.body,
            };
            Ok((*record, Submission { body, ..page }))
        })
    }
}
