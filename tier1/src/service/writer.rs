//! The writer thread of a range: the only one that changes its shards.
//!
//! Tasks become commands, commands a commit, and only a commit that is on disk is answered or acted on. When a
//! commit fails the shards in memory are ahead of the store, so the writer takes nothing more and every
//! caller is told so: until there is room where the disk was full, and otherwise until the process is restarted. It ends
//! alone when another node owns the range.

mod confirmed;
mod pace;
mod refusing;
mod reopening;
mod waiting;

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use crossbeam::channel::{Receiver, Sender};
use doppel_model::Timestamp;
use doppel_protocol::range_owner::PostDone;
use doppel_protocol::{IndexOrders, Tier1Error};
use doppel_threads::{GiveWay, give_way};

use super::Tier1;
use super::background::{Background, SWEEP_PAUSE};
use super::changes::Backups;
use super::feed::extent;
use super::owner::Owner;
use super::room::Reply;
use super::task::Task;
use crate::machine::{Command, Effect};
use crate::peers::{POST_MESSAGES, Post};
use crate::progress::Progress;
use crate::range::{PostId, Range, Released};
use crate::store::StoreError;
use pace::Pace;
use waiting::Waiting;

/// How long the writer sleeps when nothing comes and background work waits for its turn.
const IDLE: Duration = Duration::from_millis(20);

/// Questions, and submissions of few pages, are expected for so long after the last one.
const ASKED: Duration = Duration::from_secs(1);

/// Tasks taken before a commit is built. Those that come while it is are taken into it as long as it has room.
const TASKS_MAX: usize = 256;

struct Writer<'t> {
    tier1: &'t Tier1,
    owner: &'t Owner,
    tasks: &'t Receiver<Task>,
    range: Range,
    background: Background,
    backups: Backups,
    progress: Progress,
    waiting: VecDeque<Waiting>,
    /// Posts of other ranges, and where their answers go.
    posts: HashMap<PostId, PostDone>,
    last_post: PostId,
    sender: Sender<Post>,
    sending: Sending,
    pace: Pace,
    /// When rows of confirmed messages go, if no commit comes before.
    forget_at: Option<Instant>,
    /// When pages were last asked for, as far as the writer knows, and when few were handed in.
    last_asked: Option<Instant>,
    last_few: Option<Instant>,
    /// What came during a commit and is not for the machine. It is taken after it, whether or not the commit is made.
    set_aside: Option<Task>,
    /// When the range last went on after its disk was full, and how long it had paused before the last look.
    went_on: Option<(Instant, Duration)>,
    stopping: bool,
}

/// Whether messages leave at present.
#[derive(Debug, Default)]
struct Sending {
    /// The number of backups that want them to stay.
    holds: usize,
    /// Backups that wait until nothing is under way.
    waiting: Vec<Reply<()>>,
}

/// Runs until it is stopped, the store fails, or the process does not own the range any more.
pub(super) fn run(
    (tier1, owner): (&Tier1, &Owner),
    tier2: &Arc<dyn IndexOrders>,
    range: Range,
    tasks: &Receiver<Task>,
    sender: Sender<Post>,
) {
    give_way(GiveWay::ToAnswers);
    let background = Background::new(Arc::clone(tier2), owner, tier1.map.count());
    let mut writer = Writer {
        tier1,
        owner,
        tasks,
        range,
        background,
        backups: Backups::default(),
        progress: Progress::new(owner.dir.clone()),
        waiting: VecDeque::new(),
        posts: HashMap::new(),
        last_post: 0,
        sender,
        sending: Sending::default(),
        pace: Pace::new(tier1.ranges.has_others(), owner.lease.is_some(), Instant::now()),
        forget_at: None,
        last_asked: None,
        last_few: None,
        set_aside: None,
        went_on: None,
        stopping: false,
    };
    while let Err(refused) = writer.serve() {
        if owner.is_stopping() {
            tracing::info!(%refused, range = owner.id.0, "what waits for the range is to be asked for again");
            return writer.refuse_all(&refused);
        }
        let is_full = matches!(refused, Tier1Error::DiskFull(_));
        if is_full && writer.can_reopen() {
            if !writer.wait_for_room(refused) {
                return;
            }
        } else if is_full && owner.lease.is_some() {
            return writer.leave(&refused);
        } else {
            tracing::error!(%refused, range = owner.id.0, "tier 1 takes no more writes");
            return writer.fail(refused);
        }
    }
}

impl Writer<'_> {
    fn serve(&mut self) -> Result<(), Tier1Error> {
        // The owner before may have acknowledged none of what is there, so nothing of it leaves before it is settled.
        self.owner.store.settle().map_err(|error| self.refused(error))?;
        self.note_handed_over();
        loop {
            if self.owner.is_stopping() {
                return Err(self.owner.ended());
            }
            self.tier1.range_backups.tend();
            if self.stopping {
                self.leave_unowed();
                if !self.has_commands() {
                    self.progress.note_now(&self.range.shards().metas);
                    return Ok(());
                }
                self.commit()?;
                continue;
            }
            // A hold may be over, or a post that failed may go again.
            self.send()?;
            if !self.range.holds_back() {
                let searches = self.background.schedule(self.tier1.pending(), self.tier1.is_quiet());
                if !searches.is_empty() {
                    self.take(Task::Commands(searches))?;
                }
            }
            if !self.has_commands() && !self.must_commit() {
                self.check_rows()?;
                let pause = if self.background.is_waiting() { IDLE } else { SWEEP_PAUSE };
                let left = self.forget_at.map(|at| at.saturating_duration_since(Instant::now()));
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

    /// Whether rows can be moved, before a commit has to find that out. Of a replica, only a commit that fails ends the ownership.
    fn check_rows(&self) -> Result<(), StoreError> {
        let database = self.owner.database.as_ref().filter(|_| self.owner.lease.is_none());
        database.map_or(Ok(()), |database| database.check())
    }

    /// Whether a command may go into the next commit, or a caller waits for it.
    fn has_commands(&self) -> bool {
        let holds_back = self.range.holds_back();
        self.waiting.front().is_some_and(Waiting::is_done)
            || self.waiting.iter().any(|entry| entry.is_due(holds_back))
    }

    fn take(&mut self, task: Task) -> Result<(), Tier1Error> {
        let task = match Waiting::new(task) {
            Ok(waiting) => {
                if waiting.is_of_few() {
                    self.last_few = Some(Instant::now());
                }
                waiting.line_up(&mut self.waiting);
                return Ok(());
            }
            Err(task) => task,
        };
        match task {
            Task::Posted { post, done } => {
                self.last_post += 1;
                match self.range.take_in(self.last_post, post) {
                    Ok(()) => drop(self.posts.insert(self.last_post, done)),
                    Err(error) => done(Err(error)),
                }
            }
            Task::Receipt { by, answer } => {
                if let Err(error) = &answer {
                    tracing::warn!(%error, from = %self.owner.id, to = %by, "messages are sent again");
                }
                self.confirmed(by, &answer)?;
                self.sending.answer(&self.range);
            }
            Task::Hold { reply } => {
                self.sending.holds += 1;
                self.sending.waiting.push(reply);
                self.sending.answer(&self.range);
            }
            Task::Release => self.sending.holds = self.sending.holds.saturating_sub(1),
            Task::Recomputed { group, took } => self.background.recomputed(group, took),
            Task::Covered { group, took } => self.background.covered(group, took),
            Task::Swept => self.background.swept(),
            Task::Owed(found) => {
                let searches = self.background.found(found);
                if !searches.is_empty() {
                    self.take(Task::Commands(searches))?;
                }
            }
            Task::FlushBatch => {
                self.owner.take_hurry();
                self.background.flush_batch();
            }
            Task::FollowCommits(follow) => self.backups.follow(follow),
            Task::Stop
            | Task::Submit { .. }
            | Task::Commands(_)
            | Task::Found { .. }
            | Task::Apply { .. }
            | Task::Report { .. } => {
                self.stopping = true;
            }
        }
        Ok(())
    }

    /// Applies what is there until the commit is large enough, commits, answers, and carries out the
    /// effects.
    fn commit(&mut self) -> Result<(), Tier1Error> {
        let mut answers_for: Vec<usize> = Vec::new();
        let size = self.commit_size();
        let database = self.owner.database.as_ref().filter(|_| size.is_beside_few);
        let undisturbed = database.and_then(|database| database.pause_batches());
        let holds_back = self.range.holds_back();
        let mut builder = self.range.build(&*self.owner.uncached_store, size.rows, Timestamp::now());
        // A giant group is told its winner in many commits: most of each is left to whatever arrives, which does
        // not wait for the messages on their way.
        let backlogged = builder.deliver_first()?;
        let mut at = 0;
        while !builder.has_enough() {
            let Some(entry) = self.waiting.get_mut(at) else {
                // At the end, since `answers_for` has places.
                match self.tasks.try_recv().map(Waiting::new) {
                    Ok(Ok(waiting)) => self.waiting.push_back(waiting),
                    Ok(Err(task)) => {
                        self.set_aside = Some(task);
                        break;
                    }
                    Err(_) => break,
                }
                continue;
            };
            if holds_back && entry.may_wait() {
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
        self.forget_at = None;
        std::thread::yield_now();
        if !writes.is_empty() {
            let kept = self.backups.prepare(&writes);
            let span = tracing::debug_span!("commit", rows = writes.len(), outcomes = answers_for.len());
            span.in_scope(|| self.owner.store.commit(writes)).map_err(|error| self.refused(error))?;
            self.backups.committed(kept);
            self.progress.note(&self.range.shards().metas);
            self.pace.commit(Instant::now());
        }
        let Released { effects, answers, waits } = self.range.settled();
        self.owner.set_totals(&self.range, &waits);
        self.publish(&effects);
        let mut answers_for = answers_for.into_iter();
        for effect in effects {
            match effect {
                Effect::Outcome(outcome) => {
                    if let Some(entry) = answers_for.next().and_then(|at| self.waiting.get_mut(at)) {
                        entry.answered.push(outcome);
                    }
                }
                other => self.background.take(other),
            }
        }
        // What this commit has changed is to be read already.
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
        for entry in Waiting::take_done(&mut self.waiting) {
            entry.finish(&self.range);
        }
        if let Some(task) = self.set_aside.take() {
            self.take(task)?;
        }
        Ok(())
    }

    /// Nothing is committed meanwhile but by this thread.
    fn note_handed_over(&self) {
        if let Some(order) = self.background.handed_over() {
            self.owner.handed_over(order);
        }
    }

    /// Hands what other ranges are to have to the thread that posts it.
    fn send(&mut self) -> Result<(), Tier1Error> {
        if self.sending.holds == 0 && self.range.outbox().has_posts() {
            for post in self.range.posts(&*self.owner.uncached_store, POST_MESSAGES)? {
                // It ends after this thread.
                drop(self.sender.send(post));
            }
        }
        Ok(())
    }

    /// Makes the feed's growth known.
    fn publish(&self, effects: &[Effect]) {
        if effects.iter().any(|effect| matches!(effect, Effect::Changed)) {
            let mut feed = self.tier1.feed.lock().unwrap_or_else(PoisonError::into_inner);
            for shard in self.range.shards().run().map(|shard| usize::from(shard.0)) {
                feed[shard] = extent(&self.range.shards().metas[shard]);
            }
            self.tier1.feed_grew.notify_all();
        }
    }

    /// Why a commit was not made. Where another node owns the range, this ownership is over, and no more than that.
    fn refused(&self, error: StoreError) -> Tier1Error {
        if matches!(error, StoreError::Deposed(_)) {
            self.owner.end();
            if let Some(statuses) = &self.tier1.statuses {
                statuses.end(self.owner.id);
            }
        }
        error.into()
    }
}

impl Sending {
    /// Tells backups that nothing is under way.
    fn answer(&mut self, range: &Range) {
        if !range.outbox().is_posting() {
            for reply in self.waiting.drain(..) {
                reply.send(());
            }
        }
    }
}
