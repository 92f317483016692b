//! The inputs of a reference, and their checks before anything is read.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use anyhow::Context;
use doppel_inputs::arguments::InputArgs;
use doppel_inputs::records::RecordArgs;
use doppel_inputs::sources::{self, InputSource, SourceKind};
use doppel_inputs::tally::Tally;
use doppel_model::pairwise::Signer;
use doppel_terminal::exit::Failure;
use doppel_terminal::output::{plural, say};

use crate::extracted::{self, ExtractedPage};
use crate::results::places;

/// The inputs of one reference set: a path that the user named.
#[derive(Debug)]
pub struct ReferenceInput {
    inputs: InputArgs,
}

/// Where the inputs of a run are.
#[derive(Debug)]
pub struct PlacesOfInputs {
    /// The inputs that are directories of pages.
    directories: Vec<PathBuf>,
    /// All files and directories, and names of objects in stores.
    paths: HashSet<PathBuf>,
}

impl PlacesOfInputs {
    /// Finds the places of inputs.
    ///
    /// # Errors
    /// If an input does not exist.
    pub fn of(inputs: &InputArgs) -> anyhow::Result<Self> {
        let mut this = Self { directories: Vec::new(), paths: HashSet::new() };
        for source in &inputs.sources()?.all {
            let Some(path) = place(source) else { continue };
            if source.is_pages() {
                this.directories.push(path.clone());
            }
            this.paths.insert(path);
        }
        Ok(this)
    }

    /// Whether a source is an input, or in a directory of pages that is an input, or around an input.
    fn have(&self, source: &InputSource) -> bool {
        let Some(path) = place(source) else { return false };
        let is_below = self.directories.iter().any(|directory| path.starts_with(directory));
        let is_around = source.is_pages() && self.paths.iter().any(|input| input.starts_with(&path));
        self.paths.contains(&path) || is_below || is_around
    }
}

/// Where a source is. `None` for standard input.
fn place(source: &InputSource) -> Option<PathBuf> {
    let path = source.path();
    match source.kind {
        SourceKind::Standard => None,
        SourceKind::Object(_) => Some(path.to_owned()),
        SourceKind::File(..) | SourceKind::Pages(_) => {
            Some(places::resolved(path).unwrap_or_else(|_| path.to_owned()))
        }
    }
}

/// What a run writes.
#[derive(Debug)]
pub struct Outputs<'o> {
    /// Files, each with its option.
    pub files: &'o [(&'static str, PathBuf)],
    /// Directories of results, each with its option.
    pub directories: &'o [(&'static str, PathBuf)],
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

    /// Refuses a set that is also an input, and outputs that are in the set, or would be when it is read again. A
    /// directory of results must not contain a file of the set either, because a run removes results whose input has
    /// gone.
    ///
    /// # Errors
    /// If the set does not exist, or for one of these reasons.
    pub fn check(&self, inputs: &PlacesOfInputs, outputs: &Outputs<'_>) -> anyhow::Result<()> {
        let shown = self.path().display();
        let usage = |text: String| -> anyhow::Error { Failure::Usage(text).into() };
        let sources = &self.inputs.sources()?.all;
        if let Some(source) = sources.iter().find(|source| inputs.have(source)) {
            return Err(usage(format!(
                "{} is among the inputs and in the reference {shown}, so each of its records would be a duplicate of itself; name it once",
                source.path().display()
            )));
        }
        let canonical: Vec<PathBuf> =
            sources.iter().filter_map(|source| source.path().canonicalize().ok()).collect();
        let directory = self.path().canonicalize().ok().filter(|path| path.is_dir());
        for (option, output) in outputs.files.iter().filter(|(_, output)| !sources::is_standard(output)) {
            let path = places::resolved(output)?;
            // A file that exists can be a link to the set.
            let target = path.canonicalize().unwrap_or_else(|_| path.clone());
            let is_inside = directory.as_ref().is_some_and(|directory| path.starts_with(directory));
            let is_source = canonical.iter().any(|source| path.starts_with(source) || target == *source);
            if is_inside || is_source || sources::matches_pattern(self.path(), &path) {
                let output = output.display();
                return Err(usage(format!(
                    "{option} would write {output}, which is in the reference {shown}; name another place"
                )));
            }
        }
        for (option, dir) in outputs.directories {
            let path = places::resolved(dir)?;
            if canonical.iter().any(|source| source.starts_with(&path)) {
                let dir = dir.display();
                return Err(usage(format!(
                    "the reference {shown} is in {dir}, the directory of {option}; name another directory"
                )));
            }
        }
        Ok(())
    }

    /// Reads the set, and hands all its usable records to `take`.
    pub(super) fn pages(
        &self,
        signer: &Signer,
        mut take: impl FnMut(ExtractedPage) -> anyhow::Result<()>,
    ) -> anyhow::Result<Tally> {
        let context = || format!("cannot read the reference {}", self.path().display());
        let take_all = |pages: Vec<ExtractedPage>| pages.into_iter().try_for_each(&mut take);
        let tally =
            extracted::pages(&self.inputs, (signer.clone(), false), take_all).with_context(context)?;
        tally.verdict_of_run(false, 0).with_context(context)?;
        self.check_whole(&tally)?;
        Ok(tally)
    }

    /// Refuses a reference of which a part was not read, because this part would protect nothing.
    fn check_whole(&self, tally: &Tally) -> Result<(), Failure> {
        let shown = self.path().display();
        let bad: u64 = tally.bad.values().sum();
        if bad > 0 && (self.inputs.strict || self.inputs.records.max_bad.is_none()) {
            let records = plural(bad, "bad record");
            return Err(Failure::BadInput(format!(
                "the reference {shown} has {records}, and nothing was compared: correct the reference, or allow bad records with --max-bad"
            )));
        }
        let is_of_pages =
            self.inputs.sources().is_ok_and(|sources| sources.all.iter().any(InputSource::is_pages));
        let left_out: u64 = tally.crawl_files.values().sum();
        if left_out > 0 && !is_of_pages {
            let files = plural(left_out, "JSON file");
            say!(
                "doppel: the reference {shown}: {files} not read, because they may be no records: name those that are"
            );
        } else if left_out > 0 {
            let files = plural(left_out, "crawl file");
            return Err(Failure::BadInput(format!(
                "the reference {shown} is a directory of pages with {files}, which are not read there: name the files with a --reference of their own"
            )));
        }
        Ok(())
    }

    /// Refuses a reference without records, which would protect nothing.
    pub(super) fn check_records(&self, records: u64) -> Result<(), Failure> {
        if records == 0 {
            let shown = self.path().display();
            return Err(Failure::BadInput(format!("the reference {shown} has no records with a content")));
        }
        Ok(())
    }
}
