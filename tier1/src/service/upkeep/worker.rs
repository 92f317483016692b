//! The worker thread of a range. It compares stored signatures, so that neither the writer nor the async
//! runtime has to.
//!
//! A job that fails is kept. It is tried again after a while, and when a caller waits for a flush.

mod verify;

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use crossbeam::channel::{Receiver, RecvTimeoutError};
use doppel_contract::Backlog;
use doppel_protocol::Tier1Error;
use doppel_threads::{LoweredPriority, lower_priority};

use crate::machine::{Command, STEP_ROWS};
use crate::range::owed::{OwedScan, OwedWork, PIECE_ROWS};
use crate::service::ownership::owner::Owner;
use crate::service::upkeep::Upkeep;
use crate::service::upkeep::job::{Job, MemberVerification};
use crate::service::upkeep::recomputation::RecomputeWhen;
use crate::service::upkeep::sweep::Sweep;
use crate::service::writer::task::Task;

pub(crate) use verify::{LastWinner, measure, verify};

/// Members that are compared together.
const TOGETHER: usize = 256;

/// First and longest pause before failed jobs are tried again. Each pause is twice as long as the one before.
const RETRY: Duration = Duration::from_secs(5);
const RETRY_MAX: Duration = Duration::from_secs(600);

/// Most failed jobs that are kept. If there are more, the worker goes through the rows again to find them.
const FAILED_MAX: usize = 10_000;

struct Worker<'t> {
    upkeep: &'t Upkeep,
    owner: &'t Owner,
    jobs: &'t Receiver<Job>,
    sweep: Sweep,
    /// The scan for owed work. `None` after it has gone through all rows.
    scan: Option<OwedScan>,
    last_winner: LastWinner,
    failed: HashSet<Job>,
    /// Whether more jobs failed than are kept. If so, a flush makes the worker go through the rows again.
    has_unkept_failures: bool,
    scan_again: bool,
    /// When failed jobs are tried again, and the pause before that.
    retry_at: Option<Instant>,
    pause: Duration,
}

pub(in crate::service) fn run(upkeep: &Upkeep, owner: &Owner, jobs: &Receiver<Job>) {
    lower_priority(LoweredPriority::BelowAll);
    // If the totals say that no work is owed, the rows need not be searched for it.
    let Backlog { pending, deferred_searches, dirty_groups, uncovered_groups, unverified, .. } =
        owner.totals().1;
    let owes = pending + deferred_searches + dirty_groups + uncovered_groups + unverified > 0;
    let scan = owes.then(|| OwedScan::new(upkeep.collection.map.run(owner.id)));
    let sweep = Sweep::new(upkeep.collection.map.run(owner.id));
    let (failed, last_winner) = (HashSet::new(), LastWinner::default());
    let (has_unkept_failures, scan_again, retry_at, pause) = (false, false, None, RETRY);
    let mut worker = Worker {
        upkeep,
        owner,
        jobs,
        sweep,
        scan,
        last_winner,
        failed,
        has_unkept_failures,
        scan_again,
        retry_at,
        pause,
    };
    worker.run();
}

impl Worker<'_> {
    fn run(&mut self) {
        loop {
            let received = match self.retry_at {
                Some(at) => self.jobs.recv_deadline(at),
                None => self.jobs.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            let job = match received {
                Ok(job) => job,
                Err(RecvTimeoutError::Timeout) => {
                    if self.retry().is_break() {
                        return;
                    }
                    continue;
                }
                Err(RecvTimeoutError::Disconnected) => return,
            };
            let mut verify = Vec::new();
            let mut next = Some(job);
            while let Some(job) = next.take() {
                // The next start finds what is owed.
                if self.upkeep.ranges.is_over(self.owner) {
                    return;
                }
                if let Job::Verify(of) = job {
                    verify.push(of);
                } else {
                    self.verify(std::mem::take(&mut verify));
                    if self.work(job).is_break() {
                        return;
                    }
                }
                next = if verify.len() < TOGETHER { self.jobs.try_recv().ok() } else { None };
            }
            self.verify(verify);
        }
    }

    fn tell(&self, task: Task) {
        // If the writer has ended, the next start finds what is owed.
        drop(self.owner.tasks.send(task));
    }

    fn work(&mut self, job: Job) -> ControlFlow<()> {
        std::thread::yield_now();
        match job {
            Job::Verify(of) => self.verify(vec![of]),
            Job::Recompute(group) => {
                let began = Instant::now();
                match self.upkeep.recompute(group, RecomputeWhen::IfOwed) {
                    Ok(Some(found)) => {
                        let commands = found.commands(STEP_ROWS, None).map(Command::Recomputed).collect();
                        self.tell(Task::Commands(commands));
                    }
                    Ok(None) => {}
                    Err(Tier1Error::Stopping) => return ControlFlow::Break(()),
                    Err(refused) => {
                        tracing::error!(%refused, %group, "cannot recompute a group; it is tried again");
                        self.fail(job, refused);
                    }
                }
                self.tell(Task::RecomputationDone { group, took: began.elapsed() });
            }
            Job::Cover(group) => {
                let began = Instant::now();
                match self.upkeep.find_cover(group) {
                    Ok(Some(found)) => {
                        let commands = found.commands(STEP_ROWS).map(Command::Covered).collect();
                        self.tell(Task::Commands(commands));
                    }
                    Ok(None) => {}
                    Err(Tier1Error::Stopping) => return ControlFlow::Break(()),
                    Err(refused) => {
                        tracing::error!(%refused, %group, "cannot find the cover of a group; it is tried again");
                        self.fail(job, refused);
                    }
                }
                self.tell(Task::CoverDone { group, took: began.elapsed() });
            }
            Job::FindOwed => self.find_owed(),
            Job::FindOwedAgain => {
                // The scan also finds what was left out.
                self.has_unkept_failures = false;
                let was_under_way =
                    self.scan.replace(OwedScan::new(self.upkeep.collection.map.run(self.owner.id)));
                if was_under_way.is_none() {
                    self.tell(Task::OwedWork(Some(OwedWork::default())));
                }
            }
            Job::Sweep => {
                match self.sweep.next_piece(self.upkeep, &*self.owner.store) {
                    Ok(commands) if commands.is_empty() => {}
                    Ok(commands) => self.tell(Task::Commands(commands)),
                    Err(refused) => {
                        tracing::error!(%refused, "cannot sweep the rows; the sweep continues later");
                    }
                }
                self.tell(Task::SweepDone);
            }
            Job::Retry => {
                self.owner.clear_retry();
                self.scan_again = self.has_unkept_failures;
                if self.scan.is_none() {
                    self.scan_again_if_asked();
                }
                return self.retry();
            }
            Job::Stop => return ControlFlow::Break(()),
        }
        ControlFlow::Continue(())
    }

    /// Goes through all rows again, if a flush asked for it.
    fn scan_again_if_asked(&mut self) {
        if std::mem::take(&mut self.scan_again) {
            self.has_unkept_failures = false;
            self.scan = Some(OwedScan::new(self.upkeep.collection.map.run(self.owner.id)));
            self.tell(Task::OwedWork(Some(OwedWork::default())));
        }
    }

    fn find_owed(&mut self) {
        let Some(scan) = &mut self.scan else { return };
        match scan.piece(&*self.owner.uncached_store, PIECE_ROWS) {
            Ok(found) => {
                if found.is_none() {
                    self.scan = None;
                    self.clear();
                    self.scan_again_if_asked();
                }
                self.tell(Task::OwedWork(found));
            }
            Err(error) => {
                tracing::error!(%error, range = self.owner.id.0, "cannot read what a row owes; it is tried again");
                // This scan continues behind the damaged row. A later one reads it again.
                self.has_unkept_failures = true;
                self.owner.failures.record(error.into());
                self.tell(Task::OwedWork(Some(OwedWork::default())));
            }
        }
    }

    fn fail(&mut self, job: Job, refused: Tier1Error) {
        if self.failed.len() < FAILED_MAX {
            self.failed.insert(job);
        } else {
            self.has_unkept_failures = true;
        }
        // A node that is away comes back, and a full disk gets room. Damage stays.
        if matches!(refused, Tier1Error::Unavailable(_) | Tier1Error::DiskFull(_)) {
            self.pause = RETRY;
        }
        self.retry_at.get_or_insert_with(|| Instant::now() + self.pause);
        self.owner.failures.record(refused);
    }

    /// Tries all failed jobs again.
    fn retry(&mut self) -> ControlFlow<()> {
        self.retry_at = None;
        self.pause = self.pause.saturating_mul(2).min(RETRY_MAX);
        let mut verify = Vec::new();
        for job in std::mem::take(&mut self.failed) {
            if self.upkeep.ranges.is_over(self.owner) {
                return ControlFlow::Break(());
            }
            if let Job::Verify(of) = job {
                verify.push(of);
            } else if self.work(job).is_break() {
                return ControlFlow::Break(());
            }
        }
        self.verify(verify);
        self.clear();
        ControlFlow::Continue(())
    }

    /// Clears the report of failures once all jobs that had failed are done.
    fn clear(&mut self) {
        if self.failed.is_empty() && !self.has_unkept_failures && self.scan.is_none() {
            self.pause = RETRY;
            self.owner.failures.clear();
        }
    }

    /// Compares members with their winners.
    fn verify(&mut self, members: Vec<MemberVerification>) {
        if members.is_empty() {
            return;
        }
        let mut verified = Vec::new();
        let mut failed = Vec::new();
        verify(self.upkeep, members, &mut self.last_winner, &mut |of, measured| match measured {
            Ok(Some(with)) => verified.push(Command::Verified { page: of.page, content: of.content, with }),
            // The member or the winner has another content by now. That change brings new work.
            Ok(None) => {}
            Err(refused) => failed.push((of, refused)),
        });
        for (of, refused) in failed {
            tracing::error!(%refused, page = ?of.page, "cannot compare a member with its winner; it is tried again");
            self.fail(Job::Verify(of), refused);
        }
        if !verified.is_empty() {
            self.tell(Task::Commands(verified));
        }
    }
}
