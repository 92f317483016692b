//! Jobs for the worker of a range, and their queue.
//!
//! Comparisons may come faster than the worker makes them. If the queue is full, a comparison is left out.
//! The rows still owe it, and the worker goes through the rows again when it has nothing else to do.

use crossbeam::channel::Sender;
use doppel_model::{ContentHash, GroupId, PageId};

/// A job for the worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Job {
    /// Compares a member with the winner of its group.
    Verify(MemberVerification),
    /// Recomputes a group by exact comparison.
    Recompute(GroupId),
    /// Finds which members of a group are duplicates of a member other than the winner.
    Cover(GroupId),
    /// Finds what the next piece of the rows owes.
    FindOwed,
    /// Goes through all rows again to find what they owe.
    FindOwedAgain,
    /// Looks for rows whose time is over.
    Sweep,
    /// Tries the jobs that failed again.
    Retry,
    Stop,
}

/// A member to compare with the winner of its group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct MemberVerification {
    pub(crate) page: PageId,
    pub(crate) content: ContentHash,
    pub(crate) winner: PageId,
    pub(crate) winner_content: ContentHash,
}

/// Most jobs in the queue, apart from a few that are always accepted. A job takes less than 100 bytes.
const WAITING_MAX: usize = 500_000;

/// The queue from the writer to the worker. If the worker has ended, the next start finds what the jobs were
/// for.
pub(in crate::service) struct JobQueue {
    sender: Sender<Job>,
    limit: usize,
    has_left_out: bool,
}

impl JobQueue {
    pub(in crate::service) fn new(sender: Sender<Job>) -> Self {
        Self { sender, limit: WAITING_MAX, has_left_out: false }
    }

    /// Sends a job of a kind of which there are few.
    pub(in crate::service) fn send(&self, job: Job) {
        let _ = self.sender.send(job);
    }

    /// Sends a comparison, or leaves it out if the queue is full.
    pub(in crate::service) fn verify(&mut self, member: MemberVerification) {
        if self.sender.len() < self.limit {
            self.send(Job::Verify(member));
        } else {
            self.has_left_out = true;
        }
    }

    /// Has the worker find what was left out, once the queue is empty.
    pub(in crate::service) fn recover_left_out(&mut self) {
        if self.has_left_out && self.sender.is_empty() {
            self.has_left_out = false;
            self.send(Job::FindOwedAgain);
        }
    }
}

#[cfg(test)]
mod tests {
    use crossbeam::channel::unbounded;

    use super::*;

    #[test]
    fn comparisons_that_were_left_out_are_found_again_later() {
        let (to, jobs) = unbounded();
        let mut queue = JobQueue { limit: 3, ..JobQueue::new(to) };
        let verify = |page| {
            let (page, content) = (PageId::from_bytes([page; 16]), ContentHash([1; 16]));
            MemberVerification { page, content, winner: page, winner_content: content }
        };
        (0..5).for_each(|page| queue.verify(verify(page)));
        queue.recover_left_out();
        let found: Vec<Job> = jobs.try_iter().collect();
        assert_eq!(found, [0, 1, 2].map(|page| Job::Verify(verify(page))));
        queue.recover_left_out();
        queue.recover_left_out();
        assert_eq!(jobs.try_iter().collect::<Vec<_>>(), [Job::FindOwedAgain]);
    }
}
