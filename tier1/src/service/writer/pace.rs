//! When a commit is made that has little in it, and how much one takes in.
//!
//! Where ranges are apart, each commit costs requests to other processes, and where they are replicated the work of all servers
//! of the log. Ranges that answer each other at once would make a commit for each few messages. So commits that come all the
//! time have a pause between them, in which more gathers; the first ones after a rest have none, so what comes alone does not
//! wait.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use doppel_protocol::Tier1Error;

use super::{ASKED, TASKS_MAX, Writer};
use crate::machine::{COMMIT_ROWS, COMMIT_ROWS_ASKED, COMMIT_ROWS_BESIDE_FEW, COMMIT_ROWS_BESIDE_MESSAGES};
use crate::service::writer::waiting::Waiting;

/// The time between two commits that come all the time, where they cost requests, and where they cost entries of a shared log.
const PAUSE: Duration = Duration::from_millis(20);
const PAUSE_REPLICATED: Duration = Duration::from_millis(40);

/// Commits after a rest that come without a pause.
const AT_ONCE: u32 = 8;

/// How long rows of confirmed messages wait for a commit that has something else.
const CONFIRMED: Duration = Duration::from_millis(50);

/// The pace of a range's commits.
#[derive(Debug)]
pub(super) struct Pace {
    /// None where nothing is won by a pause.
    pause: Option<Duration>,
    /// The commits so far were due up to here, at a pause each.
    due: Instant,
}

impl Pace {
    /// Of a range beside which other processes have some or not, and which is replicated or not.
    pub(super) fn new(apart: bool, replicated: bool, now: Instant) -> Self {
        let pause = if replicated { PAUSE_REPLICATED } else { PAUSE };
        Self { pause: (apart || replicated).then_some(pause), due: now }
    }

    /// Whether commits that come all the time have a pause between them.
    pub(super) fn has_pause(&self) -> bool {
        self.pause.is_some()
    }

    /// How long the next commit waits for more.
    pub(super) fn wait(&self, now: Instant) -> Duration {
        let Some(pause) = self.pause else { return Duration::ZERO };
        self.due.saturating_duration_since(now).saturating_sub(pause * AT_ONCE)
    }

    /// A commit is made.
    pub(super) fn commit(&mut self, now: Instant) {
        if let Some(pause) = self.pause {
            self.due = self.due.max(now) + pause;
        }
    }
}

/// How large a commit may be.
#[derive(Debug, Clone, Copy)]
pub(super) struct CommitSize {
    /// Its row limit.
    pub(super) rows: usize,
    /// Whether few pages wait for it beside much else. Then no rows are moved while it is built.
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

impl Writer<'_> {
    /// How large the next commit may be. Few pages have others beside them if many pages wait too, or if messages are on their way, such as
    /// those that tell the members of a giant group of another winner. Where a commit costs requests to other processes, few pages wait for the
    /// pause between commits in any case.
    pub(super) fn commit_size(&mut self) -> CommitSize {
        let now = Instant::now();
        if self.owner.asked.swap(false, Ordering::Relaxed) {
            self.last_asked = Some(now);
        }
        let is_recent = |at: Option<Instant>| at.is_some_and(|at| now.duration_since(at) < ASKED);
        let is_large = |entry: &Waiting| !entry.is_done() && !entry.is_of_few();
        let is_backlogged = self.range.is_backlogged();
        let is_beside_few = is_recent(self.last_few)
            && !self.pace.has_pause()
            && (is_backlogged || self.waiting.iter().any(is_large));
        CommitSize { rows: rows(is_beside_few, is_backlogged, is_recent(self.last_asked)), is_beside_few }
    }

    /// Whether there is something for a commit that no caller waits for.
    pub(super) fn must_commit(&mut self) -> bool {
        if self.range.has_messages() || !self.range.has_work() {
            self.forget_at = None;
            return self.range.has_messages();
        }
        let now = Instant::now();
        let at = *self.forget_at.get_or_insert(now + CONFIRMED);
        at <= now
    }

    /// Takes the tasks that are there, so that posts and receipts of all ranges share a commit. Where commits come all the time
    /// it waits for more, but not with as much as one commit takes.
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
    fn the_first_commits_after_a_rest_do_not_wait_and_later_ones_never_long() {
        let begin = Instant::now();
        let mut pace = Pace::new(true, false, begin);
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
        let mut without = Pace::new(false, false, begin);
        (0..100).for_each(|_| without.commit(begin));
        assert!(without.wait(begin).is_zero());
    }

    #[test]
    fn commits_are_small_while_somebody_waits() {
        for is_backlogged in [false, true] {
            assert_eq!(rows(false, is_backlogged, false), COMMIT_ROWS);
            assert_eq!(rows(false, is_backlogged, true), COMMIT_ROWS_ASKED);
        }
        for is_asked in [false, true] {
            assert_eq!(rows(true, false, is_asked), COMMIT_ROWS_BESIDE_FEW);
            assert_eq!(rows(true, true, is_asked), COMMIT_ROWS_BESIDE_MESSAGES);
        }
        // A quarter for messages, the rest of a step, and the last quarter, which is kept for messages.
        const { assert!(COMMIT_ROWS_BESIDE_MESSAGES / 4 + STEP_ROWS <= COMMIT_ROWS_BESIDE_MESSAGES / 4 * 3) };
    }
}
