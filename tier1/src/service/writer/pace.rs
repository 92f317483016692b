//! How often commits are made, and how large they become.
//!
//! If other processes own ranges, each commit costs requests to them. If the range is replicated, it also
//! costs work of all servers of the log. Ranges that answer each other at once would make one commit for
//! every few messages. Frequent commits therefore have a pause between them, in which more tasks gather. The
//! first commits after a rest have no pause, so a task that comes alone does not wait.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use doppel_protocol::Tier1Error;

use super::{ASKED, RangeWriter, TASKS_MAX};
use crate::machine::{COMMIT_ROWS, COMMIT_ROWS_ASKED, COMMIT_ROWS_BESIDE_FEW, COMMIT_ROWS_BESIDE_MESSAGES};
use crate::service::writer::waiting::WaitingTask;

/// Time between two frequent commits: if commits cost requests, and if they cost entries of a shared log.
const PAUSE: Duration = Duration::from_millis(20);
const PAUSE_REPLICATED: Duration = Duration::from_millis(40);

/// Number of commits after a rest that have no pause.
const AT_ONCE: u32 = 8;

/// How long rows of confirmed messages wait for a commit that has other work, too.
const CONFIRMED: Duration = Duration::from_millis(50);

/// The pace of a range's commits.
#[derive(Debug)]
pub(super) struct CommitPace {
    /// `None` if a pause has no advantage.
    pause: Option<Duration>,
    /// When the next commit would be due if every commit so far had taken one pause.
    due: Instant,
}

impl CommitPace {
    /// The pace of a range. `apart` says whether other processes own ranges, and `replicated` whether this
    /// range is replicated.
    pub(super) fn new(apart: bool, replicated: bool, now: Instant) -> Self {
        let pause = if replicated { PAUSE_REPLICATED } else { PAUSE };
        Self { pause: (apart || replicated).then_some(pause), due: now }
    }

    /// Whether frequent commits have a pause between them.
    pub(super) fn has_pause(&self) -> bool {
        self.pause.is_some()
    }

    /// How long the next commit waits for more tasks.
    pub(super) fn wait(&self, now: Instant) -> Duration {
        let Some(pause) = self.pause else { return Duration::ZERO };
        self.due.saturating_duration_since(now).saturating_sub(pause * AT_ONCE)
    }

    /// Notes that a commit is made.
    pub(super) fn commit(&mut self, now: Instant) {
        if let Some(pause) = self.pause {
            self.due = self.due.max(now) + pause;
        }
    }
}

/// How large a commit may be.
#[derive(Debug, Clone, Copy)]
pub(super) struct CommitSize {
    /// Most rows of the commit.
    pub(super) rows: usize,
    /// Whether few pages wait for the commit beside much other work. If so, no rows are moved while it is
    /// built.
    pub(super) is_beside_few: bool,
}

/// The row limit of a commit.
fn rows(is_beside_few: bool, is_backlogged: bool, is_asked: bool) -> usize {
    match (is_beside_few, is_backlogged) {
        (true, true) => COMMIT_ROWS_BESIDE_MESSAGES,
        (true, false) => COMMIT_ROWS_BESIDE_FEW,
        (false, _) if is_asked => COMMIT_ROWS_ASKED,
        (false, _) => COMMIT_ROWS,
    }
}

impl RangeWriter<'_> {
    /// The size of the next commit.
    ///
    /// A submission of few pages has other work beside it if many pages wait, too, or if many messages are on
    /// their way, as when a giant group changes its winner. If commits cost requests to other processes, few
    /// pages wait for the pause between commits in any case.
    pub(super) fn commit_size(&mut self) -> CommitSize {
        let now = Instant::now();
        if self.owner.asked.swap(false, Ordering::Relaxed) {
            self.last_asked = Some(now);
        }
        let is_recent = |at: Option<Instant>| at.is_some_and(|at| now.duration_since(at) < ASKED);
        let is_large = |entry: &WaitingTask| !entry.is_done() && !entry.is_small();
        let is_backlogged = self.range.is_backlogged();
        let is_beside_few = is_recent(self.last_few)
            && !self.pace.has_pause()
            && (is_backlogged || self.waiting.iter().any(is_large));
        CommitSize { rows: rows(is_beside_few, is_backlogged, is_recent(self.last_asked)), is_beside_few }
    }

    /// Whether there is work for a commit that no caller waits for.
    pub(super) fn must_commit(&mut self) -> bool {
        if self.range.has_messages() || !self.range.has_work() {
            self.delete_confirmed_at = None;
            return self.range.has_messages();
        }
        let now = Instant::now();
        let at = *self.delete_confirmed_at.get_or_insert(now + CONFIRMED);
        at <= now
    }

    /// Takes the tasks that have come, so that posts and receipts of all ranges share a commit.
    ///
    /// If commits are frequent it waits for more, but not once there is enough for one commit.
    pub(super) fn gather(&mut self) -> Result<(), Tier1Error> {
        for task in self.tasks.try_iter().take(TASKS_MAX) {
            self.take(task)?;
        }
        let begin = Instant::now();
        let until = begin + self.pace.wait(begin);
        while !self.stopping && !self.range.is_backlogged() && self.waiting.len() < TASKS_MAX {
            let Ok(task) = self.tasks.recv_deadline(until) else { break };
            self.take(task)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::STEP_ROWS;

    #[test]
    fn the_first_commits_after_a_rest_have_no_pause_and_later_ones_a_short_one() {
        let begin = Instant::now();
        let mut pace = CommitPace::new(true, false, begin);
        let mut now = begin;
        for at in 0..100 {
            let wait = pace.wait(now);
            assert_eq!(wait.is_zero(), at < AT_ONCE + 1, "{at}");
            assert!(wait <= PAUSE);
            now += wait;
            pace.commit(now);
        }
        assert!(now - begin >= PAUSE * (100 - AT_ONCE - 1));
        now += PAUSE * AT_ONCE;
        assert!(pace.wait(now) <= PAUSE);
        now += PAUSE;
        assert!(pace.wait(now).is_zero());
        let mut without = CommitPace::new(false, false, begin);
        (0..100).for_each(|_| without.commit(begin));
        assert!(without.wait(begin).is_zero());
    }

    #[test]
    fn commits_are_small_while_callers_wait() {
        for is_backlogged in [false, true] {
            assert_eq!(rows(false, is_backlogged, false), COMMIT_ROWS);
            assert_eq!(rows(false, is_backlogged, true), COMMIT_ROWS_ASKED);
        }
        for is_asked in [false, true] {
            assert_eq!(rows(true, false, is_asked), COMMIT_ROWS_BESIDE_FEW);
            assert_eq!(rows(true, true, is_asked), COMMIT_ROWS_BESIDE_MESSAGES);
        }
        // One quarter for messages, then a whole step, and the last quarter, which is kept for messages.
        const { assert!(COMMIT_ROWS_BESIDE_MESSAGES / 4 + STEP_ROWS <= COMMIT_ROWS_BESIDE_MESSAGES / 4 * 3) };
    }
}
