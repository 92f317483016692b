//! `doppel dedup --reference-only`: removes near-duplicates of references, and judges nothing else.

use std::time::Instant;

use doppel_dataset::learnt_tables::LearntTables;
use doppel_dataset::reference::{PairLine, ReferenceSet, ReferenceSummary, compare};
use doppel_model::Timestamp;
use doppel_node::directory::policy_tables;
use doppel_node::engine::CollectionRequest;
use doppel_terminal::output::{Output, say};
use doppel_terminal::scratch::Scratch;

use super::{Dedup, Plan};

impl Dedup {
    /// Compares each record with the references alone.
    pub(super) fn compare_with_references(
        &self,
        request: CollectionRequest,
        plan: &Plan,
        learnt: Option<LearntTables>,
    ) -> anyhow::Result<()> {
        let signer = policy_tables::signer(request.wanted.policy.unwrap_or_default(), request.tables)?;
        let (scratch, begin) = (Scratch::new()?, Instant::now());
        let (mut sets, mut summaries) = (Vec::new(), Vec::new());
        for input in &plan.references.inputs {
            let (set, summary) = ReferenceSet::read(input, &signer, scratch.path())?;
            summaries.push(summary);
            sets.push(set);
        }
        let compared = match &plan.references.pairs {
            None => compare(&self.inputs, &signer, &sets, None)?,
            Some(pairs) => pairs.write(|out| {
                let mut write = |pair: &PairLine<'_>| {
                    serde_json::to_writer(&mut *out, pair)?;
                    Ok(out.write_all(b"\n")?)
                };
                compare(&self.inputs, &signer, &sets, Some(&mut write))
            })?,
        };
        let elapsed = begin.elapsed();
        let decisions = plan.results.as_ref().map(|_| compared.decide(self.results.annotate)).transpose()?;
        if let Some(out) = &plan.out {
            out.write(|out| {
                for line in compared.lines() {
                    serde_json::to_writer(&mut *out, &line)?;
                    out.write_all(b"\n")?;
                }
                Ok(())
            })?;
        }
        let mut summary = ReferenceSummary::new(
            signer.policy(),
            summaries,
            (compared, decisions.as_ref()),
            (learnt, elapsed),
        );
        let first = (summary.input.now.unwrap_or_else(Timestamp::now), &*summary.input.source_counts);
        let copied = match (&plan.results, decisions) {
            (Some(results), Some(decisions)) => results.write(&self.inputs, first, decisions).map(Some),
            _ => Ok(None),
        };
        let mut written = Ok(());
        match copied {
            Ok(copied) => summary.results = copied,
            Err(error) => written = Err(error),
        }
        let output = Output { json: self.json };
        if plan.prints() {
            output.print_beside(&summary, |out| summary.print(out))?;
        } else {
            output.print(&summary, |out| summary.print(out))?;
        }
        summary.input.left_out("doppel dedup").inspect(|left_out| say!("doppel: {left_out}"));
        written?;
        Ok(summary.input.verdict_of_run(self.inputs.strict, 0)?)
    }
}
