//! The load that this coordinator has observed in the last hours, for `GET /v1/load/history`.
//!
//! Invariant: the number of points and the size of each point are bounded. A new point replaces the oldest.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use doppel_contract::LoadReport;
use doppel_contract::answer::{LoadSample, PartitionSample};
use doppel_model::{PartitionId, Timestamp};
use doppel_protocol::{CLASS_BOUNDS_MS, DecisionTimes, Totals};

use crate::limits::{LOAD_FIRST_STEP, LOAD_FIRST_STEPS, LOAD_PARTITIONS, LOAD_POINTS, LOAD_STEP};

/// The points of the last hours, and the counters of the latest point.
#[derive(Debug, Clone, Default)]
pub(crate) struct LoadRecorder(Arc<Mutex<RecordedPoints>>);

#[derive(Debug, Default)]
struct RecordedPoints {
    last: Option<LoadCounters>,
    points: VecDeque<LoadSample>,
}

/// Counters of both tiers at one time.
#[derive(Debug)]
struct LoadCounters {
    at: Timestamp,
    submissions: u64,
    decisions: DecisionTimes,
    searches: u64,
    fan_out: u64,
    plan_version: u64,
    /// Searches received and comparisons made, by partition.
    partitions: BTreeMap<PartitionId, (u64, u64)>,
}

impl LoadRecorder {
    /// Returns the time to wait before the next point is recorded.
    pub(crate) fn pause(&self) -> Duration {
        let recorded = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if recorded.points.len() < LOAD_FIRST_STEPS { LOAD_FIRST_STEP } else { LOAD_STEP }
    }

    /// Adds a point, with rates since the point before it.
    pub(crate) fn record(&self, at: Timestamp, totals: &Totals, load: &LoadReport) {
        let shown = if load.partitions.len() > LOAD_PARTITIONS { &[][..] } else { &load.partitions[..] };
        let counts = LoadCounters {
            at,
            submissions: totals.counters.submissions,
            decisions: totals.decision_times,
            searches: load.searches,
            fan_out: load.fan_out,
            plan_version: load.plan_version,
            partitions: shown.iter().map(|p| (p.partition, (p.received, p.comparisons))).collect(),
        };
        let mut recorded = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let since = recorded.last.as_ref().and_then(|before| CounterGrowth::new(before, &counts));
        let point = LoadSample {
            at: at.to_string(),
            at_ms: at.millis(),
            submissions_per_s: since.as_ref().map(|s| s.per_s(s.before.submissions, counts.submissions)),
            decisions_per_s: since.as_ref().map(|s| s.decided.iter().sum::<u64>() as f64 / s.seconds),
            decision_p50_ms: since.as_ref().and_then(|s| quantile(&s.decided, 50)),
            decision_p95_ms: since.as_ref().and_then(|s| quantile(&s.decided, 95)),
            pending: totals.backlog.pending,
            oldest_pending_ms: totals.decision_times.oldest_ms,
            searches_per_s: since.as_ref().map(|s| s.searches as f64 / s.seconds),
            fan_out: since.as_ref().and_then(CounterGrowth::fan_out),
            plan_version: load.plan_version,
            partitions: shown
                .iter()
                .map(|p| PartitionSample {
                    partition: p.partition,
                    node: p.node,
                    contents: p.contents,
                    received_per_s: since
                        .as_ref()
                        .and_then(|s| s.partition(p.partition, p.received, |b| b.0)),
                    comparisons_per_s: since
                        .as_ref()
                        .and_then(|s| s.partition(p.partition, p.comparisons, |b| b.1)),
                })
                .collect(),
        };
        if recorded.points.len() >= LOAD_POINTS {
            recorded.points.pop_front();
        }
        recorded.points.push_back(point);
        recorded.last = Some(counts);
    }

    /// Returns the points after `since` (milliseconds since 1970), oldest first. `None` stands for all
    /// points.
    pub(crate) fn since(&self, since: Option<i64>) -> Vec<LoadSample> {
        let recorded = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        recorded
            .points
            .iter()
            .filter(|point| since.is_none_or(|since| point.at_ms > since))
            .cloned()
            .collect()
    }
}

/// Differences of the counters since the previous point.
struct CounterGrowth<'b> {
    before: &'b LoadCounters,
    seconds: f64,
    same_plan: bool,
    searches: u64,
    fanned_out: u64,
    decided: Vec<u64>,
}

impl<'b> CounterGrowth<'b> {
    /// Returns `None` if no time has passed, for example after the clock was set back.
    fn new(before: &'b LoadCounters, now: &LoadCounters) -> Option<Self> {
        let ms = now.at.millis().checked_sub(before.at.millis()).filter(|ms| *ms > 0)?;
        let same_plan = before.plan_version == now.plan_version;
        let of_plan = |before, now| if same_plan { grown(before, now) } else { now };
        let decided = before.decisions.classes.iter().zip(now.decisions.classes);
        Some(Self {
            before,
            seconds: ms as f64 / 1_000.0,
            same_plan,
            searches: of_plan(before.searches, now.searches),
            fanned_out: of_plan(before.fan_out, now.fan_out),
            decided: decided.map(|(before, now)| grown(*before, now)).collect(),
        })
    }

    fn per_s(&self, before: u64, now: u64) -> f64 {
        grown(before, now) as f64 / self.seconds
    }

    fn fan_out(&self) -> Option<f64> {
        (self.searches > 0).then(|| self.fanned_out as f64 / self.searches as f64)
    }

    /// Returns the rate of a partition's counter. `None` if the plan has changed, because a partition of
    /// another plan counted other contents.
    fn partition(&self, partition: PartitionId, now: u64, of: fn(&(u64, u64)) -> u64) -> Option<f64> {
        let before = self.before.partitions.get(&partition).filter(|_| self.same_plan)?;
        Some(self.per_s(of(before), now))
    }
}

/// Returns the growth of a counter. A counter that has become smaller was restarted, for example by a new
/// owner. Its growth is unknown and counts as 0.
fn grown(before: u64, now: u64) -> u64 {
    now.saturating_sub(before)
}

/// Returns the upper bound of the class that contains this percentile. The last class has no upper bound, so
/// its lower bound is returned.
fn quantile(classes: &[u64], hundredths: u64) -> Option<u64> {
    let all: u64 = classes.iter().sum();
    let mut left = (all * hundredths).div_ceil(100);
    let class = classes.iter().position(|count| {
        let found = left > 0 && *count >= left;
        left = left.saturating_sub(*count);
        found
    });
    class.map(|class| CLASS_BOUNDS_MS[class.min(CLASS_BOUNDS_MS.len() - 1)])
}

#[cfg(test)]
mod tests {
    use doppel_contract::{Backlog, Counters, LengthBox, PartitionLoad};
    use doppel_model::NodeId;

    use super::*;

    fn totals(submissions: u64, decided: &[u64]) -> Totals {
        let mut decision_times = DecisionTimes::default();
        decided.iter().for_each(|ms| decision_times.observe(*ms));
        let counters = Counters { submissions, ..Counters::default() };
        let backlog = Backlog { pending: 5, ..Backlog::default() };
        Totals {
            counters,
            backlog,
            pending_limit: 9,
            status_table_bytes: 0,
            decision_times,
            shards: vec![],
            full_disks: 0,
            disk_recoveries: 0,
        }
    }

    fn load(plan_version: u64, searches: u64, received: u64) -> LoadReport {
        let partition = PartitionLoad {
            partition: PartitionId(0),
            node: NodeId(0),
            bounds: LengthBox { lo: Vec::new(), hi: Vec::new() },
            contents: 7,
            pages: 7,
            received,
            comparisons: 0,
            bytes: 0,
        };
        let fan_out = 2 * searches;
        LoadReport { plan_version, searches, fan_out, partitions: vec![partition], ..LoadReport::default() }
    }

    #[test]
    fn points_tell_what_happened_between_them() {
        let points = LoadRecorder::default();
        let at = |seconds: i64| Timestamp::from_millis(1_000 * seconds);
        points.record(at(0), &totals(100, &[]), &load(1, 10, 10));
        points.record(at(10), &totals(150, &[5, 20, 20, 4_000]), &load(1, 20, 15));
        // After a change of the plan, the counters start again.
        points.record(at(20), &totals(150, &[5, 20, 20, 4_000]), &load(2, 5, 5));
        let all = points.since(None);
        assert_eq!((all[0].submissions_per_s, all[0].fan_out, all[0].pending), (None, None, 5));
        assert_eq!((all[1].submissions_per_s, all[1].decisions_per_s), (Some(5.0), Some(0.4)));
        assert_eq!((all[1].decision_p50_ms, all[1].decision_p95_ms), (Some(30), Some(10_000)));
        assert_eq!((all[1].searches_per_s, all[1].fan_out), (Some(1.0), Some(2.0)));
        assert_eq!(all[1].partitions[0].received_per_s, Some(0.5));
        assert_eq!((all[2].decision_p50_ms, all[2].searches_per_s), (None, Some(0.5)));
        assert_eq!(all[2].partitions[0].received_per_s, None);
        assert_eq!(points.since(Some(10_000)).len(), 1);
    }

    #[test]
    fn points_are_bounded() {
        let points = LoadRecorder::default();
        assert_eq!(points.pause(), LOAD_FIRST_STEP);
        for second in 0..LOAD_POINTS as i64 + 5 {
            points.record(Timestamp::from_millis(1_000 * second), &totals(0, &[]), &load(1, 0, 0));
        }
        assert_eq!(points.pause(), LOAD_STEP);
        let all = points.since(None);
        assert_eq!((all.len(), all[0].at_ms), (LOAD_POINTS, 5_000));
        // A point with too many partitions, recorded after the clock was set back.
        let mut many = load(1, 0, 0);
        many.partitions = vec![many.partitions[0].clone(); LOAD_PARTITIONS + 1];
        points.record(Timestamp::from_millis(0), &totals(9, &[]), &many);
        let last = points.since(None).pop().unwrap();
        assert!(last.partitions.is_empty() && last.submissions_per_s.is_none(), "{last:?}");
    }
}
