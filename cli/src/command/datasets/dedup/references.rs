//! Options about references, and their checks before anything is read.

use std::path::PathBuf;

use clap::Args;
use doppel_dataset::reference::{Outputs, PlacesOfInputs, ReferenceInput};
use doppel_dataset::results::Results;
use doppel_inputs::records::bad_records::BadFile;
use doppel_inputs::sources;
use doppel_node::directory::manifest;
use doppel_terminal::destination::{self, Destination};
use doppel_terminal::exit::Failure;

use super::Dedup;

/// Options about references.
#[derive(Debug, Default, Args)]
pub(super) struct ReferenceArgs {
    /// Compare the records with this reference: a file, a directory, a pattern in quotes, or - for standard input.
    /// Its records are never removed and never written. Give the option several times for several references: of
    /// near-duplicates in several, the one in the first is named. The options about records also apply to
    /// references. Any bad record in a reference ends the run, unless --max-bad is given.
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
        conflicts_with_all = ["latest", "market", "winners", "top", "group_members_max"],
        help_heading = "References"
    )]
    pub(super) reference_only: bool,
    /// Write to this file a line of JSON for each record and each distinct content of a reference that are
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
    pub(super) fn reference_plan(
        &self,
        out: Option<&Destination>,
        results: Option<&Results>,
    ) -> anyhow::Result<ReferencePlan> {
        if let Some(dir) = self.references.reference.iter().find(|path| path.join(manifest::NAME).exists()) {
            let dir = dir.display();
            return Err(Failure::Usage(format!(
                "{dir} is a data directory, which cannot be a reference: name the files of which it was made"
            ))
            .into());
        }
        let of = |path: &PathBuf| ReferenceInput::new(path, &self.inputs);
        let inputs: Vec<ReferenceInput> = self.references.reference.iter().map(of).collect();
        let bad = self.inputs.records.bad.as_ref().map(BadFile::path);
        let files =
            [("--out", self.out.as_deref()), ("--pairs", self.references.pairs.as_deref()), ("--bad", bad)];
        let files = files.into_iter().filter_map(|(option, path)| Some((option, path?.to_owned())));
        let outputs: Vec<(&'static str, PathBuf)> =
            files.chain(results.into_iter().flat_map(Results::paths)).collect();
        if !inputs.is_empty() {
            sources::require_standard_once(&[&self.inputs.inputs[..], &self.references.reference].concat())?;
            let places = PlacesOfInputs::of(&self.inputs)?;
            let directories: Vec<_> = results.into_iter().flat_map(Results::directories).collect();
            let outputs = Outputs { files: &outputs, directories: &directories };
            inputs.iter().try_for_each(|input| input.check(&places, &outputs))?;
        }
        let Some(path) = self.references.pairs.as_deref() else {
            return Ok(ReferencePlan { inputs, pairs: None });
        };
        self.inputs.refuse_output("--pairs", path)?;
        for (option, other) in &outputs {
            if *option != "--pairs" && destination::is_same_path(other, path) {
                let text = format!("--pairs and {option} go to the same place; name two");
                return Err(Failure::Usage(text).into());
            }
        }
        let to = Destination::open(path)?;
        if matches!((&to, out), (Destination::Standard, Some(Destination::Standard))) {
            return Err(Failure::Usage("--pairs and --out go to the same place; name two".to_owned()).into());
        }
        Ok(ReferencePlan { inputs, pairs: Some(to) })
    }
}
