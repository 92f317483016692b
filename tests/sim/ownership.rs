//! Ownership of replicated ranges: owners die, are deposed while they live, and wake up with their old work.
//!
//! Until an append has an answer, nobody knows whether its commit counts. The model follows the commit when
//! that is decided: when the owner gets the answer, or when the next owner begins.

use std::collections::BTreeMap;
use std::sync::Arc;

use doppel_model::{Epoch, RangeId};
use doppel_protocol::{IndexCommand, LogPosition};
use doppel_tier1::simulation::{
    Command, Effect, PostReply, SimCommit, SimDisk, SimOwedScan, SimRange, SimReplica, SimSettledWork,
};
use doppel_tier1::{ReplicaError, StoreError, Write};

use super::clients::submission;
use super::mistake::Mistake;
use super::model::{Version, url};
use super::replicas::SETTLING;
use super::store::{NO_STANDBY, Ownership};
use super::violation::{Checked, failed, holds};
use super::world::{World, range_id};

const DECIDED: &str = "an owner takes for counted what counts";
const DEPOSED: &str = "a deposed owner commits nothing that does not count";
const COMPLETE: &str = "an owner begins with all that counts";

/// Change of the model that a commit causes.
#[derive(Debug, Clone, Default)]
pub(crate) enum Change {
    #[default]
    None,
    Accept(Vec<Version>),
    Forget(usize),
    /// Forget a page if retention has dropped its record.
    ForgetIfGone(usize),
}

/// A commit that may or may not count.
pub(crate) struct UndecidedCommit {
    position: LogPosition,
    writes: Vec<Write>,
    change: Change,
    versions: Vec<doppel_model::PageId>,
    /// A planted mistake: work of the commit that left before it was settled.
    settled: Option<SimSettledWork>,
}

/// A node that becomes the next owner of a range, and what happens meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Successor {
    pub(crate) by: u32,
    /// Whether another node tries to take over at the same time.
    pub(crate) rival: bool,
    /// Whether the old owner's orders reach the index before the new owner announces itself.
    pub(crate) orders_first: bool,
}

/// An owner that lives and does not know that it is deposed.
pub(crate) struct Deposed {
    node: usize,
    replica: Arc<SimReplica>,
    epoch: Epoch,
    disk: Arc<SimDisk>,
    range: SimRange,
    commit: Option<SimCommit>,
    /// Whether its last commit counts although no effect of it has left.
    has_counted: bool,
    posts: BTreeMap<u64, RangeId>,
    /// Number of the last order that it has handed over.
    ordered: u64,
}

impl Deposed {
    /// The node of the deposed owner.
    pub(crate) fn node(&self) -> usize {
        self.node
    }

    /// Whether the deposed owner runs on `node`.
    pub(crate) fn is_of(&self, node: usize) -> bool {
        self.node == node
    }
}

/// Whether a commit counts but is not settled yet.
fn waits_for_standby(written: &Result<(), StoreError>) -> bool {
    matches!(written, Err(StoreError::Engine(why)) if why == NO_STANDBY)
}

/// State of a commit after an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CommitOutcome {
    Counts,
    Waits,
    Deposed,
}

impl World {
    /// Whether a range has an owner that can make a commit. If it has none, a node takes over if possible.
    pub(crate) fn is_ready(&mut self, at: usize) -> Checked<bool> {
        let host = &self.hosts[at];
        let Some(present) = host.store.present() else { return Ok(true) };
        if present.owner().is_none() {
            self.elect(at)?;
        } else if host.undecided.is_some() {
            self.go_on(at)?;
        }
        Ok(self.hosts[at].store.is_owned() && self.hosts[at].undecided.is_none())
    }

    /// Makes a commit of a range, or resumes it.
    pub(crate) fn write(&mut self, at: usize, writes: &[Write]) -> Checked<CommitOutcome> {
        let mut written = self.write_rows(at, writes.to_vec());
        for _ in 0..SETTLING {
            if !waits_for_standby(&written) {
                break;
            }
            let standbys = self.standbys(at);
            if let Some(replicas) = &mut self.hosts[at].replicas {
                replicas.follow_one(&standbys)?;
            }
            written = self.write_rows(at, writes.to_vec());
        }
        if waits_for_standby(&written) {
            // The owner is killed while it waits. The next owner may find the commit in the log or not.
            let host = &mut self.hosts[at];
            let node = host.store.present().and_then(super::store::Present::owner);
            if let (Some(node), Some(replicas)) = (node, &mut host.replicas) {
                replicas.crash(node, 0)?;
            }
            return Ok(CommitOutcome::Deposed);
        }
        let Some(present) = self.hosts[at].store.present() else {
            return match written {
                Ok(()) => Ok(CommitOutcome::Counts),
                Err(_) if self.hosts[at].store.has_failed() => Ok(CommitOutcome::Waits),
                Err(error) => Err(failed("a commit")(error.into())),
            };
        };
        match written {
            Ok(()) => Ok(CommitOutcome::Counts),
            Err(StoreError::Deposed(_)) => Ok(CommitOutcome::Deposed),
            Err(_) if present.is_under_way() => Ok(CommitOutcome::Waits),
            Err(error) => Err(failed("a commit")(error.into())),
        }
    }

    /// The nodes that follow a range: all that neither own it nor sleep.
    pub(crate) fn standbys(&self, at: usize) -> Vec<usize> {
        let host = &self.hosts[at];
        let owner = host.store.present().and_then(super::store::Present::owner);
        let count = host.replicas.as_ref().map_or(0, super::replicas::Replicas::count);
        let follows = |node: &usize| owner != Some(*node) && !host.deposed.iter().any(|one| one.is_of(*node));
        (0..count).filter(follows).collect()
    }

    /// Records that the owner's commit is in the log.
    pub(crate) fn note_counted(&mut self, at: usize) -> Checked {
        let host = &mut self.hosts[at];
        let (Some(present), Some(replicas)) = (host.store.present(), &mut host.replicas) else {
            return Ok(());
        };
        let position = present.disk().position();
        let is_hasty = self.planted.is(Mistake::TwoAppendsUnderWay);
        holds!(DECIDED, is_hasty || replicas.log.counts(position), "{position:?}");
        replicas.taken.push(position);
        Ok(())
    }

    /// Records a commit of which nobody knows yet whether it counts.
    pub(crate) fn leave_undecided(
        &mut self,
        at: usize,
        (writes, change): (Vec<Write>, Change),
        position: LogPosition,
    ) -> Checked {
        let settled = self.planted.is(Mistake::SentBeforeSettled).then(|| self.hosts[at].range.settled());
        let leaves = settled.is_some();
        let versions = std::mem::take(&mut self.changed);
        self.hosts[at].undecided = Some(UndecidedCommit { position, writes, change, versions, settled });
        if leaves { self.post(at) } else { Ok(()) }
    }

    /// Lets the owner find out the result of its append.
    fn go_on(&mut self, at: usize) -> Checked {
        let Some(undecided) = &self.hosts[at].undecided else { return Ok(()) };
        match self.write(at, &undecided.writes.clone())? {
            CommitOutcome::Waits => Ok(()),
            CommitOutcome::Deposed => self.hear_of_deposition(at),
            CommitOutcome::Counts => {
                self.note_counted(at)?;
                let Some(UndecidedCommit { change, versions, settled, .. }) = self.hosts[at].undecided.take()
                else {
                    return Ok(());
                };
                self.apply(&change, false)?;
                self.apply(&change, true)?;
                self.changed = versions;
                let mut effects = match settled {
                    Some(settled) => settled.effects,
                    None => self.settled(at)?,
                };
                self.planted.effects(&mut effects);
                effects.into_iter().try_for_each(|effect| self.grant(at, effect))?;
                self.show_feed();
                Ok(())
            }
        }
    }

    /// Applies a commit to the model, before its rows are stored or after.
    pub(crate) fn apply(&mut self, change: &Change, is_there: bool) -> Checked {
        match change {
            Change::Accept(versions) if !is_there => {
                versions.iter().for_each(|version| self.model.accept(version));
            }
            Change::Forget(page) if !is_there => self.forget(*page),
            Change::ForgetIfGone(page) if is_there => self.forget_if_gone(*page)?,
            _ => {}
        }
        Ok(())
    }

    /// Ends an ownership. The memory of the owner is lost.
    pub(crate) fn end_ownership(&mut self, at: usize) -> Checked {
        if let Some(present) = self.hosts[at].store.present() {
            drop(present.end());
        }
        self.worker.set_away(range_id(at), true);
        self.forget_background(at);
        Ok(())
    }

    /// Tells an owner that it is deposed. It refuses the posts that wait for it.
    pub(crate) fn hear_of_deposition(&mut self, at: usize) -> Checked {
        let id = range_id(at);
        for to in std::mem::take(&mut self.hosts[at].posts).into_values() {
            self.network.answer(id, to, PostReply::unanswered(id));
        }
        self.end_ownership(at)
    }

    /// Forgets everything that only the memory of the owner's process held.
    fn forget_background(&mut self, at: usize) {
        let host = &mut self.hosts[at];
        (host.deferred, host.dirty, host.uncovered) = (Vec::new(), Vec::new(), Vec::new());
        host.verify.clear();
        host.posts.clear();
        host.statuses = self.worker.begin_statuses(range_id(at), None);
        self.delays.forget(range_id(at), self.map);
    }

    /// Kills the owner together with the records that it copied last. Another node takes over, or the same
    /// one again.
    pub(crate) fn kill_owner(&mut self, at: usize) -> Checked {
        let host = &mut self.hosts[at];
        let node = host.store.present().and_then(super::store::Present::owner);
        if let (Some(node), Some(replicas)) = (node, &mut host.replicas) {
            let lost = replicas.random.below(4) as usize;
            replicas.crash(node, lost)?;
            self.end_ownership(at)?;
        }
        self.elect(at)
    }

    /// Lets the first node that is able take over.
    pub(crate) fn elect(&mut self, at: usize) -> Checked {
        let Some(replicas) = &mut self.hosts[at].replicas else { return Ok(()) };
        let (first, count) = (replicas.random.number() as usize, replicas.count());
        for node in (0..count).map(|next| (first + next) % count) {
            let host = &mut self.hosts[at];
            if host.deposed.iter().any(|deposed| deposed.is_of(node)) {
                continue;
            }
            let Some(replicas) = &mut host.replicas else { return Ok(()) };
            let asleep: Vec<usize> = host.deposed.iter().map(Deposed::node).collect();
            if let Some(owner) = replicas.take_over_by_answers(node, &asleep)? {
                return self.begin(at, owner);
            }
        }
        Ok(())
    }

    /// Starts a node that has taken over as the owner.
    pub(crate) fn begin(&mut self, at: usize, owner: Ownership) -> Checked {
        let (id, epoch) = (range_id(at), owner.epoch);
        let host = &mut self.hosts[at];
        let (Some(present), Some(replicas)) = (host.store.present(), &mut host.replicas) else {
            return Ok(());
        };
        let disk = Arc::clone(replicas.disk(owner.node));
        let (last, taken) = (replicas.log.last(), std::mem::take(&mut replicas.taken));
        if replicas.loses_tail() {
            replicas.taken.clone_from(&taken);
        }
        holds!(COMPLETE, last == Some(disk.position()), "{last:?}, it has {:?}", disk.position());
        let lost = taken.iter().find(|position| !replicas.log.counts(**position));
        holds!(DECIDED, lost.is_none(), "{lost:?}");
        present.begin(disk, owner);
        self.forget_background(at);
        self.decide(at)?;
        let host = &mut self.hosts[at];
        let started = SimRange::start(&*host.store, self.settings, id, self.map);
        host.range = started.map_err(|e| failed("a start")(e.into()))?;
        host.forgets = self.planted.is(Mistake::OwedForgotten);
        host.owed = Some(SimOwedScan::new(self.map, id));
        self.worker.set_away(id, false);
        self.index.begin(at, epoch)?;
        self.show_feed();
        self.post(at)
    }

    /// Decides whether the unfinished commit of the previous owner counts.
    fn decide(&mut self, at: usize) -> Checked {
        let host = &mut self.hosts[at];
        let Some(UndecidedCommit { position, change, .. }) = host.undecided.take() else { return Ok(()) };
        if host.replicas.as_ref().is_some_and(|replicas| replicas.log.counts(position)) {
            self.apply(&change, false)?;
            self.apply(&change, true)?;
        }
        Ok(())
    }

    /// Lets another node take over while the owner lives. The owner may have made a commit of which nothing
    /// has left. Returns whether a node took over.
    pub(crate) fn depose(&mut self, at: usize, successor: Successor, has_counted: bool) -> Checked<bool> {
        let Successor { by, rival, orders_first } = successor;
        let host = &mut self.hosts[at];
        let (Some(present), Some(replicas)) = (host.store.present(), &mut host.replicas) else {
            return Ok(false);
        };
        let Some(node) = present.owner() else { return Ok(false) };
        let is_free = |other: &usize| *other != node && host.deposed.iter().all(|one| !one.is_of(*other));
        let others: Vec<usize> = (0..replicas.count()).filter(is_free).collect();
        if others.is_empty() {
            return Ok(false);
        }
        let first = by as usize % others.len();
        let rival = others.get((first + 1) % others.len()).copied().filter(|_| rival && others.len() > 1);
        let owner = if replicas.loses_tail() {
            // Nobody hears the old owner.
            let asleep: Vec<usize> = host.deposed.iter().map(Deposed::node).chain([node]).collect();
            replicas.take_over_by_answers(others[first], &asleep)?
        } else {
            replicas.take_over(others[first], rival)?
        };
        let Some(owner) = owner else { return Ok(false) };
        let disk = present.disk();
        let Some(old) = present.end() else { return Ok(false) };
        let began = SimRange::start(&*host.store, self.settings, range_id(at), self.map);
        let fresh = began.map_err(|e| failed("a start")(e.into()))?;
        let mut deposed = Deposed {
            node: old.node,
            replica: old.replica,
            epoch: old.epoch,
            disk,
            range: std::mem::replace(&mut host.range, fresh),
            commit: old.commit,
            has_counted,
            posts: std::mem::take(&mut host.posts),
            ordered: self.index.ordered(at),
        };
        if orders_first && has_counted {
            self.wake_settled(at, &mut deposed, false)?;
        }
        self.hosts[at].deposed.push(deposed);
        self.begin(at, owner)?;
        Ok(true)
    }

    /// Sends what a deposed owner had settled. Its answers and posts contain only what counts. The index
    /// refuses its orders once it knows the next owner.
    fn wake_settled(&mut self, at: usize, deposed: &mut Deposed, is_known: bool) -> Checked {
        if !std::mem::take(&mut deposed.has_counted) {
            return Ok(());
        }
        let SimSettledWork { effects, answers } = deposed.range.settled();
        for (id, answer) in answers {
            // A refusal is pointless: the sender has heard of the next owner, which may have applied the
            // whole post.
            if let Some(to) = deposed.posts.remove(&id).filter(|_| answer.is_receipt()) {
                self.network.answer(range_id(at), to, answer);
            }
        }
        let posts = deposed.range.posts(&deposed.disk.rows, self.post_envelopes);
        posts
            .map_err(|e| failed("an outbox")(e.into()))?
            .into_iter()
            .for_each(|post| self.network.send(post));
        let orders = effects.into_iter().filter_map(|effect| match effect {
            Effect::Index(order) => Some(order),
            _ => None,
        });
        let orders: Vec<IndexCommand> = orders.collect();
        self.index.order_late(at, (deposed.epoch, deposed.ordered + 1), orders, is_known)
    }

    /// Wakes a deposed owner. It resumes its work or makes a commit, and learns that it is deposed.
    pub(crate) fn wake(&mut self, at: usize, which: usize) -> Checked {
        let host = &mut self.hosts[at];
        if host.deposed.is_empty() {
            return Ok(());
        }
        let mut deposed = host.deposed.swap_remove(which % host.deposed.len());
        let is_idle = deposed.commit.is_none();
        self.wake_settled(at, &mut deposed, true)?;
        let begun = match deposed.commit.take() {
            Some(commit) => Some(commit),
            None if is_idle => self.begin_late(at, &mut deposed)?,
            None => None,
        };
        let Some(mut commit) = begun else { return Ok(()) };
        let position = commit.position();
        // The owner asks the log this often at most, and then ends.
        for _ in 0..3 {
            match deposed.replica.advance_commit(&mut commit) {
                // The last append before the takeover counts, although its owner need not learn that.
                Ok(true) => {
                    let Some(replicas) = &mut self.hosts[at].replicas else { return Ok(()) };
                    if !replicas.has_settled(&deposed.replica, &commit) {
                        continue;
                    }
                    holds!(DEPOSED, replicas.log.counts(position), "{position:?}");
                    deposed.has_counted = true;
                    return self.wake_settled(at, &mut deposed, true);
                }
                Ok(false) => {}
                Err(StoreError::Deposed(_)) => return Ok(()),
                Err(error) => return Err(failed("a deposed owner")(error.into())),
            }
        }
        let Some(replicas) = &mut self.hosts[at].replicas else { return Ok(()) };
        replicas.crash(deposed.node, 0)
    }

    /// Lets a deposed owner begin a commit for a client's request.
    fn begin_late(&mut self, at: usize, deposed: &mut Deposed) -> Checked<Option<SimCommit>> {
        let requests = self.requests.iter().flat_map(|request| &request.versions);
        let is_here = |version: &Version| self.host_of_page(url(version.page).id()) == at;
        let version = requests.map(|(version, _)| version).find(|version| is_here(version));
        let commands = version.map(|version| Command::submit(submission(version, self.contents), None));
        let built = deposed.range.build(&deposed.disk.rows, commands.into_iter().collect(), 0, false);
        let writes = built.map_err(|e| failed("the machine")(e.into()))?;
        if writes.is_empty() {
            return Ok(None);
        }
        match deposed.replica.begin_commit(deposed.epoch, writes) {
            Ok(commit) => Ok(Some(commit)),
            Err(StoreError::Deposed(_)) => Ok(None),
            Err(error) => Err(failed("a deposed owner")(error.into())),
        }
    }

    /// Lets the owner check whether the log has lost its end. If so, the owner writes the lost entries back
    /// and gives up its ownership.
    fn look_at_end(&mut self, at: usize) -> Checked {
        let Some(present) = self.hosts[at].store.present() else { return Ok(()) };
        match present.look() {
            Some(Err(ReplicaError::Store(StoreError::Deposed(_)) | ReplicaError::Contradiction { .. })) => {
                self.hear_of_deposition(at)
            }
            _ => Ok(()),
        }
    }

    /// Ends all faults of the logs. Sleeping owners wake up, and every range gets an owner that waits for
    /// nothing.
    pub(crate) fn heal_logs(&mut self) -> Checked {
        for at in 0..self.hosts.len() {
            let Some(replicas) = &self.hosts[at].replicas else { continue };
            replicas.log.heal();
            if let Some(replicas) = &mut self.hosts[at].replicas {
                replicas.all_answer = true;
            }
            self.hosts[at].depose_next = None;
            while !self.hosts[at].deposed.is_empty() {
                self.wake(at, 0)?;
            }
            self.look_at_end(at)?;
            // One attempt may end an ownership and the next may begin one. Before that, nodes with later
            // entries write them back.
            for _ in 0..9 {
                if self.is_ready(at)? {
                    break;
                }
            }
            if let Some(replicas) = &mut self.hosts[at].replicas {
                replicas.all_answer = false;
            }
            holds!("a range gets an owner", self.hosts[at].store.is_owned(), "range {at}");
        }
        Ok(())
    }
}
