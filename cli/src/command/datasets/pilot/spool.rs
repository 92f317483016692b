//! Stores pages that are grouped several times under policies with the same kind of signature. Each signature
//! is stored once, in memory or, above a limit, in a temporary file.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::path::Path;

use doppel_join::{ContentIndex, JoinError, Signatures};
use doppel_model::ContentHash;
use doppel_protocol::{Body, Submission};
use doppel_tier1::bulk::InputRecord;

/// Bytes of signatures in memory; further signatures go to a temporary file.
pub(super) const SIGNATURES_MAX: usize = 64 << 20;

/// Pages so far, in their order.
#[derive(Debug)]
pub(super) struct Spool {
    pages: Vec<SpooledPage>,
    numbers: HashMap<ContentHash, ContentIndex>,
    signatures: Signatures,
}

/// A page without its signature.
#[derive(Debug)]
struct SpooledPage {
    record: InputRecord,
    page: Box<Submission>,
    /// Index of the content; `None` if the page has no content.
    content: Option<ContentIndex>,
}

impl Spool {
    pub(super) fn new(temp_dir: &Path) -> Self {
        let signatures = Signatures::new(SIGNATURES_MAX, temp_dir);
        Self { pages: Vec::new(), numbers: HashMap::new(), signatures }
    }

    pub(super) fn push(&mut self, record: InputRecord, page: &Submission) -> Result<(), JoinError> {
        let Body::Content(signature) = &page.body else {
            self.pages.push(SpooledPage { record, page: Box::new(page.clone()), content: None });
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
        // The signature is stored apart, so a body without memory takes its place.
        let page = Submission { body: Body::Dead, canonical: None, language: None, ..page.clone() };
        self.pages.push(SpooledPage { record, page: Box::new(page), content: Some(content) });
        Ok(())
    }

    /// Makes all pushed pages readable.
    pub(super) fn flush(&mut self) -> Result<(), JoinError> {
        self.signatures.flush()
    }

    /// Iterates over all pages as they were pushed, without the fields that have no influence on grouping.
    pub(super) fn pages(&self) -> impl Iterator<Item = Result<(InputRecord, Submission), JoinError>> + '_ {
        self.pages.iter().map(|SpooledPage { record, page, content }| {
            let page = Submission::clone(page);
            let body = match content {
                Some(content) => Body::Content(self.signatures.get(*content)?),
                None => page.body,
            };
            Ok((*record, Submission { body, ..page }))
        })
    }
}
