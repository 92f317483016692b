//! Protected records: the records of references in a run that groups records.

use doppel_crawls::copy::RecordName;
use doppel_inputs::records::record_names::{RecordLabel, RecordNames};
use doppel_model::pairwise::Signer;
use doppel_protocol::{Body, Submission};
use doppel_tier1::bulk::{GroupedCollection, NamedRecord};

use super::{ReferenceInput, ReferenceSetSummary};
use crate::extracted::ExtractedPage;

/// The protected records of a run, by their numbers.
#[derive(Debug, Default)]
pub struct ProtectedRecords {
    names: RecordNames,
    sets: Vec<ReferenceSetSummary>,
    /// By set: number of protected records of this set and all sets before it.
    ends: Vec<u64>,
}

/// Names of all records to which lines refer.
#[derive(Debug, Clone, Copy)]
pub struct NamesOfRun<'n> {
    /// Names of the records of the inputs.
    pub inputs: &'n RecordNames,
    /// The protected records of the run.
    pub protected: &'n ProtectedRecords,
}

impl ProtectedRecords {
    /// Reads all references, and hands each record with a content to `protect`, with the number of its
    /// reference. Records without a content, such as redirects, are left out.
    ///
    /// # Errors
    /// If a reference cannot be read to its end, or has too many bad records; or the error of `protect`.
    pub fn read(
        inputs: &[ReferenceInput],
        signer: &Signer,
        mut protect: impl FnMut(u32, Submission) -> anyhow::Result<()>,
    ) -> anyhow::Result<Self> {
        let (mut this, mut number) = (Self::default(), 0);
        for (reference, input) in (0..).zip(inputs) {
            let begin = number;
            let tally = input.pages(signer, |ExtractedPage { submission, origin, .. }| {
                if matches!(submission.body, Body::Content(_)) {
                    this.names.note(number, &origin);
                    number += 1;
                    protect(reference, submission)?;
                }
                Ok(())
            })?;
            input.check_records(number - begin)?;
            this.sets.push(ReferenceSetSummary::new(input.path(), number - begin, &tally));
            this.ends.push(number);
        }
        Ok(this)
    }

    /// Describes the sets, and counts for each set the records that are duplicates of one of its records.
    pub fn summaries(&self, grouped: &GroupedCollection) -> Vec<ReferenceSetSummary> {
        let mut sets = self.sets.clone();
        for judged in grouped.judged() {
            if judged.content.is_some()
                && let Some(NamedRecord::Protected(number)) = judged.records.duplicate_of
            {
                sets[self.ends.partition_point(|end| *end <= number)].removed += 1;
            }
        }
        sets
    }
}

impl<'n> NamesOfRun<'n> {
    /// Name of a record, as lines contain it.
    pub fn label(&self, record: Option<NamedRecord>) -> Option<RecordLabel<'n>> {
        match record? {
            NamedRecord::Input(number) => self.inputs.label(number),
            NamedRecord::Protected(number) => self.protected.names.label(number),
        }
    }

    /// Name of a record, as annotations contain it. Empty if the record has no name.
    pub fn name(&self, record: Option<NamedRecord>) -> RecordName {
        match record {
            None => RecordName::default(),
            Some(NamedRecord::Input(number)) => self.inputs.name(Some(number)),
            Some(NamedRecord::Protected(number)) => self.protected.names.name(Some(number)),
        }
    }
}
