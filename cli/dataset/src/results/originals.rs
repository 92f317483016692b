//! The originals of kept records. A revisit record of a WARC file stores no content of its own, so the record
//! with the content is kept as well, whatever the verdict on its page.

use std::collections::BTreeMap;

use doppel_crawls::copy::Removal;

use super::record_verdicts::{Records, Verdict};

/// Records that store no content of their own, such as revisits, each with its original: the record that
/// stores the content.
#[derive(Debug, Default)]
pub(super) struct References(Vec<ContentReference>);

/// The record number of a record without content, and the record number of its original.
#[derive(Debug)]
struct ContentReference {
    record: u64,
    original: u64,
}

/// How many records are kept because a kept revisit refers to them, by the reason for which they would have
/// been removed.
pub(crate) type KeptOriginals = BTreeMap<Removal, u64>;

impl References {
    pub(super) fn note(&mut self, record: u64, original: Option<u64>) {
        self.0.extend(original.map(|original| ContentReference { record, original }));
    }

    /// Keeps the originals of kept records, because the content would be lost otherwise.
    pub(super) fn keep_originals(&self, records: &mut Records) -> KeptOriginals {
        let mut kept = KeptOriginals::default();
        for ContentReference { record, original } in &self.0 {
            if records.verdict(*record) == Verdict::Kept
                && let Some(removal) = records.verdict(*original).removal()
            {
                records.judge(*original, Verdict::Kept);
                *kept.entry(removal).or_default() += 1;
            }
        }
        kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_original_of_a_kept_record_is_kept_with_any_verdict_on_its_page() {
        for (verdict, removal) in
            [(Verdict::Duplicate, Removal::Duplicate), (Verdict::Superseded, Removal::Superseded)]
        {
            let mut records = Records::of([
                verdict,
                verdict,
                Verdict::Kept,
                Verdict::Duplicate,
                Verdict::Kept,
                Verdict::Kept,
            ]);
            let mut references = References::default();
            for (record, original) in [(2, Some(0)), (3, Some(1)), (4, None), (5, Some(0))] {
                references.note(record, original);
            }
            assert_eq!(references.keep_originals(&mut records), KeptOriginals::from([(removal, 1)]));
            assert_eq!([0, 1].map(|number| records.verdict(number)), [Verdict::Kept, verdict]);
        }
    }
}
