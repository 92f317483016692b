//! The worker thread: comparison of stored signatures, off the writer and off the async runtime.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use crossbeam::channel::Receiver;
use doppel_model::signature::Signature;
use doppel_model::{ContentHash, GroupId, PageId};
use doppel_protocol::Tier1Error;

use super::Tier1;
use super::repair::Wanted;
use super::sweep::Sweep;
use super::writer::Task;
use crate::machine::{Command, STEP_ROWS};
use crate::record::{Measured, Member};

/// A job for the worker.
pub(crate) enum Job {
    /// Compare a member with its group's winner.
    Verify {
        page: PageId,
        content: ContentHash,
        winner: PageId,
        winner_content: ContentHash,
    },
    /// Recompute a group by exact comparison.
    Recompute(GroupId),
    /// Look for rows that have ended.
    Sweep,
    Stop,
}

/// Answers handed to the writer together.
const TOGETHER: usize = 256;

pub(super) fn run(tier1: &Tier1, jobs: &Receiver<Job>) {
    let mut verified = Vec::new();
    let mut sweep = Sweep::default();
    let mut last_winner: Option<(ContentHash, Arc<Signature>)> = None;
    while let Ok(job) = jobs.recv() {
        let mut job = Some(job);
        while let Some(next) = job {
            std::thread::yield_now();
            // What is owed is found at the next start.
            if tier1.stopping.load(Ordering::Relaxed) {
                return;
            }
            match next {
                Job::Verify { page, content, winner, winner_content } => {
                    match verify(tier1, page, content, (winner, winner_content), &mut last_winner) {
                        Ok(Some(with)) => verified.push(Command::Verified { page, content, with }),
                        // One of the two has another content by now; what changed it brings new work.
                        Ok(None) => {}
                        Err(refused) => {
                            tracing::error!(%refused, ?page, "a member cannot be verified");
                            tier1.stuck.get_or_init(|| refused);
                        }
                    }
                }
                Job::Recompute(group) => {
                    let began = Instant::now();
                    match tier1.recompute(group, Wanted::IfOwed) {
                        Ok(Some(found)) => {
                            let commands = found.regrouped(STEP_ROWS, None).map(Command::Regrouped).collect();
                            drop(tier1.tasks.send(Task::Commands(commands)));
                        }
                        Ok(None) => {}
                        Err(Tier1Error::Stopping) => return,
                        Err(refused) => {
                            tracing::error!(%refused, %group, "a group cannot be recomputed");
                            tier1.stuck.get_or_init(|| refused);
                        }
                    }
                    drop(tier1.tasks.send(Task::Recomputed { group, took: began.elapsed() }));
                }
                Job::Sweep => {
                    match sweep.piece(tier1) {
                        Ok(commands) if commands.is_empty() => {}
                        Ok(commands) => drop(tier1.tasks.send(Task::Commands(commands))),
                        Err(refused) => tracing::error!(%refused, "the rows cannot be swept"),
                    }
                    drop(tier1.tasks.send(Task::Swept));
                }
                Job::Stop => return,
            }
            job = if verified.len() < TOGETHER { jobs.try_recv().ok() } else { None };
        }
        if !verified.is_empty() {
            drop(tier1.tasks.send(Task::Commands(std::mem::take(&mut verified))));
        }
    }
}

pub(crate) fn verify(
    tier1: &Tier1,
    page: PageId,
    content: ContentHash,
    winner: (PageId, ContentHash),
    last_winner: &mut Option<(ContentHash, Arc<Signature>)>,
) -> Result<Option<Measured>, Tier1Error> {
    let (winner, winner_content) = winner;
    if last_winner.as_ref().is_none_or(|(known, _)| *known != winner_content) {
        match tier1.read_signature(winner)?.filter(|signature| signature.content() == winner_content) {
            Some(signature) => *last_winner = Some((winner_content, signature)),
            None => return Ok(None),
        }
    }
    let Some((_, representative)) = last_winner else { return Ok(None) };
    let Some(signature) = tier1.read_signature(page)?.filter(|signature| signature.content() == content)
    else {
        return Ok(None);
    };
    Ok(Some(measure(tier1, &signature, representative)))
}

/// The comparison of a content with another, as records keep it.
pub(super) fn measure(tier1: &Tier1, signature: &Signature, with: &Signature) -> Measured {
    let comparison = tier1.settings.policy.compare(signature, with);
    Measured {
        content: with.content(),
        shared: comparison.shared,
        shingles: with.shingles(),
        similar: comparison.similar,
    }
}

/// A group's members with a current content, and how they fall apart.
pub(crate) struct Recomputed {
    pub(super) group: GroupId,
    pub(crate) changes: u64,
    pub(crate) losses: u64,
    pub(super) members: Vec<(PageId, Member)>,
    /// Indices into `members`, the winner's component first.
    pub(super) components: Vec<Vec<usize>>,
}
