//! Reference sets: records with which other records are compared, and which are never judged or copied.

mod comparison;
mod input;
mod protected;
mod summary;

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use doppel_crawls::copy::RecordName;
use doppel_inputs::records::record_names::{RecordLabel, RecordNames};
use doppel_join::{
    ContentIndex, JoinError, ReferenceBuilder, ReferenceIndex, ReferencePartner, SearchScratch,
};
use doppel_model::PageUrl;
use doppel_model::pairwise::Signer;
use doppel_model::signature::Signature;
use doppel_protocol::Body;

pub use comparison::{ComparedLine, ComparedRecords, FoundPairs, PairLine, compare};
pub use input::{Outputs, PlacesOfInputs, ReferenceInput};
pub use protected::{NamesOfRun, ProtectedRecords};
pub use summary::{ReferenceSetSummary, ReferenceSummary};

use crate::extracted::ExtractedPage;

/// Bytes of signatures that one set keeps in memory. Further signatures go to a temporary file.
const SIGNATURES_MAX: usize = 128 << 20;

/// A reference set that was read.
#[derive(Debug)]
pub struct ReferenceSet {
    path: PathBuf,
    index: ReferenceIndex,
    /// The first record with each content, by the content's number.
    firsts: Vec<FirstRecord>,
    names: RecordNames,
}

/// The first record with a content.
#[derive(Debug)]
struct FirstRecord {
    number: u64,
    url: PageUrl,
}

impl ReferenceSet {
    /// Reads and indexes a set, and describes it. Records without a content, such as redirects, are left out.
    ///
    /// # Errors
    /// If the set cannot be read to its end, or has no records, or too many bad ones.
    pub fn read(
        input: &ReferenceInput,
        signer: &Signer,
        temp_dir: &Path,
    ) -> anyhow::Result<(Self, ReferenceSetSummary)> {
        let mut builder = ReferenceBuilder::new(signer.policy(), SIGNATURES_MAX, temp_dir);
        let (mut firsts, mut names, mut records) = (Vec::new(), RecordNames::default(), 0);
        let tally = input.pages(signer, |ExtractedPage { record, submission, origin, .. }| {
            names.note(record, &origin);
            let Body::Content(signature) = submission.body else { return Ok(()) };
            let content = builder.add(&signature)?;
            if content.0 as usize == firsts.len() {
                firsts.push(FirstRecord { number: record, url: submission.url });
            }
            records += 1;
            Ok(())
        })?;
        input.check_records(records)?;
        let summary = ReferenceSetSummary::new(input.path(), records, &tally);
        Ok((Self { path: input.path().to_owned(), index: builder.finish()?, firsts, names }, summary))
    }

    /// Path as the user named it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Calls `each` for every content of the set that is a near-duplicate of a content, in the order of the set, until
    /// `each` breaks.
    fn partners(
        &self,
        (signature, scratch): (&Signature, &mut SearchScratch),
        each: impl FnMut(ReferencePartner) -> ControlFlow<()>,
    ) -> Result<(), JoinError> {
        self.index.partners(signature, scratch, each)
    }

    /// URL of the first record with a content.
    fn url(&self, content: ContentIndex) -> &PageUrl {
        &self.firsts[content.0 as usize].url
    }

    /// Name of the first record with a content, as lines contain it.
    fn label(&self, content: ContentIndex) -> Option<RecordLabel<'_>> {
        self.names.label(self.firsts[content.0 as usize].number)
    }

    /// Name of the first record with a content, as annotations contain it.
    fn name(&self, content: ContentIndex) -> RecordName {
        self.names.name(Some(self.firsts[content.0 as usize].number))
    }
}
