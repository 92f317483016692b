//! The budget of background work: how many deferred searches, recomputations and covers are started, and
//! when.
//!
//! While pages are pending, background work gets a small share. If no page is pending, or a caller waits for
//! a flush, it gets as much as tier 2 and the worker can take. The records name all of this work, so nothing
//! here is durable.

use std::sync::Arc;
use std::time::{Duration, Instant};

use doppel_model::{Epoch, GroupId, PageId, RangeId};
use doppel_protocol::{IndexCommand, IndexError, IndexOrders, Orders, RefusedOrders};

use crate::machine::{Command, Effect};
use crate::range::owed::{OwedWork, UnverifiedMember};
use crate::service::ownership::owner::{Owner, first_order};
use crate::service::upkeep::group_work::{GroupWork, Urgency};
use crate::service::upkeep::job::{Job, JobQueue, MemberVerification};
use crate::service::upkeep::throttle::SearchThrottle;
use crate::service::upkeep::unique_queue::UniqueQueue;

/// While pages are pending: deferred searches started per turn, at least, and groups whose work is under way
/// at a time.
const SHARE: usize = 16;

/// Most orders that wait in tier 2 when deferred searches start and no page is pending. Tier 2 carries out
/// about as many until the next turn, so a page that arrives does not wait behind all of them.
const SEARCHES_MAX: usize = 1_024;

/// Like [`SEARCHES_MAX`], but while pages are pending. They wait for some milliseconds behind these orders. A
/// few pages that are pending all the time do not keep tier 2 idle.
const SEARCHES_BESIDE: usize = 256;

/// Time between two turns, at which background work is started.
const TURN: Duration = Duration::from_millis(20);

/// Time between two pieces of the sweep.
pub(in crate::service) const SWEEP_PAUSE: Duration = Duration::from_secs(1);

/// Most recomputations under way at a time, and most covers.
const GROUPS_MAX: usize = 64;

/// Background work as the writer keeps it.
pub(in crate::service) struct Background {
    tier2: Arc<dyn IndexOrders>,
    jobs: JobQueue,
    /// The range that gives the orders, and its epoch.
    range: RangeId,
    epoch: Epoch,
    /// Orders that tier 2 has not accepted yet, in their order.
    orders: Vec<IndexCommand>,
    /// Delays searches that a page repeats too soon.
    throttle: SearchThrottle,
    /// Index of the last order that tier 2 has accepted.
    accepted: u64,
    /// Whether tier 2 refused the last orders. The refusal is logged once.
    is_refused: bool,
    /// Whether orders were dropped. The next start finds what they were for.
    has_dropped: bool,
    verify: Vec<MemberVerification>,
    /// Number of ranges that share tier 2.
    ranges: usize,
    deferred: UniqueQueue<PageId>,
    dirty: GroupWork,
    uncovered: GroupWork,
    last_turn: Option<Instant>,
    /// When the next piece of the rows is swept. `None` while the worker sweeps one.
    next_sweep: Option<Instant>,
    flushing: bool,
}

impl Background {
    pub(in crate::service) fn new(tier2: Arc<dyn IndexOrders>, owner: &Owner, ranges: usize) -> Self {
        let this = Self {
            tier2,
            jobs: JobQueue::new(owner.jobs.clone()),
            range: owner.id,
            epoch: owner.epoch,
            orders: Vec::new(),
            throttle: SearchThrottle::default(),
            accepted: first_order(owner.epoch) - 1,
            is_refused: false,
            has_dropped: false,
            verify: Vec::new(),
            ranges,
            deferred: UniqueQueue::default(),
            dirty: GroupWork::default(),
            uncovered: GroupWork::default(),
            last_turn: None,
            next_sweep: Instant::now().checked_add(SWEEP_PAUSE),
            flushing: false,
        };
        this.announce();
        this.jobs.send(Job::FindOwed);
        this
    }

    /// Tells tier 2 the index of the next order. A node of the index that lacks an earlier order is then fed
    /// again.
    fn announce(&self) {
        let first = self.accepted + 1;
        let orders = Orders { range: self.range, epoch: self.epoch, first, commands: Vec::new() };
        if let Err(refused) = self.tier2.submit(orders) {
            tracing::debug!(%refused, range = self.range.0, "tier 2 was not told the next order; the next order tells it");
        }
    }

    /// Starts again after tier 2 was restarted without this process, or after the range was opened anew.
    /// Orders and results may be lost. The nodes of the index are fed again, and unanswered searches are
    /// ordered again.
    pub(in crate::service) fn restart(&self) {
        self.announce();
        self.jobs.send(Job::FindOwedAgain);
    }

    /// Index of the last order that was made.
    pub(in crate::service) fn ordered(&self) -> u64 {
        self.accepted + self.orders.len() as u64
    }

    /// Takes what a piece of the rows owes, and asks the worker for the next piece. Returns searches as
    /// commands for the machine.
    pub(in crate::service) fn take_owed(&mut self, owed: Option<OwedWork>) -> Vec<Command> {
        let Some(OwedWork { searches, deferred, unverified, dirty, uncovered }) = owed else {
            return Vec::new();
        };
        deferred.into_iter().for_each(|page| self.deferred.push(page));
        let now = Instant::now();
        dirty.into_iter().for_each(|group| self.dirty.push(group, now));
        uncovered.into_iter().for_each(|group| self.uncovered.push(group, now));
        for UnverifiedMember { page, content, winner, winner_content } in unverified {
            self.jobs.verify(MemberVerification { page, content, winner, winner_content });
        }
        self.jobs.send(Job::FindOwed);
        searches
    }

    /// Takes an effect of a commit.
    pub(in crate::service) fn take_effect(&mut self, effect: Effect) {
        match effect {
            Effect::Index(order) => self.orders.extend(self.throttle.take(order, Instant::now())),
            Effect::Verify { page, content, winner, winner_content } => {
                self.verify.push(MemberVerification { page, content, winner, winner_content });
            }
            Effect::Dirty(group) => self.dirty.push(group, Instant::now()),
            Effect::Uncovered(group) => self.uncovered.push(group, Instant::now()),
            Effect::Deferred(page) => self.deferred.push(page),
            Effect::Quarantine { group, members, begins, into } => {
                self.tell_quarantine(group, members, begins, into);
            }
            Effect::Crowded { url: None, redirects, .. } => {
                tracing::info!(
                    redirects,
                    range = self.range.0,
                    "the number of redirects to a purged page has changed"
                );
            }
            Effect::Crowded { url: Some(url), redirects, begins: true } => tracing::warn!(
                %url,
                redirects,
                range = self.range.0,
                "very many redirects end at this page: each of its changes is told to all of them, which takes long; delete those that \
                 nobody needs"
            ),
            Effect::Crowded { url: Some(url), redirects, begins: false } => {
                tracing::info!(%url, redirects, range = self.range.0, "this page no longer has very many redirects");
            }
            Effect::Changed | Effect::Outcome(_) => {}
        }
    }

    /// Logs the begin or end of a quarantine, because an operator has to decide whether to repair the group.
    fn tell_quarantine(&self, group: GroupId, members: u64, begins: bool, into: Option<GroupId>) {
        let range = self.range;
        if begins {
            tracing::warn!(
                %group, members, range = range.0,
                "the group has more distinct contents than --group-members-max allows, and is quarantined: all its pages are kept until \
                 `doppel repair` has recomputed it, or a recomputation finds few enough contents"
            );
        } else if let Some(into) = into {
            tracing::info!(%group, members, range = range.0, %into, "the group is not quarantined any more: it was merged");
        } else {
            tracing::info!(%group, members, range = range.0, "the group is not quarantined any more");
        }
    }

    /// Hands the orders of a commit to tier 2. Orders that tier 2 refuses are kept and come first the next
    /// time, so none is lost and none is overtaken.
    pub(in crate::service) fn send(&mut self) {
        if !self.orders.is_empty() {
            let commands = std::mem::take(&mut self.orders);
            let count = commands.len() as u64;
            let orders = Orders { range: self.range, epoch: self.epoch, first: self.accepted + 1, commands };
            match self.tier2.submit(orders) {
                Ok(()) => {
                    self.accepted += count;
                    self.is_refused = false;
                }
                // The next start finds all that the orders were for, and so did the owner that took over.
                Err(RefusedOrders {
                    error: IndexError::Stopping | IndexError::StaleEpoch { .. }, ..
                }) => self.has_dropped = true,
                Err(RefusedOrders { orders, error }) => {
                    if !std::mem::replace(&mut self.is_refused, true) {
                        tracing::warn!(%error, orders = count, "tier 2 accepts no orders; they are kept and sent again");
                    }
                    self.orders = orders.commands;
                }
            }
        }
        self.verify.drain(..).for_each(|of| self.jobs.verify(of));
    }

    /// Index of the last order, if tier 2 has received all. Searches that wait in the throttle do not count,
    /// because they change nothing in the index.
    pub(in crate::service) fn last_handed_over(&self) -> Option<u64> {
        (self.orders.is_empty() && !self.has_dropped).then_some(self.accepted)
    }

    /// Whether work waits for its turn.
    pub(in crate::service) fn is_waiting(&self) -> bool {
        !self.orders.is_empty()
            || !self.throttle.is_empty()
            || !self.deferred.is_empty()
            || self.dirty.is_waiting()
            || self.uncovered.is_waiting()
    }

    /// Notes that a recomputation is over.
    pub(in crate::service) fn end_recomputation(&mut self, group: GroupId, took: Duration) {
        self.dirty.end(group, took, Instant::now());
    }

    /// Notes that a cover is done.
    pub(in crate::service) fn end_cover(&mut self, group: GroupId, took: Duration) {
        self.uncovered.end(group, took, Instant::now());
    }

    pub(in crate::service) fn end_sweep(&mut self) {
        self.next_sweep = Instant::now().checked_add(SWEEP_PAUSE);
    }

    /// Notes that a caller waits until everything is decided.
    pub(in crate::service) fn flush_batch(&mut self) {
        self.flushing = true;
        if let Err(error) = self.tier2.flush_batch() {
            tracing::debug!(%error, "tier 2 cannot flush its batch");
        }
    }

    /// Number of orders that wait in tier 2 or for it.
    pub(in crate::service) fn orders_on_their_way(&self) -> u64 {
        (self.tier2.waiting().unwrap_or(0) + self.orders.len()) as u64
    }

    /// Number of orders that wait in tier 2. If it does not answer, it counts as full.
    fn waiting_orders(&self) -> usize {
        self.tier2.waiting().unwrap_or(SEARCHES_MAX)
    }

    /// Starts as much work as the budget allows. Returns searches as commands for the machine, which knows
    /// their tickets.
    pub(in crate::service) fn schedule(&mut self, pending: u64, quiet: bool) -> Vec<Command> {
        let now = Instant::now();
        if self.tier2.has_lost(self.range) {
            tracing::info!(range = self.range.0, "tier 2 was restarted; owed work is searched for again");
            self.restart();
        }
        if self.next_sweep.is_some_and(|due| due <= now) {
            self.next_sweep = None;
            self.jobs.send(Job::Sweep);
        }
        self.jobs.recover_left_out();
        if !self.is_waiting() {
            self.flushing = false;
            return Vec::new();
        }
        let turn = self.last_turn.is_none_or(|last| now.duration_since(last) >= TURN);
        let idle = pending == 0 || self.flushing;
        if turn {
            self.last_turn = Some(now);
        }
        let searches = match (turn, idle) {
            (false, _) => 0,
            (true, false) => (SEARCHES_BESIDE.saturating_sub(self.waiting_orders()) / self.ranges).max(SHARE),
            (true, true) => SEARCHES_MAX.saturating_sub(self.waiting_orders()).div_ceil(self.ranges),
        };
        let urgency = Urgency { quiet, hurry: self.flushing };
        let groups = match (turn, pending == 0) {
            (_, true) => GROUPS_MAX,
            (true, false) => SHARE,
            (false, false) => 0,
        };
        if turn {
            self.orders.extend(self.throttle.due(now, self.flushing));
            self.send();
        }
        let mut commands = Vec::new();
        while commands.len() < searches {
            let Some(page) = self.deferred.pop() else { break };
            commands.push(Command::SearchNow { page });
        }
        for group in self.dirty.begin(now, groups, urgency, |_| false) {
            self.jobs.send(Job::Recompute(group));
        }
        // The recomputation would have the cover found again.
        for group in self.uncovered.begin(now, groups, urgency, |group| self.dirty.owes(group)) {
            self.jobs.send(Job::Cover(group));
        }
        commands
    }
}
