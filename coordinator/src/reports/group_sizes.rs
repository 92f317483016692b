//! Computes the report on the sizes of all groups.

use std::collections::BTreeMap;

use doppel_contract::answer::{GroupOverview, GroupSizes, SizeClass};
use doppel_protocol::{GroupFilter, GroupSummary, Tier1Api, Tier1Error};

use crate::limits::{LARGEST_GROUPS, LIST, REPORT_GROUPS};

/// Counts the sizes of up to [`REPORT_GROUPS`] groups, which it reads in lists of [`LIST`]. Blocks.
///
/// # Errors
/// [`Tier1Error::Stopping`] soon after `stops` returns true; otherwise the error of tier 1.
pub(crate) fn compute(tier1: &dyn Tier1Api, stops: impl Fn() -> bool) -> Result<GroupSizes, Tier1Error> {
    let mut classes: BTreeMap<u32, u64> = BTreeMap::new();
    let mut largest: Vec<GroupSummary> = Vec::with_capacity(LARGEST_GROUPS + LIST);
    let mut most_secondaries: Vec<GroupSummary> = Vec::new();
    let (mut groups, mut quarantined, mut after, mut at_end) = (0, 0, None, false);
    while !at_end && groups < REPORT_GROUPS {
        if stops() {
            return Err(Tier1Error::Stopping);
        }
        let piece = tier1.groups(GroupFilter::All, after, LIST)?;
        at_end = piece.len() < LIST;
        after = piece.last().map(|last| last.group).or(after);
        groups += piece.len() as u64;
        for summary in &piece {
            quarantined += u64::from(summary.quarantined);
            *classes.entry(summary.members.max(1).ilog2()).or_default() += 1;
        }
        most_secondaries.extend(piece.iter().filter(|summary| summary.secondaries > 0).cloned());
        largest.extend(piece);
        keep_most(&mut largest, |summary| summary.members);
        keep_most(&mut most_secondaries, |summary| summary.secondaries);
    }
    let class = |(power, groups)| {
        let from = 1_u64 << power;
        SizeClass { from, to: from + (from - 1), groups }
    };
    Ok(GroupSizes {
        groups,
        truncated: !at_end,
        quarantined,
        histogram: classes.into_iter().map(class).collect(),
        largest: largest.into_iter().map(GroupOverview::from).collect(),
        most_secondaries: most_secondaries.into_iter().map(GroupOverview::from).collect(),
        age_ms: None,
    })
}

/// Keeps the [`LARGEST_GROUPS`] groups with the highest values of `of`, highest first.
fn keep_most(groups: &mut Vec<GroupSummary>, of: impl Fn(&GroupSummary) -> u64) {
    groups.sort_by(|a, b| of(b).cmp(&of(a)).then(a.group.cmp(&b.group)));
    groups.truncate(LARGEST_GROUPS);
}
