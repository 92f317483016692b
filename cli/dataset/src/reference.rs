//! Reference sets: records with which other records are compared, and which are never judged or copied.

mod comparison;
mod protected;
mod summary;

use std::path::{Path, PathBuf};

use anyhow::Context;
use doppel_crawls::copy::RecordName;
use doppel_inputs::arguments::InputArgs;
use doppel_inputs::records::RecordArgs;
use doppel_inputs::records::record_names::{RecordLabel, RecordNames};
use doppel_inputs::tally::Tally;
use doppel_join::{ContentIndex, JoinError, ReferenceBuilder, ReferenceIndex, ReferencePartner};
use doppel_model::PageUrl;
use doppel_model::pairwise::Signer;
use doppel_model::signature::Signature;
use doppel_protocol::Body;
use doppel_terminal::exit::Failure;

pub use comparison::{ComparedLine, ComparedRecords, FoundPairs, PairLine, compare};
pub use protected::{NamesOfRun, ProtectedRecords};
pub use summary::{ReferenceSetSummary, ReferenceSummary};

use crate::extracted::{self, ExtractedPage};
use crate::results::places;

/// Bytes of signatures that one set keeps in memory. Further signatures go to a temporary file.
const SIGNATURES_MAX: usize = 128 << 20;

/// The inputs of one reference set: a path that the user named.
#[derive(Debug)]
pub struct ReferenceInput {
    inputs: InputArgs,
}

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

impl ReferenceInput {
    /// Creates the inputs of a set at `path`, which is read with the options of other inputs.
    #[must_use]
    pub fn new(path: &Path, like: &InputArgs) -> Self {
        let mut fields = like.records.fields.clone();
        fields.copies_records = false;
        let records = RecordArgs { fields, max_bad: like.records.max_bad, ..RecordArgs::default() };
        Self { inputs: InputArgs::new(vec![path.to_owned()], like.strict, records) }
    }

    /// Path as the user named it.
    pub fn path(&self) -> &Path {
        &self.inputs.inputs[0]
    }

    /// Refuses a set that is also an input, and outputs that would replace a file of the set.
    ///
    /// # Errors
    /// If a path of the set does not exist, or is an input, or lies in a directory of results.
    pub fn check(
        &self,
        inputs: &InputArgs,
        files: &[(&str, &Path)],
        dirs: &[(&str, &Path)],
    ) -> anyhow::Result<()> {
        let shown = self.path().display();
        for (option, path) in files {
            self.inputs.refuse_output(option, path)?;
        }
        let of_inputs: Vec<PathBuf> =
            inputs.sources()?.all.iter().filter_map(|source| source.path().canonicalize().ok()).collect();
        for source in &self.inputs.sources()?.all {
            let Ok(path) = source.path().canonicalize() else { continue };
            if of_inputs.contains(&path) {
                return Err(Failure::Usage(format!(
                    "{} is an input and a part of the reference {shown}, so each of its records would be a duplicate of itself",
                    path.display()
                ))
                .into());
            }
            for (option, dir) in dirs {
                let dir = places::resolved(dir)?;
                if path.starts_with(&dir) || dir.starts_with(&path) {
                    let text = format!("{option} is in, or around, the reference {shown}");
                    return Err(Failure::Usage(text).into());
                }
            }
        }
        Ok(())
    }
}

impl ReferenceInput {
    /// Reads the set, and hands all its usable records to `take`.
    fn pages(
        &self,
        signer: &Signer,
        mut take: impl FnMut(ExtractedPage) -> anyhow::Result<()>,
    ) -> anyhow::Result<Tally> {
        let context = || format!("cannot read the reference {}", self.path().display());
        let take_all = |pages: Vec<ExtractedPage>| pages.into_iter().try_for_each(&mut take);
        let tally =
            extracted::pages(&self.inputs, (signer.clone(), false), take_all).with_context(context)?;
        tally.verdict_of_run(self.inputs.strict, 0).with_context(context)?;
        Ok(tally)
    }
}

impl ReferenceSet {
    /// Reads and indexes a set, and describes it. Records without a content, such as redirects, are left out.
    ///
    /// # Errors
    /// If the set cannot be read to its end, or has too many bad records.
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
        let summary = ReferenceSetSummary::new(input.path(), records, &tally);
        Ok((Self { path: input.path().to_owned(), index: builder.finish()?, firsts, names }, summary))
    }

    /// Path as the user named it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The contents of the set that are near-duplicates of a content.
    fn partners(&self, signature: &Signature) -> Result<Vec<ReferencePartner>, JoinError> {
        self.index.partners(signature)
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
