//! The worker thread of a range. It compares stored signatures, so that neither the writer nor the async
//! runtime has to.
//!
//! A job that fails is kept. It is tried again after a while, and when a caller waits for a flush.

mod verify;

use std::collections::HashSet;
use std::time::{Duration, Instant};

use crossbeam::channel::{Receiver, RecvTimeoutError};
use doppel_contract::Backlog;
use doppel_protocol::Tier1Error;
use doppel_threads::{GiveWay, give_way};

use super::Tier1;
use super::job::{Job, Verify};
use super::owner::Owner;
use super::repair::Wanted;
use super::sweep::Sweep;
use super::task::Task;
use crate::machine::{Command, STEP_ROWS};
use crate::range::owed::{OwedScan, OwedWork, PIECE_ROWS};

pub(crate) use verify::{LastWinner, measure, verify};

/// Members that are compared together.
const TOGETHER: usize = 256;

/// First and longest pause before failed jobs are tried again. Each pause is twice as long as the one before.
const RETRY: Duration = Duration::from_secs(5);
const RETRY_MAX: Duration = Duration::from_secs(600);

/// Most failed jobs that are kept. If there are more, the worker goes through the rows again to find them.
const FAILED_MAX: usize = 10_000;

struct Worker<'t> {
    tier1: &'t Tier1,
    owner: &'t Owner,
    jobs: &'t Receiver<Job>,
    sweep: Sweep,
    /// The scan for owed work. `None` after it has gone through all rows.
    scan: Option<OwedScan>,
    last_winner: LastWinner,
    failed: HashSet<Job>,
    /// Whether more jobs failed than are kept. If so, a flush makes the worker go through the rows again.
    incomplete: bool,
    scan_again: bool,
    /// When failed jobs are tried again, and the pause before that.
    retry_at: Option<Instant>,
    pause: Duration,
}

/// Whether the worker continues.
enum Go {
    On,
    End,
}

pub(super) fn run(tier1: &Tier1, owner: &Owner, jobs: &Receiver<Job>) {
    give_way(GiveWay::ToAll);
    // If the totals say that no work is owed, the rows need not be searched for it.
    let Backlog { pending, deferred_searches, dirty_groups, uncovered_groups, unverified, .. } =
        owner.totals().1;
    let owes = pending + deferred_searches + dirty_groups + uncovered_groups + unverified > 0;
    let scan = owes.then(|| OwedScan::new(tier1.map.run(owner.id)));
    let sweep = Sweep::of(tier1.map.run(owner.id));
    let (failed, last_winner) = (HashSet::new(), LastWinner::default());
    let (incomplete, scan_again, retry_at, pause) = (false, false, None, RETRY);
    let mut worker = Worker {
        tier1,
        owner,
        jobs,
        sweep,
        scan,
        last_winner,
        failed,
        incomplete,
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
                    if matches!(self.retry(), Go::End) {
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
                if self.tier1.is_over(self.owner) {
                    return;
                }
                if let Job::Verify(of) = job {
                    verify.push(of);
                } else {
                    self.verify(std::mem::take(&mut verify));
                    if matches!(self.work(job), Go::End) {
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

    fn work(&mut self, job: Job) -> Go {
        std::thread::yield_now();
        match job {
            Job::Verify(of) => self.verify(vec![of]),
            Job::Recompute(group) => {
                let began = Instant::now();
                match self.tier1.recompute(group, Wanted::IfOwed) {
                    Ok(Some(found)) => {
                        let commands = found.regrouped(STEP_ROWS, None).map(Command::Recomputed).collect();
                        self.tell(Task::Commands(commands));
                    }
                    Ok(None) => {}
                    Err(Tier1Error::Stopping) => return Go::End,
                    Err(refused) => {
                        tracing::error!(%refused, %group, "a group cannot be recomputed");
                        self.fail(job, refused);
                    }
                }
                self.tell(Task::Recomputed { group, took: began.elapsed() });
            }
            Job::Cover(group) => {
                let began = Instant::now();
                match self.tier1.find_cover(group) {
                    Ok(Some(found)) => {
                        let commands = found.covered(STEP_ROWS).map(Command::Covered).collect();
                        self.tell(Task::Commands(commands));
                    }
                    Ok(None) => {}
                    Err(Tier1Error::Stopping) => return Go::End,
                    Err(refused) => {
                        tracing::error!(%refused, %group, "the cover of a group cannot be found");
                        self.fail(job, refused);
                    }
                }
                self.tell(Task::Covered { group, took: began.elapsed() });
            }
            Job::FindOwed => self.find_owed(),
            Job::FindOwedAgain => {
                // The scan also finds what was left out.
                self.incomplete = false;
                let was_under_way = self.scan.replace(OwedScan::new(self.tier1.map.run(self.owner.id)));
                if was_under_way.is_none() {
                    self.tell(Task::Owed(Some(OwedWork::default())));
                }
            }
            Job::Sweep => {
                match self.sweep.piece(self.tier1, &*self.owner.store) {
                    Ok(commands) if commands.is_empty() => {}
                    Ok(commands) => self.tell(Task::Commands(commands)),
                    Err(refused) => tracing::error!(%refused, "the rows cannot be swept"),
                }
                self.tell(Task::Swept);
            }
            Job::Retry => {
                self.owner.take_retry();
                self.scan_again = self.incomplete;
                if self.scan.is_none() {
                    self.begin_again();
                }
                return self.retry();
            }
            Job::Stop => return Go::End,
        }
        Go::On
    }

    /// Goes through all rows again, if a flush asked for it.
    fn begin_again(&mut self) {
        if std::mem::take(&mut self.scan_again) {
            self.incomplete = false;
            self.scan = Some(OwedScan::new(self.tier1.map.run(self.owner.id)));
            self.tell(Task::Owed(Some(OwedWork::default())));
        }
    }

    fn find_owed(&mut self) {
        let Some(scan) = &mut self.scan else { return };
        match scan.piece(&*self.owner.uncached_store, PIECE_ROWS) {
            Ok(found) => {
                if found.is_none() {
                    self.scan = None;
                    self.clear();
                    self.begin_again();
                }
                self.tell(Task::Owed(found));
            }
            Err(error) => {
                tracing::error!(%error, range = self.owner.id.0, "what a row owes cannot be read");
                // This scan continues behind the damaged row. A later one reads it again.
                self.incomplete = true;
                self.owner.stuck.failed(error.into());
                self.tell(Task::Owed(Some(OwedWork::default())));
            }
        }
    }

    fn fail(&mut self, job: Job, refused: Tier1Error) {
        if self.failed.len() < FAILED_MAX {
            self.failed.insert(job);
        } else {
            self.incomplete = true;
        }
        // A node that is away comes back, and a full disk gets room. Damage stays.
        if matches!(refused, Tier1Error::Unavailable(_) | Tier1Error::DiskFull(_)) {
            self.pause = RETRY;
        }
        self.retry_at.get_or_insert_with(|| Instant::now() + self.pause);
        self.owner.stuck.failed(refused);
    }

    /// Tries all failed jobs again.
    fn retry(&mut self) -> Go {
        self.retry_at = None;
        self.pause = self.pause.saturating_mul(2).min(RETRY_MAX);
        let mut verify = Vec::new();
        for job in std::mem::take(&mut self.failed) {
            if self.tier1.is_over(self.owner) {
                return Go::End;
            }
            if let Job::Verify(of) = job {
                verify.push(of);
            } else if matches!(self.work(job), Go::End) {
                return Go::End;
            }
        }
        self.verify(verify);
        self.clear();
        Go::On
    }

    /// Clears the report of failures once all jobs that had failed are done.
    fn clear(&mut self) {
        if self.failed.is_empty() && !self.incomplete && self.scan.is_none() {
            self.pause = RETRY;
            self.owner.stuck.cleared();
        }
    }

    /// Compares members with their winners.
    fn verify(&mut self, members: Vec<Verify>) {
        if members.is_empty() {
            return;
        }
        let mut verified = Vec::new();
        let mut failed = Vec::new();
        verify(self.tier1, members, &mut self.last_winner, &mut |of, measured| match measured {
            Ok(Some(with)) => verified.push(Command::Verified { page: of.page, content: of.content, with }),
            // The member or the winner has another content by now. That change brings new work.
            Ok(None) => {}
            Err(refused) => failed.push((of, refused)),
        });
        for (of, refused) in failed {
            tracing::error!(%refused, page = ?of.page, "a member cannot be verified");
            self.fail(Job::Verify(of), refused);
        }
        if !verified.is_empty() {
            self.tell(Task::Commands(verified));
        }
    }
}
