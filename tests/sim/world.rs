//! A simulated cluster in one thread: ranges of tier 1 with their stores, the network between them, the
//! index, the worker, clients, a clock, and the model of the correct state.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use doppel_contract::{Market, Markets};
use doppel_model::{ContentHash, GroupId, PageId, RangeId, ShardId, Timestamp};
use doppel_protocol::{IndexCommand, RangeMap};
use doppel_tier1::simulation::{
    Command, DecodedRow, Effect, Envelope, FeedExtent, Intercepted, PostReply, Settings, SimOwedScan,
    SimPost, SimRange, SimSettledWork, StatusFill, Worker, rows,
};
use doppel_tier1::{Store, Write};
use doppel_tier2::simulation::CallFaults;

use super::action::{Files, Plan, Stop};
use super::clients::{Reader, Request, submission};
use super::contents::Contents;
use super::delays::Delays;
use super::disk::Disk;
use super::index_side::{IndexSide, Source};
use super::mistake::{Mistake, PlantedMistake};
use super::model::{Model, Version, url};
use super::network::{Network, shuffled};
use super::ownership::{Change, CommitOutcome, Deposed, Successor, UndecidedCommit};
use super::random::Random;
use super::replicas::Replicas;
use super::restart::Killed;
use super::run::REMEMBERED;
use super::store::{AllStores, Flushes, Present, RangeStore};
use super::violation::{Checked, failed};

/// How long retention keeps dead pages and old events.
pub(crate) const KEEP: std::time::Duration = std::time::Duration::from_secs(24 * 60 * 60);

/// A range of tier 1: its shards, its store, and its pending background work.
pub(crate) struct Host {
    pub(crate) range: SimRange,
    pub(crate) store: Arc<RangeStore>,
    /// `None` if the range is not replicated.
    pub(crate) replicas: Option<Replicas>,
    /// The commit for which the owner waits for the log.
    pub(crate) undecided: Option<UndecidedCommit>,
    /// Owners that live and do not know that they are deposed.
    pub(crate) deposed: Vec<Deposed>,
    /// The node that takes over once a commit counts, before any effect of it leaves.
    pub(crate) depose_next: Option<Successor>,
    /// Rest of the scan for work that the rows owe.
    pub(crate) owed: Option<SimOwedScan>,
    /// A planted mistake: the scan does not find all owed work.
    pub(crate) forgets: bool,
    /// Senders of the posts that are being applied.
    pub(crate) posts: BTreeMap<u64, RangeId>,
    pub(crate) deferred: Vec<PageId>,
    pub(crate) dirty: Vec<GroupId>,
    pub(crate) uncovered: Vec<GroupId>,
    pub(crate) verify: Vec<(PageId, ContentHash, PageId, ContentHash)>,
    /// Progress of filling the status table.
    pub(crate) statuses: StatusFill,
    /// Snapshot of the status table on disk, and the number of commits that it includes.
    pub(crate) saved_statuses: Option<(u64, Vec<u8>)>,
}

pub(crate) struct World {
    pub(crate) settings: Settings,
    pub(crate) contents: &'static Contents,
    pub(crate) map: RangeMap,
    pub(crate) hosts: Vec<Host>,
    last_post: u64,
    /// Maximal number of envelopes in a post.
    pub(crate) post_envelopes: usize,
    pub(crate) worker: Worker,
    pub(crate) all: Arc<AllStores>,
    pub(crate) network: Network,
    pub(crate) delays: Delays,
    /// For each pair of shards, the last message number that the network has seen.
    pub(crate) seen: BTreeMap<(ShardId, ShardId), u64>,
    pub(crate) index: IndexSide,
    /// Results of the index and the worker that no range has received yet.
    pub(crate) commands: Vec<Command>,
    pub(crate) requests: Vec<Request>,
    /// Versions that were acknowledged since their page was last forgotten.
    pub(crate) acknowledged: Vec<Version>,
    pub(crate) model: Model,
    pub(crate) reader: Reader,
    /// Posts that were delivered long ago and may arrive again.
    pub(crate) old_posts: Vec<SimPost>,
    pub(crate) old_commands: Vec<Command>,
    /// The pages of which the present commit has versions.
    pub(crate) changed: Vec<PageId>,
    /// Change of the model that the next commit causes.
    pub(crate) change: Change,
    /// Position up to which the feed of each shard is visible.
    shown: Vec<FeedExtent>,
    pub(crate) clock: i64,
    pub(crate) planted: PlantedMistake,
    pub(crate) pages: usize,
    /// Market for which answers are compared with those of grouping at once.
    pub(crate) market: Option<Market>,
}

impl World {
    pub(crate) fn new(plan: &Plan, mistake: Option<Mistake>) -> Checked<Self> {
        let contents = Contents::of(plan.policy);
        let planted = PlantedMistake::new(mistake, plan.seed);
        let settings = Settings {
            shards: plan.shards,
            policy: contents.policy,
            winners: planted.winners(&plan.rules),
            group_members_max: plan.group_members_max,
            low_cohesion_percent: plan.low_cohesion_percent,
            rules: planted.rules(),
            retention: doppel_tier1::Retention { dead: KEEP, purged: KEEP, merged: KEEP, audit: KEEP },
            step_rows: plan.step_rows,
        };
        let map = RangeMap::new(plan.shards, plan.ranges).expect("a sound plan");
        let disk = |id: RangeId| {
            let has_files = plan.disk_fails > 0 && planted.has_files();
            let seed = plan.seed.rotate_left(36) ^ u64::from(id.0);
            has_files.then(|| Disk::new(seed, plan.disk_fails, planted.forgotten()))
        };
        let store = |id| {
            Arc::new(match plan.replicas {
                0 => RangeStore::Alone(Box::new(Intercepted::new(Flushes::new(planted.lazy(), disk(id))))),
                _ => {
                    let needs_standby = plan.loses_tail && !planted.is(Mistake::SettledBeforeStandby);
                    let stores_first = planted.is(Mistake::StoredBeforeLog);
                    RangeStore::Replicated(Box::new(Present::new(id, stores_first, needs_standby)))
                }
            })
        };
        let replicas = |id| (plan.replicas > 0).then(|| Replicas::new(id, plan, &planted));
        let stores: Vec<_> = map.ranges().map(store).collect();
        let each = stores.iter().map(|store| Arc::clone(store) as Arc<dyn Store>).collect();
        let worker = Worker::over_stores(each, settings);
        let mut hosts = Vec::new();
        let mut epochs = Vec::new();
        for (id, store) in map.ranges().zip(&stores) {
            let (store, mut replicas) = (Arc::clone(store), replicas(id));
            let others: Vec<usize> = (1..plan.replicas).collect();
            if let (Some(present), Some(replicas)) = (store.present(), &mut replicas)
                && let Some(owner) = replicas.take_over(0, None)?
                && let Some(owner) = replicas.settled_beginning(owner, &others)?
            {
                epochs.push(owner.epoch);
                present.begin(Arc::clone(replicas.disk(0)), owner);
            }
            let range =
                SimRange::start(&*store, settings, id, map).map_err(|e| failed("a start")(e.into()))?;
            hosts.push(Host {
                range,
                store,
                replicas,
                undecided: None,
                deposed: Vec::new(),
                depose_next: None,
                owed: None,
                forgets: false,
                posts: BTreeMap::new(),
                deferred: Vec::new(),
                dirty: Vec::new(),
                uncovered: Vec::new(),
                verify: Vec::new(),
                statuses: worker.begin_statuses(id, None),
                saved_statuses: None,
            });
        }
        let all = Arc::new(AllStores { map, stores });
        let mut this = Self {
            settings,
            contents,
            map,
            hosts,
            last_post: 0,
            post_envelopes: plan.post_envelopes,
            worker,
            index: IndexSide::new(
                Source {
                    all: Arc::clone(&all),
                    shards: settings.shards,
                    contents,
                    results: std::sync::Mutex::default(),
                    ordered: std::sync::Mutex::default(),
                    hasty: planted.is(Mistake::HastySnapshot),
                },
                CallFaults {
                    one_in: 0,
                    lose_removals: planted.is(Mistake::LostRemoval),
                    unfed: planted.is(Mistake::AnsweredUnfed),
                },
                plan.search_limits,
            )?,
            all,
            network: Network::default(),
            delays: Delays::default(),
            seen: BTreeMap::new(),
            commands: Vec::new(),
            requests: Vec::new(),
            acknowledged: Vec::new(),
            model: Model::new(contents, plan.pages, &plan.rules),
            reader: Reader::default(),
            old_posts: Vec::new(),
            old_commands: Vec::new(),
            changed: Vec::new(),
            change: Change::None,
            shown: vec![FeedExtent::default(); plan.shards.into()],
            clock: 1_700_000_000_000,
            planted,
            pages: plan.pages,
            market: plan.seed.is_multiple_of(3).then(|| Markets::default().find("h1").expect("a suffix")),
        };
        epochs.into_iter().enumerate().try_for_each(|(at, epoch)| this.index.begin(at, epoch))?;
        Ok(this)
    }

    /// The range of a shard.
    pub(crate) fn host_of(&self, shard: ShardId) -> usize {
        usize::from(self.map.of_shard(shard).0)
    }

    pub(crate) fn host_of_page(&self, page: PageId) -> usize {
        self.host_of(page.shard(self.settings.shards))
    }

    /// All rows of all ranges.
    pub(crate) fn rows(&self) -> Checked<Vec<DecodedRow>> {
        rows(&self.all.joined(), self.settings.shards).map_err(|e| failed("reading the stores")(e.into()))
    }

    /// Makes one commit of a range: commands, then messages within the range and posts with up to `envelopes`
    /// messages from the network. Returns what became of it.
    pub(crate) fn commit(
        &mut self,
        at: usize,
        commands: Vec<Command>,
        envelopes: usize,
        order: u32,
        stop: Stop,
    ) -> Checked<Commit> {
        let change = std::mem::take(&mut self.change);
        if !self.is_ready(at)? {
            return Ok(Commit::Refused);
        }
        let mut random = Random::new(u64::from(order));
        let is_shuffled = order != 0;
        // Messages within the range are delivered in any order of pairs.
        let mut waiting = self.hosts[at].range.take_envelopes();
        if is_shuffled {
            waiting = shuffled(waiting, &mut random);
        }
        if TRACED.load(Ordering::Relaxed) {
            eprintln!("range {at}, {stop:?}: {commands:?} {waiting:#?}");
        }
        self.apply_twice(at, &waiting)?;
        self.receive(at, envelopes, is_shuffled.then_some(&mut random))?;
        waiting.extend(self.hosts[at].range.take_envelopes());
        let waiting = self.delays.hold_envelopes(waiting, range_id(at), self.map);
        let envelopes = self.delays.limit(envelopes, &waiting);
        self.changed = commands.iter().filter_map(Command::submitted_page).collect();
        let host = &mut self.hosts[at];
        host.range.put_envelopes(waiting);
        let built = host.range.build(&*host.store, commands, envelopes, random.once_in(2));
        let mut writes = built.map_err(|e| failed("the machine")(e.into()))?;
        if stop == Stop::BeforeCommit {
            if self.planted.is(Mistake::SentBeforeSettled) {
                drop(self.hosts[at].range.settled());
                self.post(at)?;
            }
            self.die(at, Vec::new(), order)?;
            return Ok(Commit::Lost);
        }
        let groups = || {
            let rows = rows(&self.all.joined(), self.settings.shards).unwrap_or_default();
            rows.iter()
                .filter_map(|row| if let DecodedRow::Group(row) = row { Some(row.group) } else { None })
                .collect()
        };
        self.planted.writes(&mut writes, groups);
        // The model follows every commit that counts, whether or not the client hears of it.
        if !self.write_whole(at, writes, &change, stop, order)? {
            return Ok(Commit::Unanswered);
        }
        self.apply(&change, true)?;
        self.carry_out(at, stop, order)
    }

    /// Stores the rows of a commit. Returns false if nobody knows whether the commit counts. Changes of the
    /// model that precede the rows are applied first.
    fn write_whole(
        &mut self,
        at: usize,
        writes: Vec<Write>,
        change: &Change,
        stop: Stop,
        order: u32,
    ) -> Checked<bool> {
        let before = match change {
            Change::None | Change::ForgetIfGone(_) => None,
            Change::Accept(_) | Change::Forget(_) => Some((self.model.clone(), self.acknowledged.clone())),
        };
        self.apply(change, false)?;
        if self.hosts[at].replicas.is_none() {
            if self.write(at, &writes)? == CommitOutcome::Counts {
                return Ok(true);
            }
            return self.die_of_files(at, change, before, order).map(|()| false);
        }
        // An empty commit needs no append.
        if writes.is_empty() {
            return Ok(true);
        }
        let written = self.write(at, &writes)?;
        if written == CommitOutcome::Counts {
            self.note_counted(at)?;
            return Ok(true);
        }
        if let Some((model, acknowledged)) = before {
            (self.model, self.acknowledged) = (model, acknowledged);
        }
        let begun = self.hosts[at].store.present().and_then(Present::begun);
        if let Some(position) = begun {
            self.leave_undecided(at, (writes, change.clone()), position)?;
        }
        match (written, stop) {
            (CommitOutcome::Deposed, _) => self.hear_of_deposition(at)?,
            (_, Stop::Never) => {}
            _ => self.die(at, Vec::new(), order)?,
        }
        Ok(false)
    }

    /// Releases the answers and effects that waited for a commit.
    fn carry_out(&mut self, at: usize, stop: Stop, order: u32) -> Checked<Commit> {
        if let Some(successor) = self.hosts[at].depose_next.take()
            && self.depose(at, successor, true)?
        {
            return Ok(Commit::Unanswered);
        }
        if stop == Stop::AfterCommit {
            // No answer leaves. The orders of the commit are in its log.
            let mut effects = self.hosts[at].range.settled().effects;
            self.planted.effects(&mut effects);
            self.die(at, effects, order)?;
            return Ok(Commit::Unanswered);
        }
        let mut effects = self.settled(at)?;
        self.planted.effects(&mut effects);
        let until = if let Stop::AtEffect(number) = stop { usize::from(number) } else { usize::MAX };
        let stops = until < effects.len();
        let mut effects = effects.into_iter();
        for effect in effects.by_ref().take(until) {
            self.grant(at, effect)?;
        }
        self.show_feed();
        if stops {
            self.die(at, effects.collect(), order)?;
            return Ok(Commit::Unanswered);
        }
        Ok(Commit::Answered)
    }

    /// Kills a range in the middle of a commit, alone or with tier 2, before these effects are carried out.
    pub(crate) fn die(&mut self, at: usize, mut effects: Vec<Effect>, order: u32) -> Checked {
        effects.retain(|effect| matches!(effect, Effect::Index(_)));
        let alone = order.is_multiple_of(3);
        let killed = if alone { Killed::Alone(effects) } else { Killed::WithTier2(Files::AsTheyAre) };
        self.kill(at, killed, order.is_multiple_of(2))
    }

    /// Releases the answers and posts of a range whose commit is durable. Returns its effects.
    pub(crate) fn settled(&mut self, at: usize) -> Checked<Vec<Effect>> {
        let SimSettledWork { effects, answers } = self.hosts[at].range.settled();
        for (id, answer) in answers {
            if let Some(to) = self.hosts[at].posts.remove(&id) {
                self.network.answer(range_id(at), to, answer);
            }
        }
        self.post(at)?;
        Ok(effects)
    }

    /// Delivers answers, and posts with up to `envelopes` messages, to a range.
    fn receive(&mut self, at: usize, envelopes: usize, mut random: Option<&mut Random>) -> Checked {
        for (by, answer) in self.network.take_answers(range_id(at)) {
            self.hosts[at].range.confirmed(by, &answer);
        }
        let posts = self.network.take_posts(range_id(at), envelopes, random.as_deref_mut());
        for mut post in self.delays.hold_posts(posts, range_id(at)) {
            if let Some(random) = &mut random {
                if self.old_posts.len() < REMEMBERED && random.once_in(4) {
                    self.old_posts.push(post.clone());
                }
                // Lose the first envelope. The range must refuse the envelopes behind it.
                let rare = if self.planted.is(Mistake::GapAccepted) { 2 } else { 16 };
                if post.envelopes.len() > 1 && random.once_in(rare) {
                    post.envelopes.remove(0);
                }
            }
            self.apply_twice(at, &post.envelopes)?;
            if self.planted.is(Mistake::GapAccepted) {
                self.accept_gap(at, &post);
            }
            self.last_post += 1;
            let (id, from) = (self.last_post, post.from());
            match self.hosts[at].range.take_in(id, post) {
                None => drop(self.hosts[at].posts.insert(id, from)),
                Some(refused) => self.network.answer(range_id(at), from, refused),
            }
        }
        Ok(())
    }

    /// A planted mistake: a message counts as the next one although others are missing.
    fn accept_gap(&mut self, at: usize, post: &SimPost) {
        let mut seen = Vec::new();
        for envelope in &post.envelopes {
            let pair = (envelope.from(), envelope.to());
            if !seen.contains(&pair) && envelope.number() > self.hosts[at].range.applied(pair.1, pair.0) + 1 {
                self.hosts[at].range.set_applied(pair.1, pair.0, envelope.number() - 1);
            }
            seen.push(pair);
        }
    }

    /// Shows readers of the feed all events that are settled.
    pub(crate) fn show_feed(&mut self) {
        for shard in (0..self.settings.shards).map(ShardId) {
            let host = &self.hosts[self.host_of(shard)];
            if host.store.is_owned() && host.undecided.is_none() {
                self.shown[usize::from(shard.0)] = host.range.feed_end(shard);
            }
        }
        self.worker.set_feed(self.shown.clone());
    }

    /// Sends settled messages to other ranges.
    pub(crate) fn post(&mut self, at: usize) -> Checked {
        if !self.hosts[at].store.is_owned() {
            return Ok(());
        }
        let mut envelopes = self.hosts[at].range.take_envelopes();
        envelopes.iter_mut().for_each(|envelope| self.tamper(envelope));
        let host = &mut self.hosts[at];
        host.range.put_envelopes(envelopes);
        let posts = host.range.posts(&*host.store, self.post_envelopes);
        for mut post in posts.map_err(|e| failed("an outbox")(e.into()))? {
            post.envelopes.iter_mut().for_each(|envelope| self.tamper(envelope));
            if self.planted.now(Mistake::DeletedBeforeConfirmed) {
                // The network loses the post, and the sender gets a false receipt.
                self.hosts[at].range.confirmed(post.to(), &PostReply::forged_receipt(&post));
            } else {
                self.network.send(post);
            }
        }
        Ok(())
    }

    /// Plants a mistake in an envelope when the network first sees it.
    fn tamper(&mut self, envelope: &mut Envelope) {
        let seen = self.seen.entry((envelope.from(), envelope.to())).or_default();
        if envelope.number() > *seen {
            *seen = envelope.number();
            let model = &self.model;
            self.planted.envelope(envelope, |page| model.content(model.page(page)).is_none());
        }
    }

    /// A planted mistake: applies the first of the envelopes, and forgets that it was applied.
    fn apply_twice(&mut self, at: usize, waiting: &[Envelope]) -> Checked {
        let Some(first) = waiting
            .first()
            .filter(|_| self.hosts[at].replicas.is_none() && self.planted.now(Mistake::AppliedTwice))
        else {
            return Ok(());
        };
        let host = &mut self.hosts[at];
        let (from, to, number) = (first.from(), first.to(), first.number());
        if host.range.applied(to, from) + 1 != number {
            return Ok(());
        }
        if self.map.of_shard(from) == self.map.of_shard(to) {
            host.range.put_envelopes([first.clone()]);
        } else {
            drop(host.range.take_in(0, SimPost::alone(first.clone(), self.map)));
        }
        let built = host.range.build(&*host.store, Vec::new(), 1, true);
        self.write(at, &built.map_err(|e| failed("the machine")(e.into()))?)?;
        self.hosts[at].range.set_applied(to, from, number - 1);
        let effects = self.settled(at)?;
        effects.into_iter().try_for_each(|effect| self.grant(at, effect))
    }

    /// Carries out one effect of a commit.
    pub(crate) fn grant(&mut self, at: usize, effect: Effect) -> Checked {
        let host = &mut self.hosts[at];
        match effect {
            Effect::Index(command) => {
                let exchanged = match &command {
                    IndexCommand::Remove { page, content } => {
                        let versions = self.changed.iter().filter(|changed| *changed == page).count();
                        let now = self.model.content(self.model.page(*page)).filter(|_| versions == 1);
                        now.is_some_and(|now| {
                            self.contents.has_tokens(now) && self.contents.hash(now) != *content
                        })
                    }
                    _ => false,
                };
                self.index.order(at, command, exchanged)?;
            }
            Effect::Verify { page, content, winner, winner_content } => {
                host.verify.push((page, content, winner, winner_content));
            }
            Effect::Dirty(group) => {
                if !host.dirty.contains(&group) {
                    host.dirty.push(group);
                }
            }
            Effect::Uncovered(group) => {
                if !host.uncovered.contains(&group) {
                    host.uncovered.push(group);
                }
            }
            Effect::Deferred(page) => {
                if !host.deferred.contains(&page) {
                    host.deferred.push(page);
                }
            }
            Effect::Changed | Effect::Outcome(_) => {}
        }
        Ok(())
    }

    /// Delivers a batch to the ranges of its pages one after the other. Returns true if all of it is
    /// acknowledged.
    pub(crate) fn arrive(
        &mut self,
        request: &Request,
        deliver: usize,
        order: u32,
        stop: Stop,
    ) -> Checked<bool> {
        let mut by_host: BTreeMap<usize, Vec<(Version, Command)>> = BTreeMap::new();
        for (version, hint) in &request.versions {
            let mut version = *version;
            let mut hint = *hint;
            if self.planted.now(Mistake::HintNotChecked) {
                hint = hint.map(doppel_tier1::simulation::SubmissionHint::forged);
            }
            let true_version = version;
            if self.planted.now(Mistake::OldVersionAsNew) {
                version.date = self.clock;
            }
            let command = Command::submit(submission(&version, self.contents), hint);
            by_host
                .entry(self.host_of_page(url(version.page).id()))
                .or_default()
                .push((true_version, command));
        }
        for (at, versions) in by_host {
            let (versions, commands): (Vec<Version>, Vec<Command>) = versions.into_iter().unzip();
            self.change = Change::Accept(versions.clone());
            match self.commit(at, commands, deliver, order, stop)? {
                Commit::Answered => self.acknowledged.extend(versions),
                Commit::Unanswered | Commit::Lost | Commit::Refused => return Ok(false),
            }
        }
        Ok(true)
    }

    pub(crate) fn forget(&mut self, page: usize) {
        self.model.forget(page);
        self.acknowledged.retain(|version| version.page != page);
    }

    pub(crate) fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.clock)
    }
}

/// The id of the range at this position of `hosts`.
pub(crate) fn range_id(at: usize) -> RangeId {
    RangeId(at as u16)
}

/// Whether every commit is printed.
pub(crate) static TRACED: AtomicBool = AtomicBool::new(false);

/// Result of an attempt to commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Commit {
    Answered,
    /// The commit is durable, or may be, and no caller was told so.
    Unanswered,
    Lost,
    /// The commit was not begun: the range has no owner, or its owner waits.
    Refused,
}
