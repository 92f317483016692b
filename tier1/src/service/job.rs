//! What the worker of a range is asked for, and the way there.
//!
//! Members to be compared may come faster than the worker compares them. What there is no room for is left out: the rows owe it, and
//! are gone through again once the worker has nothing else.

use crossbeam::channel::Sender;
use doppel_model::{ContentHash, GroupId, PageId};

/// A job for the worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Job {
    /// Compare a member with its group's winner.
    Verify(Verify),
    /// Recompute a group by exact comparison.
    Recompute(GroupId),
    /// Find which members of a group are duplicates of others than the winner.
    Cover(GroupId),
    /// Find what the next piece of the rows owes.
    FindOwed,
    /// Go through all rows again for what they owe.
    FindOwedAgain,
    /// Look for rows that have ended.
    Sweep,
    /// Try what has failed again.
    Retry,
    Stop,
}

/// A member to be compared with its group's winner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Verify {
    pub(crate) page: PageId,
    pub(crate) content: ContentHash,
    pub(crate) winner: PageId,
    pub(crate) winner_content: ContentHash,
}

/// Jobs that wait at most, apart from few others. Each has less than a hundred bytes.
const WAITING_MAX: usize = 500_000;

/// The way from the writer to the worker. The worker outlives the writer; otherwise what is sent is found at the next start.
pub(super) struct Jobs {
    to: Sender<Job>,
    most: usize,
    has_left_out: bool,
}

impl Jobs {
    pub(super) fn new(to: Sender<Job>) -> Self {
        Self { to, most: WAITING_MAX, has_left_out: false }
    }

    /// Asks for one of the jobs of which there are few.
    pub(super) fn send(&self, job: Job) {
        let _ = self.to.send(job);
    }

    /// Asks for a comparison, unless too much waits.
    pub(super) fn verify(&mut self, of: Verify) {
        if self.to.len() < self.most {
            self.send(Job::Verify(of));
        } else {
            self.has_left_out = true;
        }
    }

    /// Has what was left out found again, when there is nothing else.
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
