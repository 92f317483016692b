//! Waits until everything that was accepted is decided: no range owes work, and no message is under way.
//!
//! Ranges are asked one after another, so a message may travel behind the question. The wait therefore ends
//! when two successive rounds find every range at rest with equal numbers of messages, and every sent message
//! applied. Then no message has moved between the two rounds.

use std::time::{Duration, Instant};

use doppel_protocol::Tier1Error;
use doppel_protocol::range_owner::RangeReport;

use crate::service::Tier1;

/// How often the ranges are asked. Each round costs requests and a commit of each range, so rounds become
/// rarer the longer the wait takes.
const POLL: Duration = Duration::from_millis(5);
const POLL_MAX: Duration = Duration::from_millis(50);

/// How often failed work is tried again while a caller waits and a part of tier 1 does not answer. Attempts
/// become rarer the longer the wait takes.
const AGAIN: Duration = Duration::from_millis(500);
const AGAIN_MAX: Duration = Duration::from_secs(10);

/// Least time that a range gets to answer, even at the end of the limit, because it may be in the middle of a
/// commit.
const COMMIT: Duration = Duration::from_secs(1);

impl Tier1 {
    pub(super) fn decide_all(&self, limit: Duration) -> Result<bool, Tier1Error> {
        let begin = Instant::now();
        let deadline = begin + limit;
        let poll = || (begin.elapsed() / 20).clamp(POLL, POLL_MAX);
        let failures = |range| {
            self.node_of(range).and_then(|node| node.state(range)).map_or(u64::MAX, |state| state.failures)
        };
        let failures: Vec<u64> = self.collection.map.ranges().map(failures).collect();
        self.hurry_all(true)?;
        let mut again_at = begin + AGAIN;
        let mut before: Option<Vec<RangeReport>> = None;
        loop {
            let Some(now) = self.reports(deadline)? else {
                before = None;
                if Instant::now() >= deadline {
                    return Ok(false);
                }
                std::thread::sleep(poll());
                continue;
            };
            if is_at_rest(&now) {
                // A single range exchanges no messages, so one round is enough.
                if now.len() == 1 || before.as_ref() == Some(&now) {
                    return Ok(true);
                }
                // Each round finds rest, but messages move between all rounds. Two rounds are made in any
                // case.
                if before.is_some() && Instant::now() >= deadline {
                    return Ok(false);
                }
                before = Some(now);
                continue;
            }
            before = None;
            let mut away = None;
            for (report, failures) in now.into_iter().zip(&failures) {
                match report.refused {
                    // The part may be back soon, and the work may have failed before this call.
                    Some(refused @ Tier1Error::Unavailable(_)) => away = Some(refused),
                    Some(refused) if report.failures > *failures => return Err(refused),
                    _ => {}
                }
            }
            let at = Instant::now();
            if at >= deadline {
                return away.filter(|_| !limit.is_zero()).map_or(Ok(false), Err);
            }
            let again = away.is_some() && at >= again_at;
            if again {
                again_at = at + (begin.elapsed() / 2).clamp(AGAIN, AGAIN_MAX);
            }
            self.hurry_all(again)?;
            std::thread::sleep(poll());
        }
    }

    fn hurry_all(&self, again: bool) -> Result<(), Tier1Error> {
        for range in self.collection.map.ranges() {
            match self.node_of(range).and_then(|node| node.hurry(range, again)).map_err(Tier1Error::from) {
                // A range that does not answer is waited for.
                Err(Tier1Error::Unavailable(_)) | Ok(()) => {}
                Err(refused) => return Err(refused),
            }
        }
        Ok(())
    }

    /// Reports of all ranges after everything that was handed in before is committed. `None` if a range has
    /// not answered in time.
    fn reports(&self, deadline: Instant) -> Result<Option<Vec<RangeReport>>, Tier1Error> {
        let mut reports = Vec::new();
        for range in self.collection.map.ranges() {
            let limit = deadline.saturating_duration_since(Instant::now()).max(COMMIT);
            let report = self.node_of(range).and_then(|node| node.report(range, limit));
            match report.map_err(Tier1Error::from) {
                Err(Tier1Error::Unavailable(_)) => return Ok(None),
                report => reports.push(report?),
            }
        }
        Ok(Some(reports))
    }
}

/// Whether no range owes work, and every message that was sent is applied.
fn is_at_rest(reports: &[RangeReport]) -> bool {
    let all_applied = reports.iter().enumerate().all(|(own, report)| {
        let mut others = reports.iter().enumerate().filter(|(other, _)| *other != own);
        others.all(|(other, receiver)| report.traffic[other].sent == receiver.traffic[own].applied)
    });
    all_applied && reports.iter().all(|report| report.backlog.is_quiescent())
}

#[cfg(test)]
mod tests {
    use doppel_contract::Backlog;
    use doppel_model::Epoch;
    use doppel_protocol::range_owner::MessageCounts;

    use super::*;

    fn report(sent: u64, applied: u64, pending: u64) -> RangeReport {
        let backlog = Backlog { pending, ..Backlog::default() };
        let traffic = vec![MessageCounts { sent, applied }; 2];
        RangeReport { epoch: Epoch(1), backlog, traffic, failures: 0, refused: None }
    }

    #[test]
    fn ranges_are_not_at_rest_while_a_sent_message_is_not_applied() {
        assert!(is_at_rest(&[report(3, 4, 0), report(4, 3, 0)]));
        assert!(!is_at_rest(&[report(3, 4, 0), report(4, 2, 0)]));
        assert!(!is_at_rest(&[report(3, 4, 0), report(5, 3, 0)]));
        assert!(!is_at_rest(&[report(3, 4, 1), report(4, 3, 0)]));
    }
}
