//! Splitting a list of a call by the ranges that own its items, and putting the answers back in the order of
//! the list.

use std::collections::BTreeMap;

use doppel_contract::SubmissionOutcome;
use doppel_model::RangeId;
use doppel_protocol::Tier1Error;

/// The items of a list that belong to one range.
pub(in crate::service) struct RangePart<T> {
    /// Index of each item in the whole list.
    pub(in crate::service) indices: Vec<usize>,
    pub(in crate::service) items: Vec<T>,
}

/// Splits a list by range. The items of each part keep their order.
pub(in crate::service) fn split_by_range<T>(
    all: impl IntoIterator<Item = T>,
    range: impl Fn(&T) -> RangeId,
) -> BTreeMap<RangeId, RangePart<T>> {
    let mut parts: BTreeMap<RangeId, RangePart<T>> = BTreeMap::new();
    for (index, item) in all.into_iter().enumerate() {
        let empty = || RangePart { indices: Vec::new(), items: Vec::new() };
        let part = parts.entry(range(&item)).or_insert_with(empty);
        part.indices.push(index);
        part.items.push(item);
    }
    parts
}

/// What a range answered to its part of a batch of submissions.
pub(in crate::service) struct PartOutcomes {
    /// Index of each submission in the batch.
    pub(in crate::service) indices: Vec<usize>,
    pub(in crate::service) outcomes: Result<Vec<SubmissionOutcome>, Tier1Error>,
}

/// The outcomes of a batch of `count` submissions, in their order.
///
/// The refusal of one part refuses the whole batch. Parts that other ranges have recorded nevertheless are
/// found unchanged when the caller submits the batch again.
pub(in crate::service) fn in_order(
    count: usize,
    parts: Vec<PartOutcomes>,
) -> Result<Vec<SubmissionOutcome>, Tier1Error> {
    let mut all: Vec<Option<SubmissionOutcome>> = vec![None; count];
    for PartOutcomes { indices, outcomes } in parts {
        for (index, outcome) in indices.into_iter().zip(outcomes?) {
            all[index] = Some(outcome);
        }
    }
    all.into_iter().collect::<Option<_>>().ok_or(Tier1Error::Stopping)
}
