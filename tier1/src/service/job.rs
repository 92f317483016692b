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
    Verify(Verify),
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
pub(crate) struct Verify {
    pub(crate) page: PageId,
    pub(crate) content: ContentHash,
    pub(crate) winner: PageId,
    pub(crate) winner_content: ContentHash,
}

/// Most jobs in the queue, apart from a few that are always accepted. A job takes less than 100 bytes.
const WAITING_MAX: usize = 500_000;

/// The queue from the writer to the worker. If the worker has ended, the next start finds what the jobs were
/// for.
pub(super) struct Jobs {
    to: Sender<Job>,
    most: usize,
    has_left_out: bool,
}

impl Jobs {
    pub(super) fn new(to: Sender<Job>) -> Self {
        Self { to, most: WAITING_MAX, has_left_out: false }
    }

    /// Sends a job of a kind of which there are few.
    pub(super) fn send(&self, job: Job) {
        let _ = self.to.send(job);
    }

    /// Sends a comparison, or leaves it out if the queue is full.
    pub(super) fn verify(&mut self, of: Verify) {
        if self.to.len() < self.most {
            self.send(Job::Verify(of));
        } else {
            self.has_left_out = true;
        }
    }

    /// Has the worker find what was left out, once the queue is empty.
    pub(super) fn make_up(&mut self) {
        if self.has_left_out && self.to.is_empty() {
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
    fn what_there_is_no_room_for_is_found_again_afterwards() {
        let (to, jobs) = unbounded();
        let mut way = Jobs { most: 3, ..Jobs::new(to) };
        let verify = |page| {
            let (page, content) = (PageId::from_bytes([page; 16]), ContentHash([1; 16]));
            Verify { page, content, winner: page, winner_content: content }
        };
        (0..5).for_each(|page| way.verify(verify(page)));
        way.make_up();
        let found: Vec<Job> = jobs.try_iter().collect();
        assert_eq!(found, [0, 1, 2].map(|page| Job::Verify(verify(page))));
        way.make_up();
        way.make_up();
        assert_eq!(jobs.try_iter().collect::<Vec<_>>(), [Job::FindOwedAgain]);
    }
}
