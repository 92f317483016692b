//! Deciding everything that was accepted: over when nothing is owed anywhere and no message is on its way.
//!
//! Ranges are asked one after the other, and a message may travel behind the question. So it is over when two
//! successive rounds find every range at rest with the same numbers of messages, and all that was sent applied: then
//! nothing has moved between them.

use std::time::{Duration, Instant};

use doppel_protocol::Tier1Error;

use super::Tier1;
use super::job::Job;
use super::task::{Report, Task};

/// How often it is looked whether everything is decided.
const POLL: Duration = Duration::from_millis(5);

/// A range has so much time to answer, also at the end of the time limit: it may be in the middle of a commit.
const COMMIT: Duration = Duration::from_secs(1);

impl Tier1 {
    pub(super) fn decide_all(&self, limit: Duration) -> Result<bool, Tier1Error> {
        let deadline = Instant::now() + limit;
        let failures: Vec<u64> = self.owners.iter().map(|owner| owner.stuck.failures()).collect();
        for owner in self.owners.iter().filter(|owner| owner.stuck.since(0).is_some()) {
            owner.jobs.send(Job::Retry).map_err(|_| Tier1Error::Stopping)?;
        }
        let mut before: Option<Vec<Report>> = None;
        loop {
            let Some(now) = self.reports(deadline)? else { return Ok(false) };
            if is_at_rest(&now) {
                // One range has no other that could have been busy when it was asked.
                if now.len() == 1 || before.as_ref() == Some(&now) {
                    return Ok(true);
                }
                // Something moves between all rounds, though each finds rest. Two are made in any case.
                if before.is_some() && Instant::now() >= deadline {
                    return Ok(false);
                }
                before = Some(now);
                continue;
            }
            before = None;
            for (owner, failures) in self.owners.iter().zip(&failures) {
                if let Some(refused) = owner.stuck.since(*failures) {
                    return Err(refused);
                }
            }
            if Instant::now() >= deadline {
                return Ok(false);
            }
            for owner in &self.owners {
                owner.tasks.send(Task::FlushBatch).map_err(|_| Tier1Error::Stopping)?;
            }
            std::thread::sleep(POLL);
        }
    }

    /// How far every range is when all that was handed in before is committed; none when one has not answered in time.
    fn reports(&self, deadline: Instant) -> Result<Option<Vec<Report>>, Tier1Error> {
        self.check()?;
        let until = deadline.max(Instant::now() + COMMIT);
        let mut reports = Vec::new();
        for owner in &self.owners {
            match owner.ask(|reply| Task::Report { reply })?.wait_until(until).flatten() {
                Err(Tier1Error::Unavailable(_)) => return Ok(None),
                report => reports.push(report?),
            }
        }
        Ok(Some(reports))
    }
}

/// Whether nothing is owed, and every message that was sent is applied.
fn is_at_rest(reports: &[Report]) -> bool {
    let all_applied = reports.iter().enumerate().all(|(own, report)| {
        let mut others = reports.iter().enumerate().filter(|(other, _)| *other != own);
        others.all(|(other, receiver)| report.traffic[other].sent == receiver.traffic[own].applied)
    });
    all_applied && reports.iter().all(|report| report.backlog.is_quiescent())
}

#[cfg(test)]
mod tests {
    use doppel_protocol::Backlog;

    use super::*;
    use crate::range::Traffic;

    fn report(sent: u64, applied: u64, pending: u64) -> Report {
        let backlog = Backlog { pending, ..Backlog::default() };
        Report { backlog, traffic: vec![Traffic { sent, applied }; 2] }
    }

    #[test]
    fn a_message_that_nobody_holds_any_more_is_not_rest() {
        assert!(is_at_rest(&[report(3, 4, 0), report(4, 3, 0)]));
        assert!(!is_at_rest(&[report(3, 4, 0), report(4, 2, 0)]));
        assert!(!is_at_rest(&[report(3, 4, 0), report(5, 3, 0)]));
        assert!(!is_at_rest(&[report(3, 4, 1), report(4, 3, 0)]));
    }
}
