//! The inputs of a reference, and their checks before anything is read.

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::Context;
use doppel_inputs::arguments::InputArgs;
use doppel_inputs::records::RecordArgs;
use doppel_inputs::sources::{self, InputSource};
use doppel_inputs::tally::Tally;
use doppel_model::pairwise::Signer;
use doppel_terminal::exit::Failure;
use doppel_terminal::output::plural;

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
    /// Device and inode of each file and directory.
    files: HashSet<(u64, u64)>,
    /// Directories of pages, canonical.
    directories: Vec<PathBuf>,
    /// Canonical paths of all files and directories, and names of objects in stores.
    paths: HashSet<PathBuf>,
}

impl PlacesOfInputs {
    /// Finds the places of inputs.
    ///
    /// # Errors
    /// If an input does not exist.
    pub fn of(inputs: &InputArgs) -> anyhow::Result<Self> {
        let mut this = Self { files: HashSet::new(), directories: Vec::new(), paths: HashSet::new() };
        for source in &inputs.sources()?.all {
            this.files.extend(identity(source.path()));
            let path = source.path().canonicalize().unwrap_or_else(|_| source.path().to_owned());
            if source.is_pages() {
                this.directories.push(path.clone());
            }
            this.paths.insert(path);
        }
        Ok(this)
    }

    /// Whether a source is an input, or in a directory of pages that is an input, or around one.
    fn have(&self, source: &InputSource) -> bool {
        let path = source.path().canonicalize().unwrap_or_else(|_| source.path().to_owned());
        let is_known = identity(source.path()).is_some_and(|file| self.files.contains(&file));
        let is_below = self.directories.iter().any(|directory| path.starts_with(directory));
        let is_around = source.is_pages() && self.paths.iter().any(|input| input.starts_with(&path));
        is_known || self.paths.contains(&path) || is_below || is_around
    }
}

/// Device and inode of a file or directory that exists.
fn identity(path: &Path) -> Option<(u64, u64)> {
    fs::metadata(path)
        .ok()
        .filter(|found| found.is_file() || found.is_dir())
        .map(|found| (found.dev(), found.ino()))
}

/// Whether two paths lead to one file that exists.
fn is_one_file(a: &Path, b: &Path) -> bool {
    identity(a).is_some_and(|file| identity(b) == Some(file))
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

    /// Whether the set is standard input.
    pub fn is_standard(&self) -> bool {
        sources::is_standard(self.path())
    }

    /// Refuses a set that is also an input, and outputs that are in the set, or would be when it is read again.
    /// `outputs` are files to be written, each with its option.
    ///
    /// # Errors
    /// If a path of the set does not exist, or is an input, or an output is in a directory of the set or matches its
    /// pattern.
    pub fn check(&self, inputs: &PlacesOfInputs, outputs: &[(&str, PathBuf)]) -> anyhow::Result<()> {
        let shown = self.path().display();
        let usage = |text: String| -> anyhow::Error { Failure::Usage(text).into() };
        let sources = &self.inputs.sources()?.all;
        if let Some(source) = sources.iter().find(|source| inputs.have(source)) {
            return Err(usage(format!(
                "{} is an input and in the reference {shown}, so each of its records would be a duplicate of itself; name it once",
                source.path().display()
            )));
        }
        let directory = self.path().canonicalize().ok().filter(|path| path.is_dir());
        for (option, output) in outputs {
            let path = places::resolved(output)?;
            let is_source = |source: &InputSource| {
                let source = source.path().canonicalize();
                source.is_ok_and(|source| path.starts_with(&source) || is_one_file(&source, &path))
            };
            let is_inside = directory.as_ref().is_some_and(|directory| path.starts_with(directory));
            if is_inside || sources.iter().any(is_source) || sources::matches_pattern(self.path(), &path) {
                let output = output.display();
                return Err(usage(format!(
                    "{option} would write {output}, which is in the reference {shown}; name another place"
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
        let left_out: u64 = tally.crawl_files.values().sum();
        if left_out > 0 {
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
