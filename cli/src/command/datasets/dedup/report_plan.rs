//! `--report`: where the report goes, and which data it shows.

use doppel_dataset::accounts::Accounts;
use doppel_dataset::collection_groups::CollectionGroups;
use doppel_dataset::report::{EXAMPLES, Pages, Run};
use doppel_dataset::summary::IngestSummary;
use doppel_dataset::weights::Weights;
use doppel_inputs::records::record_names::RecordNames;
use doppel_inputs::sources;
use doppel_model::pairwise::Signer;
use doppel_terminal::destination::{self, Destination};
use doppel_terminal::exit::Failure;
use doppel_tier1::bulk::Unit;

use super::{Dedup, Plan};

/// A report that the run has to write.
pub(super) struct ReportPlan {
    to: Destination,
    /// Inputs as the user named them.
    names: Vec<String>,
    /// Whether the dates of pages are the same in every run.
    pub(super) is_dated: bool,
    /// Whether pages may be on record that are not in the inputs.
    has_earlier: bool,
}

/// Results of a run that the report shows.
pub(super) struct ReportData<'r> {
    pub(super) accounts: &'r Accounts,
    pub(super) unit: Unit,
    /// Names of the records, if each record is judged on its own.
    pub(super) names: Option<&'r RecordNames>,
    pub(super) ingest: &'r IngestSummary,
    pub(super) groups: &'r CollectionGroups,
}

impl Plan {
    /// Whether the run writes data to standard output, so that the summary must go to standard error.
    pub(super) fn prints(&self) -> bool {
        let to_report = self.report.as_ref().map(|report| &report.to);
        [self.out.as_ref(), to_report, self.references.pairs.as_ref()]
            .into_iter()
            .flatten()
            .any(|to| matches!(to, Destination::Standard))
    }

    /// Whether the run writes anything besides the collection and the summary.
    pub(super) fn writes(&self) -> bool {
        self.out.is_some() || self.report.is_some() || self.results.is_some()
    }

    /// Number of largest groups that the run has to find: `top` for the summary, or more for the report.
    pub(super) fn largest(&self, top: usize) -> usize {
        if self.report.is_some() { top.max(EXAMPLES) } else { top }
    }
}

impl Dedup {
    /// Returns where the report goes. Refuses the destination of `out`.
    pub(super) fn report_plan(&self, out: Option<&Destination>) -> anyhow::Result<Option<ReportPlan>> {
        let Some(path) = &self.report else { return Ok(None) };
        self.inputs.refuse_output("--report", path)?;
        let to = Destination::open(path)?;
        let are_both_printed = matches!((&to, out), (Destination::Standard, Some(Destination::Standard)));
        if are_both_printed || self.out.as_deref().is_some_and(|out| destination::is_same_path(out, path)) {
            return Err(Failure::Usage("--report and --out go to the same place; name two".to_owned()).into());
        }
        let name = |input: &std::path::PathBuf| {
            if sources::is_standard(input) {
                "standard input".to_owned()
            } else {
                input.display().to_string()
            }
        };
        let names = self.inputs.inputs.iter().map(name).collect();
        let has_earlier =
            self.data.as_deref().is_some_and(|dir| dir.join(doppel_node::directory::manifest::NAME).exists());
        Ok(Some(ReportPlan { to, names, is_dated: true, has_earlier }))
    }

    /// Writes the report if the user asked for one.
    pub(super) fn report(
        &self,
        plan: &Plan,
        (pages, weights): (&mut dyn Pages, &Weights),
        of: &ReportData<'_>,
        signer: &Signer,
    ) -> anyhow::Result<()> {
        let Some(ReportPlan { to, names, is_dated, has_earlier }) = &plan.report else { return Ok(()) };
        let ReportData { accounts, unit, names: record_names, ingest, groups } = *of;
        let run = Run {
            accounts,
            unit,
            record_names,
            inputs: &self.inputs,
            names,
            is_dated: *is_dated,
            has_earlier: *has_earlier,
            signer,
            ingest,
            groups,
            weights,
        };
        to.write(|out| run.write(pages, out))
    }
}
