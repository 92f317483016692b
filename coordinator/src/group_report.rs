//! The report on the sizes of all groups. It is kept for a while, because making it reads every group.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use doppel_protocol::answer::{Group, GroupSizes, SizeClass};
use doppel_protocol::{GroupFilter, GroupSummary, Tier1Api, Tier1Error};

use crate::limits::{LARGEST_GROUPS, LIST, REPORT_AGE, REPORT_AGE_TIMES, REPORT_GROUPS};

/// The last report, if there is one.
#[derive(Debug, Default)]
pub(crate) struct GroupReport(Option<Made>);

#[derive(Debug)]
struct Made {
    at: Instant,
    took: Duration,
    report: Arc<GroupSizes>,
}

impl GroupReport {
    /// The last report while it is young enough. A report that took longer is kept longer.
    pub(crate) fn fresh(&self) -> Option<Arc<GroupSizes>> {
        let is_fresh = |made: &&Made| made.at.elapsed() < REPORT_AGE.max(REPORT_AGE_TIMES * made.took);
        self.0.as_ref().filter(is_fresh).map(|made| Arc::clone(&made.report))
    }

    /// Makes a new report and keeps it; blocks.
    pub(crate) fn renew(&mut self, tier1: &dyn Tier1Api) -> Result<Arc<GroupSizes>, Tier1Error> {
        let begin = Instant::now();
        let report = Arc::new(sizes(tier1)?);
        self.0 = Some(Made { at: Instant::now(), took: begin.elapsed(), report: Arc::clone(&report) });
        Ok(report)
    }
}

fn sizes(tier1: &dyn Tier1Api) -> Result<GroupSizes, Tier1Error> {
    let mut classes: BTreeMap<u32, u64> = BTreeMap::new();
    let mut largest: Vec<GroupSummary> = Vec::with_capacity(LARGEST_GROUPS + LIST);
    let mut most_secondaries: Vec<GroupSummary> = Vec::new();
    let (mut groups, mut quarantined, mut after, mut at_end) = (0, 0, None, false);
    while !at_end && groups < REPORT_GROUPS {
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
        largest: largest.into_iter().map(Group::from).collect(),
        most_secondaries: most_secondaries.into_iter().map(Group::from).collect(),
    })
}

/// Keeps the groups that have most of something, the one with most first.
fn keep_most(groups: &mut Vec<GroupSummary>, of: impl Fn(&GroupSummary) -> u64) {
    groups.sort_by(|a, b| of(b).cmp(&of(a)).then(a.group.cmp(&b.group)));
    groups.truncate(LARGEST_GROUPS);
}
