//! The writer thread: the only one that changes the shards.
//!
//! Tasks become commands, commands a commit, and only a flushed commit is answered or acted on. When a
//! commit fails the shards in memory are ahead of the store, so the writer takes nothing more and every
//! caller is told so until the process is restarted.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use crossbeam::channel::{Receiver, Sender};
use doppel_model::GroupId;
use doppel_protocol::{Outcome, Submission, Tier1Error, Tier2Api};

use super::Tier1;
use super::background::{Background, SWEEP_PAUSE};
use super::backup::{Backups, FollowCommits};
use super::feed::Extent;
use crate::machine::{COMMIT_ROWS, COMMIT_ROWS_ASKED, Command, Effect, Hint, Machine, Shards};
use crate::progress::Progress;
use crate::recovery::Owed;
use crate::totals;

/// How long the writer sleeps when nothing comes and background work waits for its turn.
const IDLE: Duration = Duration::from_millis(20);

/// Questions are expected for so long after the last one.
const ASKED: Duration = Duration::from_secs(1);

/// A task for the writer.
pub(crate) enum Task {
    Submit {
        submissions: Vec<(Submission, Option<Hint>)>,
        reply: Sender<Result<Vec<Outcome>, Tier1Error>>,
    },
    Commands(Vec<Command>),
    /// Commands whose commit is waited for.
    Apply {
        commands: Vec<Command>,
        reply: Sender<Result<(), Tier1Error>>,
    },
    /// The worker is done with a group, whether or not there was anything to change.
    Recomputed {
        group: GroupId,
        took: Duration,
    },
    /// The worker has swept a piece of the rows.
    Swept,
    /// Background work is wanted at once.
    FlushBatch,
    FollowCommits(FollowCommits),
    Stop,
}

/// A task whose commands are on their way.
struct Waiting {
    commands: VecDeque<Command>,
    answered: Vec<Outcome>,
    reply: Reply,
}

enum Reply {
    Submit(Sender<Result<Vec<Outcome>, Tier1Error>>),
    Apply(Sender<Result<(), Tier1Error>>),
    Nobody,
}

struct Writer<'t> {
    tier1: &'t Tier1,
    tasks: &'t Receiver<Task>,
    shards: Shards,
    background: Background,
    backups: Backups,
    progress: Progress,
    waiting: VecDeque<Waiting>,
    /// When pages were last asked for, as far as the writer knows.
    last_asked: Option<Instant>,
    stopping: bool,
}

/// Runs until it is stopped, or the store fails.
pub(super) fn run(
    tier1: &Tier1,
    tier2: &Arc<dyn Tier2Api>,
    shards: Shards,
    owed: Owed,
    tasks: &Receiver<Task>,
) {
    let background = Background::new(Arc::clone(tier2), tier1.jobs.clone(), owed);
    let mut writer = Writer {
        tier1,
        tasks,
        shards,
        background,
        backups: Backups::default(),
        progress: Progress::new(tier1.progress.get().cloned()),
        waiting: VecDeque::new(),
        last_asked: None,
        stopping: false,
    };
    loop {
        let (_, backlog) = totals::sum(&writer.shards.metas, writer.shards.undelivered());
        let searches = writer.background.schedule(backlog.pending);
        if !searches.is_empty() {
            writer.take(Task::Commands(searches));
        }
        let idle = writer.waiting.is_empty() && writer.shards.undelivered() == 0;
        if idle {
            if writer.stopping {
                writer.progress.note_now(&writer.shards.metas);
                return;
            }
            let pause = if writer.background.is_waiting() { IDLE } else { SWEEP_PAUSE };
            let next = tasks.recv_timeout(pause).ok();
            let Some(task) = next else { continue };
            writer.take(task);
        }
        if let Err(refused) = writer.commit() {
            tracing::error!(%refused, "tier 1 takes no more writes");
            return writer.fail(refused);
        }
    }
}

impl Writer<'_> {
    fn take(&mut self, task: Task) {
        match task.into_waiting() {
            Ok(waiting) => self.waiting.push_back(waiting),
            Err(Task::Recomputed { group, took }) => self.background.recomputed(group, took),
            Err(Task::Swept) => self.background.swept(),
            Err(Task::FlushBatch) => self.background.flush_batch(),
            Err(Task::FollowCommits(follow)) => self.backups.follow(follow),
            Err(_) => self.stopping = true,
        }
    }

    /// Whether somebody asks for pages at present.
    fn is_asked(&mut self) -> bool {
        let now = Instant::now();
        if self.tier1.asked.swap(false, Ordering::Relaxed) {
            self.last_asked = Some(now);
        }
        self.last_asked.is_some_and(|last| now.duration_since(last) < ASKED)
    }

    /// Applies what is there until the commit is large enough, commits, answers, and carries out the
    /// effects.
    fn commit(&mut self) -> Result<(), Tier1Error> {
        let mut answers_for: Vec<usize> = Vec::new();
        let mut set_aside = None;
        let commit_rows = if self.is_asked() { COMMIT_ROWS_ASKED } else { COMMIT_ROWS };
        let mut machine = Machine::new(&*self.tier1.beneath, &mut self.shards, commit_rows);
        // A giant group is told its winner in many commits: half of each is left to whatever arrives, which does
        // not wait for the messages on their way.
        let crowded = machine.deliver_half()?;
        let mut at = 0;
        while !machine.has_enough() {
            let Some(entry) = self.waiting.get_mut(at) else {
                match self.tasks.try_recv().map(Task::into_waiting) {
                    Ok(Ok(waiting)) => self.waiting.push_back(waiting),
                    Ok(Err(task)) => {
                        set_aside = Some(task);
                        break;
                    }
                    Err(_) => break,
                }
                continue;
            };
            let Some(command) = entry.commands.pop_front() else {
                at += 1;
                continue;
            };
            std::thread::yield_now();
            if matches!(command, Command::Submit { .. }) {
                answers_for.push(at);
            }
            if crowded {
                machine.command(command)?;
            } else {
                machine.apply(command)?;
            }
        }
        machine.deliver(usize::MAX)?;
        let applied = machine.finish();
        std::thread::yield_now();
        if !applied.writes.is_empty() {
            let kept = self.backups.prepare(&applied.writes);
            let span =
                tracing::debug_span!("commit", rows = applied.writes.len(), outcomes = answers_for.len());
            span.in_scope(|| self.tier1.store.commit(applied.writes))?;
            self.backups.committed(kept);
            self.progress.note(&self.shards.metas);
        }
        self.publish(&applied.effects);
        let mut answers_for = answers_for.into_iter();
        for effect in applied.effects {
            match effect {
                Effect::Outcome(outcome) => {
                    if let Some(entry) = answers_for.next().and_then(|at| self.waiting.get_mut(at)) {
                        entry.answered.push(outcome);
                    }
                }
                other => self.background.take(other),
            }
        }
        self.background.send();
        while self.waiting.front().is_some_and(|entry| entry.commands.is_empty()) {
            if let Some(entry) = self.waiting.pop_front() {
                entry.finish(None);
            }
        }
        if let Some(task) = set_aside {
            self.take(task);
        }
        Ok(())
    }

    /// Makes the new totals and the feed's growth known.
    fn publish(&self, effects: &[Effect]) {
        let sums = totals::sum(&self.shards.metas, self.shards.undelivered());
        *self.tier1.totals.write().unwrap_or_else(PoisonError::into_inner) = sums;
        if effects.iter().any(|effect| matches!(effect, Effect::Changed)) {
            let mut feed = self.tier1.feed.lock().unwrap_or_else(PoisonError::into_inner);
            for (number, meta) in feed.iter_mut().zip(&self.shards.metas) {
                *number = Extent::of(meta);
            }
            self.tier1.feed_grew.notify_all();
        }
    }

    /// Tells everybody, also who comes later, that nothing is taken any more.
    fn fail(self, refused: Tier1Error) {
        let refused = self.tier1.broken.get_or_init(|| refused).clone();
        for entry in self.waiting {
            entry.finish(Some(&refused));
        }
        while let Ok(task) = self.tasks.recv() {
            match task.into_waiting() {
                Ok(waiting) => waiting.finish(Some(&refused)),
                Err(Task::Stop) => return,
                Err(_) => {}
            }
        }
    }
}

impl Task {
    /// The task's commands and who waits for them; the task itself when it has none.
    fn into_waiting(self) -> Result<Waiting, Self> {
        let (commands, reply) = match self {
            Self::Submit { submissions, reply } => {
                let commands = submissions
                    .into_iter()
                    .map(|(submission, hint)| Command::Submit { submission: Box::new(submission), hint })
                    .collect();
                (commands, Reply::Submit(reply))
            }
            Self::Commands(commands) => (commands.into(), Reply::Nobody),
            Self::Apply { commands, reply } => (commands.into(), Reply::Apply(reply)),
            other => return Err(other),
        };
        Ok(Waiting { commands, answered: Vec::new(), reply })
    }
}

impl Waiting {
    /// Answers. Who has gone away does not want the answer any more.
    fn finish(self, refused: Option<&Tier1Error>) {
        match (self.reply, refused) {
            (Reply::Submit(reply), None) => drop(reply.send(Ok(self.answered))),
            (Reply::Submit(reply), Some(refused)) => drop(reply.send(Err(refused.clone()))),
            (Reply::Apply(reply), None) => drop(reply.send(Ok(()))),
            (Reply::Apply(reply), Some(refused)) => drop(reply.send(Err(refused.clone()))),
            (Reply::Nobody, _) => {}
        }
    }
}
