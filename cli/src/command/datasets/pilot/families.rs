//! Limits the sample if many records are alike.
//!
//! The time of a trial grows with the square of a family of pages that are almost similar enough to be
//! linked. The sample therefore ends when the number of pairs that look alike reaches a bound. The bound
//! depends on the records alone, which a time limit would not.

use std::collections::{HashMap, HashSet};

use doppel_dataset::extracted::{self, ExtractedPage};
use doppel_inputs::arguments::{AtMost, InputArgs};
use doppel_model::pairwise::{Policy, Signer};
use doppel_protocol::Body;

/// Largest number of pairs of different contents that look alike. A family of about 5,000 pages has so many
/// pairs.
const PAIRS_MAX: u64 = 5_000_000;

/// Returns how much of the inputs is tried: `most`, or fewer records if too many look alike.
///
/// # Errors
/// If an input does not exist.
pub(super) fn at_most(inputs: &InputArgs, most: AtMost) -> anyhow::Result<AtMost> {
    let mut counter = AlikePairCounter::default();
    extracted::pages(inputs, (Signer::new(Policy::default()), false), |pages| {
        for ExtractedPage { record, submission, .. } in pages {
            if let Body::Content(signature) = &submission.body {
                let [first, second, ..] = *signature.sketch();
                let is_new = counter.contents.insert(signature.content());
                counter.note(record, is_new.then_some([first, second]));
            }
        }
        Ok(())
    })?;
    Ok(AtMost { records: counter.enough.unwrap_or(u64::MAX).min(most.records), ..most })
}

/// Counts the pairs so far.
#[derive(Default)]
struct AlikePairCounter {
    contents: HashSet<doppel_model::ContentHash>,
    /// Number of contents by two values of their sketches. The probability that two contents share both
    /// values is the square of their Jaccard coefficient.
    alike: HashMap<[u8; 2], u64>,
    pairs: u64,
    /// Number of records that contain enough pairs, once it is known.
    enough: Option<u64>,
}

impl AlikePairCounter {
    /// Counts a record. `sketch` is `None` for a content that was counted before: equal contents are compared
    /// only once.
    fn note(&mut self, record: u64, sketch: Option<[u8; 2]>) {
        let Some(sketch) = sketch else { return };
        let others = self.alike.entry(sketch).or_default();
        self.pairs += *others;
        *others += 1;
        if self.pairs >= PAIRS_MAX {
            self.enough.get_or_insert(record + 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_family_ends_the_sample_and_other_records_do_not() {
        let mut family = AlikePairCounter::default();
        (0..10_000).for_each(|record| family.note(record, Some([1, 2])));
        // 3,163 records have 3,163 * 3,162 / 2 pairs.
        assert_eq!(family.enough, Some(3_163));
        let mut others = AlikePairCounter::default();
        (0..20_000_u64).for_each(|record| others.note(record, Some([record as u8, (record >> 8) as u8])));
        (0..20_000).for_each(|record| others.note(record, None));
        assert_eq!(others.enough, None);
    }
}
