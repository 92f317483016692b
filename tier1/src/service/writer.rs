//! The writer of a range: the only thread that changes the shards of the range.
//!
//! The writer turns tasks into commands and commands into a commit. It answers callers and acts on effects
//! only after the commit is on disk. While one commit is flushed the next tasks gather, so load makes the
//! commits larger by itself.
//!
//! Invariant: after a commit fails, the shards in memory are ahead of the store, so the writer accepts
//! nothing more and refuses every caller. If the disk was full it continues when there is room. Otherwise
//! only a restart helps. If another node owns the range now, only this writer ends.

mod pace;
pub(in crate::service) mod queue_space;
mod receipts;
mod refusal;
mod reopening;
pub(in crate::service) mod sender;
pub(in crate::service) mod task;
mod waiting;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crossbeam::channel::{Receiver, Sender};
use doppel_model::Timestamp;
use doppel_protocol::range_owner::PostCallback;
use doppel_protocol::{IndexOrders, Tier1Error};
use doppel_threads::{LoweredPriority, lower_priority};

use crate::machine::{Command, Effect};
use crate::peers::{POST_MESSAGES, Post};
use crate::range::{PostId, Range, SettledWork};
use crate::service::backups::peer_backups::PeerBackups;
use crate::service::backups::spill::CommitSpills;
use crate::service::ownership::OwnedRanges;
use crate::service::ownership::owner::Owner;
use crate::service::upkeep::background::{Background, SWEEP_PAUSE};
use crate::service::writer::queue_space::Reply;
use crate::service::writer::task::Task;
use crate::storage::progress::Progress;
use crate::storage::store::StoreError;
use pace::CommitPace;
use waiting::WaitingTask;

/// How long the writer sleeps if no task comes and background work waits for its turn.
const IDLE: Duration = Duration::from_millis(20);

/// For this long after the last question, or the last submission of few pages, the writer expects more of
/// them.
const ASKED: Duration = Duration::from_secs(1);

/// Tasks that are taken before a commit is built. Tasks that come in the meantime join it while it has room.
const TASKS_MAX: usize = 256;

struct RangeWriter<'t> {
    owned: &'t OwnedRanges,
    peer_backups: &'t PeerBackups,
    owner: &'t Owner,
    tasks: &'t Receiver<Task>,
    range: Range,
    background: Background,
    spills: CommitSpills,
    progress: Progress,
    waiting: VecDeque<WaitingTask>,
    /// Where to send the answers to posts of other ranges.
    posts: HashMap<PostId, PostCallback>,
    last_post: PostId,
    sender: Sender<Post>,
    holds: MessageHolds,
    pace: CommitPace,
    /// When rows of confirmed messages are deleted, if no commit comes before.
    delete_confirmed_at: Option<Instant>,
    /// When the writer last noticed a question for pages, and when few pages were last handed in.
    last_asked: Option<Instant>,
    last_few: Option<Instant>,
    /// A task that came during a commit and is not for the machine. It is taken after the commit, whether or
    /// not the commit succeeds.
    postponed: Option<Task>,
    /// When the range last continued after its disk was full, and the last pause before that.
    last_recovery: Option<(Instant, Duration)>,
    stopping: bool,
}

/// Whether messages may leave at present.
#[derive(Debug, Default)]
struct MessageHolds {
    /// Number of backups that hold messages back.
    count: usize,
    /// Backups that wait until no post is under way.
    waiting: Vec<Reply<()>>,
}

/// Runs until the writer is stopped, the store fails, or the process no longer owns the range.
pub(super) fn run(
    (owned, peer_backups, owner): (&OwnedRanges, &PeerBackups, &Owner),
    tier2: &Arc<dyn IndexOrders>,
    range: Range,
    tasks: &Receiver<Task>,
    sender: Sender<Post>,
) {
    lower_priority(LoweredPriority::BelowAnswers);
    let background = Background::new(Arc::clone(tier2), owner, owned.collection.map.count());
    let mut writer = RangeWriter {
        owned,
        peer_backups,
        owner,
        tasks,
        range,
        background,
        spills: CommitSpills::default(),
        progress: Progress::new(owner.dir.clone()),
        waiting: VecDeque::new(),
        posts: HashMap::new(),
        last_post: 0,
        sender,
        holds: MessageHolds::default(),
        pace: CommitPace::new(owned.ranges.has_others(), owner.lease.is_some(), Instant::now()),
        delete_confirmed_at: None,
        last_asked: None,
        last_few: None,
        postponed: None,
        last_recovery: None,
        stopping: false,
    };
    while let Err(refused) = writer.serve() {
        if owner.is_stopping() {
            tracing::info!(%refused, range = owner.id.0, "this process no longer owns the range; callers that wait for it must ask again");
            return writer.refuse_all(&refused);
        }
        let is_full = matches!(refused, Tier1Error::DiskFull(_));
        if is_full && writer.can_reopen() {
            if !writer.wait_for_room(refused) {
                return;
            }
        } else if is_full && owner.lease.is_some() {
            return writer.give_up_range(&refused);
        } else {
            tracing::error!(%refused, range = owner.id.0, "tier 1 accepts no more writes; restart the process");
            return writer.refuse_for_good(refused);
        }
    }
}

impl RangeWriter<'_> {
    fn serve(&mut self) -> Result<(), Tier1Error> {
        // The previous owner may not have acknowledged the last rows, so no message leaves before they are
        // settled.
        self.owner.store.settle().map_err(|error| self.refusal_of(error))?;
        self.note_handed_over();
        loop {
            if self.owner.is_stopping() {
                return Err(self.owner.why_ended());
            }
            self.peer_backups.tend();
            if self.stopping {
                self.drop_unowed();
                if !self.has_commands() {
                    self.progress.note_now(&self.range.shards().metas);
                    return Ok(());
                }
                self.commit()?;
                continue;
            }
            // A hold may be over, or a failed post may be due again.
            self.send()?;
            if !self.range.is_holding_back() {
                let searches =
                    self.background.schedule(self.owned.ranges.pending(), self.owned.ranges.is_quiet());
                if !searches.is_empty() {
                    self.take(Task::Commands(searches))?;
                }
            }
            if !self.has_commands() && !self.must_commit() {
                self.check_rows()?;
                let pause = if self.background.is_waiting() { IDLE } else { SWEEP_PAUSE };
                let left = self.delete_confirmed_at.map(|at| at.saturating_duration_since(Instant::now()));
                if let Ok(task) = self.tasks.recv_timeout(left.map_or(pause, |left| left.min(pause))) {
                    self.take(task)?;
                }
                // A receipt alone makes no commit.
                continue;
            }
            self.gather()?;
            self.commit()?;
        }
    }

    /// Checks that rows can be moved, before a commit fails because of it. The ownership of a replica ends
    /// only when a commit fails.
    fn check_rows(&self) -> Result<(), StoreError> {
        let database = self.owner.database.as_ref().filter(|_| self.owner.lease.is_none());
        database.map_or(Ok(()), |database| database.check())
    }

    /// Whether a command may go into the next commit, or a finished task waits for its answer.
    fn has_commands(&self) -> bool {
        let holds_back = self.range.is_holding_back();
        self.waiting.front().is_some_and(WaitingTask::is_done)
            || self.waiting.iter().any(|entry| entry.is_due(holds_back))
    }

    fn take(&mut self, task: Task) -> Result<(), Tier1Error> {
        let task = match WaitingTask::new(task) {
            Ok(waiting) => {
                if waiting.is_small() {
                    self.last_few = Some(Instant::now());
                }
                waiting.enqueue(&mut self.waiting);
                return Ok(());
            }
            Err(task) => task,
        };
        match task {
            Task::Post { post, done } => {
                self.last_post += 1;
                match self.range.take_in(self.last_post, post) {
                    Ok(()) => drop(self.posts.insert(self.last_post, done)),
                    Err(error) => done(Err(error)),
                }
            }
            Task::Receipt { by, answer } => {
                if let Err(error) = &answer {
                    tracing::warn!(%error, from = %self.owner.id, to = %by, "a post to another range failed; its messages are sent again");
                }
                self.take_receipt(by, &answer)?;
                self.holds.answer_waiting(&self.range);
            }
            Task::Hold { reply } => {
                self.holds.count += 1;
                self.holds.waiting.push(reply);
                self.holds.answer_waiting(&self.range);
            }
            Task::Release => self.holds.count = self.holds.count.saturating_sub(1),
            Task::RecomputationDone { group, took } => self.background.end_recomputation(group, took),
            Task::CoverDone { group, took } => self.background.end_cover(group, took),
            Task::SweepDone => self.background.end_sweep(),
            Task::OwedWork(found) => {
                let searches = self.background.take_owed(found);
                if !searches.is_empty() {
                    self.take(Task::Commands(searches))?;
                }
            }
            Task::FlushBatch => {
                self.owner.clear_hurry();
                self.background.flush_batch();
            }
            Task::Spill(request) => self.spills.take_request(request),
            Task::Stop
            | Task::Submit { .. }
            | Task::Commands(_)
            | Task::SearchResults { .. }
            | Task::Apply { .. }
            | Task::Report { .. } => {
                self.stopping = true;
            }
        }
        Ok(())
    }

    /// Makes one commit: applies commands until it is large enough, commits, answers callers, and acts on the
    /// effects.
    fn commit(&mut self) -> Result<(), Tier1Error> {
        let mut answers_for: Vec<usize> = Vec::new();
        let size = self.commit_size();
        let database = self.owner.database.as_ref().filter(|_| size.is_beside_few);
        let undisturbed = database.and_then(|database| database.pause_batches());
        let holds_back = self.range.is_holding_back();
        let mut builder = self.range.build(&*self.owner.uncached_store, size.rows, Timestamp::now());
        // The members of a giant group are told their winner over many commits. Most of each commit is left
        // to new tasks, which do not wait for those messages.
        let backlogged = builder.deliver_first()?;
        let mut at = 0;
        while !builder.has_enough() {
            let Some(entry) = self.waiting.get_mut(at) else {
                // New tasks go to the end, because `answers_for` holds indexes into the queue.
                match self.tasks.try_recv().map(WaitingTask::new) {
                    Ok(Ok(waiting)) => self.waiting.push_back(waiting),
                    Ok(Err(task)) => {
                        self.postponed = Some(task);
                        break;
                    }
                    Err(_) => break,
                }
                continue;
            };
            if holds_back && entry.can_wait() {
                at += 1;
                continue;
            }
            let Some(command) = entry.commands.pop_front() else {
                at += 1;
                continue;
            };
            if undisturbed.is_none() {
                std::thread::yield_now();
            }
            if matches!(command, Command::Submit { .. }) {
                answers_for.push(at);
            }
            if backlogged {
                builder.command(command)?;
            } else {
                builder.apply(command)?;
            }
        }
        builder.deliver(usize::MAX)?;
        builder.take_posted()?;
        let writes = builder.finish()?;
        drop(undisturbed);
        self.delete_confirmed_at = None;
        std::thread::yield_now();
        if !writes.is_empty() {
            let encoded = self.spills.encode(&writes);
            let span = tracing::debug_span!("commit", rows = writes.len(), outcomes = answers_for.len());
            span.in_scope(|| self.owner.store.commit(writes)).map_err(|error| self.refusal_of(error))?;
            self.spills.append(encoded);
            self.progress.note(&self.range.shards().metas);
            self.pace.commit(Instant::now());
        }
        let SettledWork { effects, answers, waits } = self.range.settled();
        self.owner.update_figures(&self.range, &waits);
        self.publish(&effects);
        let mut answers_for = answers_for.into_iter();
        for effect in effects {
            match effect {
                Effect::Outcome(outcome) => {
                    if let Some(entry) = answers_for.next().and_then(|at| self.waiting.get_mut(at)) {
                        entry.outcomes.push(outcome);
                    }
                }
                other => self.background.take_effect(other),
            }
        }
        // Readers must find the changes of this commit when they see this index.
        self.owner.ordered.store(self.background.ordered(), Ordering::Release);
        self.background.send();
        self.note_handed_over();
        self.owner.waiting_orders.store(self.background.orders_on_their_way(), Ordering::Relaxed);
        for (id, answer) in answers {
            if let Some(done) = self.posts.remove(&id) {
                done(answer);
            }
        }
        self.send()?;
        for entry in WaitingTask::take_done(&mut self.waiting) {
            entry.finish(&self.range);
        }
        if let Some(task) = self.postponed.take() {
            self.take(task)?;
        }
        Ok(())
    }

    /// Notes the last order that tier 2 has received. Only this thread commits, so no order is behind it.
    fn note_handed_over(&self) {
        if let Some(order) = self.background.last_handed_over() {
            self.owner.note_handed_over(order);
        }
    }

    /// Hands posts for other ranges to the thread that sends them.
    fn send(&mut self) -> Result<(), Tier1Error> {
        if self.holds.count == 0 && self.range.outbox().has_posts() {
            for post in self.range.posts(&*self.owner.uncached_store, POST_MESSAGES)? {
                // The sender ends after this thread.
                drop(self.sender.send(post));
            }
        }
        Ok(())
    }

    /// Publishes how far the feed has grown.
    fn publish(&self, effects: &[Effect]) {
        if effects.iter().any(|effect| matches!(effect, Effect::Changed)) {
            self.owned.feed.publish(&self.range, || {});
        }
    }

    /// Why a commit was not made. If another node owns the range now, ends this ownership and nothing else.
    fn refusal_of(&self, error: StoreError) -> Tier1Error {
        if matches!(error, StoreError::Deposed(_)) {
            self.owner.end();
            self.owned.end_statuses(self.owner.id);
        }
        error.into()
    }
}

impl MessageHolds {
    /// Answers the backups that wait until no post is under way.
    fn answer_waiting(&mut self, range: &Range) {
        if !range.outbox().is_posting() {
            for reply in self.waiting.drain(..) {
                reply.send(());
            }
        }
    }
}
