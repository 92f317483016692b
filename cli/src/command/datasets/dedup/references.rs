//! Options about references, and their checks before anything is read.

use std::path::{Path, PathBuf};

use clap::Args;
use doppel_dataset::reference::ReferenceInput;
use doppel_inputs::records::bad_records::BadFile;
use doppel_terminal::destination::{self, Destination};
use doppel_terminal::exit::Failure;

use super::Dedup;

/// Options about references.
#[derive(Debug, Default, Args)]
pub(super) struct ReferenceArgs {
    /// Compare the records with this reference: a file, a directory or a pattern. Its records are never removed
    /// and never written. Give the option several times for several references. The options about records also
    /// apply to references.
    #[arg(
        long,
        value_name = "PATH",
        conflicts_with_all = ["data", "incremental", "report"],
        help_heading = "References"
    )]
    pub(super) reference: Vec<PathBuf>,
    /// Remove what is a near-duplicate of a record of a reference, and nothing else. Each record is compared
    /// with all records of the references, exactly and without groups.
    #[arg(
        long,
        requires = "reference",
        conflicts_with_all = ["latest", "market"],
        help_heading = "References"
    )]
    pub(super) reference_only: bool,
    /// Write JSON lines to this file: one for every record and every content of a reference that are
    /// near-duplicates. `-` is standard output. An existing file is replaced at the end.
    #[arg(long, value_name = "FILE", requires = "reference_only", help_heading = "References")]
    pub(super) pairs: Option<PathBuf>,
}

/// What a run has to do with its references.
#[derive(Debug, Default)]
pub(super) struct ReferencePlan {
    pub(super) inputs: Vec<ReferenceInput>,
    pub(super) pairs: Option<Destination>,
}

impl Dedup {
    /// Checks the references, and the outputs against them.
    pub(super) fn reference_plan(&self, out: Option<&Destination>) -> anyhow::Result<ReferencePlan> {
        let of = |path: &PathBuf| ReferenceInput::new(path, &self.inputs);
        let inputs: Vec<ReferenceInput> = self.references.reference.iter().map(of).collect();
        let pairs = self.references.pairs.as_deref();
        let bad = self.inputs.records.bad.as_ref().map(BadFile::path);
        let files = [
            ("--out", self.out.as_deref()),
            ("--report", self.report.as_deref()),
            ("--pairs", pairs),
            ("--bad", bad),
        ];
        let files: Vec<(&str, &Path)> =
            files.into_iter().filter_map(|(option, path)| Some((option, path?))).collect();
        let dirs: Vec<(&str, &Path)> = self.results.dirs().collect();
        inputs.iter().try_for_each(|input| input.check(&self.inputs, &files, &dirs))?;
        let Some(path) = pairs else { return Ok(ReferencePlan { inputs, pairs: None }) };
        self.inputs.refuse_output("--pairs", path)?;
        let to = Destination::open(path)?;
        let are_both_printed = matches!((&to, out), (Destination::Standard, Some(Destination::Standard)));
        if are_both_printed || self.out.as_deref().is_some_and(|out| destination::is_same_path(out, path)) {
            return Err(Failure::Usage("--pairs and --out go to the same place; name two".to_owned()).into());
        }
        Ok(ReferencePlan { inputs, pairs: Some(to) })
    }
}
