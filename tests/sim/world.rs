//! A cluster in one thread: nodes of tier 1 with their stores, the network between them, the index, the
//! worker, clients, a clock, and the model of what is true.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use doppel_model::{ContentHash, GroupId, PageId, ShardId, Timestamp};
use doppel_protocol::{IndexCommand, Search};
use doppel_tier1::Store;
use doppel_tier1::simulation::{Command, Effect, Envelope, Node, Row, Settings, Worker, outbox_row, rows};
use doppel_tier2::simulation::Faults;

use super::action::{Files, Plan, Stop};
use super::clients::{Reader, Request, submission};
use super::contents::Contents;
use super::index_side::{IndexSide, Order, Source};
use super::mistake::{Mistake, Planted};
use super::model::{Model, Version, url};
use super::network::{Network, shuffled};
use super::random::Random;
use super::run::REMEMBERED;
use super::store::{AllStores, NodeStore};
use super::violation::{Checked, failed};

/// How long what has ended is kept.
pub(crate) const KEEP: std::time::Duration = std::time::Duration::from_secs(24 * 60 * 60);

/// A node of tier 1: its shards, its store, and the background work it has in mind.
pub(crate) struct Host {
    pub(crate) node: Node,
    pub(crate) store: Arc<NodeStore>,
    /// Pages that were pending at a start.
    pub(crate) pending: Vec<PageId>,
    pub(crate) deferred: Vec<PageId>,
    pub(crate) dirty: Vec<GroupId>,
    pub(crate) verify: Vec<(PageId, ContentHash, PageId, ContentHash)>,
}

pub(crate) struct World {
    pub(crate) settings: Settings,
    pub(crate) contents: &'static Contents,
    pub(crate) hosts: Vec<Host>,
    pub(crate) worker: Worker,
    pub(crate) all: Arc<AllStores>,
    pub(crate) network: Network,
    /// The last number of each pair of shards that the network has seen.
    pub(crate) seen: BTreeMap<(ShardId, ShardId), u64>,
    pub(crate) index: IndexSide,
    /// What the index and the worker have found out and nobody knows yet.
    pub(crate) commands: Vec<Command>,
    pub(crate) requests: Vec<Request>,
    /// Versions that were acknowledged since their page was last forgotten.
    pub(crate) acknowledged: Vec<Version>,
    pub(crate) model: Model,
    pub(crate) reader: Reader,
    /// What was delivered long ago, and may come again.
    pub(crate) old_envelopes: Vec<Envelope>,
    pub(crate) old_commands: Vec<Command>,
    /// The pages of which the present commit has versions.
    changed: Vec<PageId>,
    pub(crate) clock: i64,
    pub(crate) planted: Planted,
    pub(crate) pages: usize,
}

impl World {
    pub(crate) fn new(plan: &Plan, mistake: Option<Mistake>) -> Checked<Self> {
        let contents = Contents::of(plan.tau);
        let planted = Planted::new(mistake, plan.seed);
        let settings = Settings {
            shards: plan.shards,
            policy: contents.policy,
            winners: planted.winners(&plan.rules),
            group_members_max: plan.group_members_max,
            rules: planted.rules(),
            retention: doppel_tier1::Retention { dead: KEEP, purged: KEEP, merged: KEEP, audit: KEEP },
            step_rows: plan.step_rows,
        };
        let mut hosts = Vec::new();
        for number in 0..plan.nodes {
            let store = Arc::new(NodeStore::new(planted.lazy()));
            let has = |shard: ShardId| usize::from(shard.0) % plan.nodes == number;
            let (node, _) = Node::start(&*store, settings, has).map_err(|e| failed("a start")(e.into()))?;
            hosts.push(Host {
                node,
                store,
                pending: Vec::new(),
                deferred: Vec::new(),
                dirty: Vec::new(),
                verify: Vec::new(),
            });
        }
        let all = Arc::new(AllStores { stores: hosts.iter().map(|host| Arc::clone(&host.store)).collect() });
        let worker = Worker::over(Arc::clone(&all) as Arc<dyn Store>, settings);
        Ok(Self {
            settings,
            contents,
            hosts,
            worker,
            index: IndexSide::new(
                Source {
                    all: Arc::clone(&all),
                    shards: settings.shards,
                    contents,
                    results: std::sync::Mutex::default(),
                },
                Faults {
                    one_in: 0,
                    lose_removals: planted.is(Mistake::LostRemoval),
                    unfed: planted.is(Mistake::AnsweredUnfed),
                },
            )?,
            all,
            network: Network::default(),
            seen: BTreeMap::new(),
            commands: Vec::new(),
            requests: Vec::new(),
            acknowledged: Vec::new(),
            model: Model::new(contents, plan.pages, &plan.rules),
            reader: Reader::default(),
            old_envelopes: Vec::new(),
            old_commands: Vec::new(),
            changed: Vec::new(),
            clock: 1_700_000_000_000,
            planted,
            pages: plan.pages,
        })
    }

    /// The node that has a shard.
    pub(crate) fn host_of(&self, shard: ShardId) -> usize {
        usize::from(shard.0) % self.hosts.len()
    }

    pub(crate) fn host_of_page(&self, page: PageId) -> usize {
        self.host_of(page.shard(self.settings.shards))
    }

    /// All rows of all nodes.
    pub(crate) fn rows(&self) -> Checked<Vec<Row>> {
        rows(&*self.all, self.settings.shards).map_err(|e| failed("reading the stores")(e.into()))
    }

    /// One commit of a node: commands, then envelopes of its own and up to `envelopes` from the network. Returns
    /// whether it is durable and the node goes on.
    pub(crate) fn commit(
        &mut self,
        at: usize,
        commands: Vec<Command>,
        envelopes: usize,
        order: u32,
        stop: Stop,
    ) -> Checked<Commit> {
        let mut random = Random::new(u64::from(order));
        let nodes = self.hosts.len();
        let is_here = |shard: ShardId| usize::from(shard.0) % nodes == at;
        // What waits in the node is delivered among what the network brings, in any order of pairs.
        let mut waiting = self.hosts[at].node.take_envelopes();
        waiting.extend(self.network.take(is_here, envelopes, &mut random));
        let waiting = if order == 0 { waiting } else { shuffled(waiting, &mut random) };
        if self.old_envelopes.len() < REMEMBERED && random.once_in(4) {
            self.old_envelopes.extend(waiting.first().cloned());
        }
        self.apply_twice(at, &waiting)?;
        if TRACED.load(Ordering::Relaxed) {
            eprintln!("node {at}, {stop:?}: {commands:?} {waiting:#?}");
        }
        self.changed = commands.iter().filter_map(Command::submitted).collect();
        let host = &mut self.hosts[at];
        host.node.put_envelopes(waiting);
        let prepared = host
            .node
            .prepare(&*host.store, commands, envelopes)
            .map_err(|e| failed("the machine")(e.into()))?;
        if stop == Stop::BeforeCommit {
            self.kill(at, Files::AsTheyAre, order.is_multiple_of(2))?;
            return Ok(Commit::Lost);
        }
        let (mut writes, mut effects) = (prepared.writes, prepared.effects);
        let groups = || {
            let rows = rows(&*self.all, self.settings.shards).unwrap_or_default();
            rows.iter()
                .filter_map(|row| if let Row::Group(row) = row { Some(row.group) } else { None })
                .collect()
        };
        self.planted.writes(&mut writes, groups);
        self.hosts[at].store.commit(writes).map_err(|e| failed("a commit")(e.into()))?;
        if stop == Stop::AfterCommit {
            self.kill(at, Files::AsTheyAre, order.is_multiple_of(2))?;
            return Ok(Commit::Unanswered);
        }
        self.post(at)?;
        self.planted.effects(&mut effects);
        let until = if let Stop::AtEffect(number) = stop { usize::from(number) } else { usize::MAX };
        let stops = until < effects.len();
        for effect in effects.into_iter().take(until) {
            self.grant(at, effect);
        }
        self.show_feed();
        if stops {
            self.kill(at, Files::AsTheyAre, order.is_multiple_of(2))?;
            return Ok(Commit::Unanswered);
        }
        Ok(Commit::Answered)
    }

    /// Readers of the feed see as far as the nodes have come.
    pub(crate) fn show_feed(&self) {
        let end = |shard| self.hosts[self.host_of(shard)].node.feed_end(shard);
        self.worker.set_feed((0..self.settings.shards).map(|shard| end(ShardId(shard))).collect());
    }

    /// Sends what a node has written to other nodes, and tells the senders what it has applied.
    fn post(&mut self, at: usize) -> Checked {
        let nodes = self.hosts.len();
        let here = |shard: ShardId| usize::from(shard.0) % nodes == at;
        let (mut own, mut undelivered) = (Vec::new(), Vec::new());
        let mut next: BTreeMap<_, u64> = BTreeMap::new();
        for mut envelope in self.hosts[at].node.take_envelopes() {
            let pair = (envelope.from(), envelope.to());
            if !here(envelope.from()) {
                // One that came across a gap is lost; it is in the sender's outbox.
                let applied = self.hosts[at].node.applied(envelope.to(), envelope.from());
                let next = next.entry(pair).or_insert(applied + 1);
                if envelope.number() == *next {
                    *next += 1;
                    undelivered.push(envelope);
                }
                continue;
            }
            let seen = self.seen.entry(pair).or_default();
            if envelope.number() > *seen {
                *seen = envelope.number();
                let model = &self.model;
                self.planted.envelope(&mut envelope, |page| model.content(model.page(page)).is_none());
                if !here(envelope.to()) {
                    self.network.send(envelope);
                    continue;
                }
            }
            if here(envelope.to()) {
                own.push(envelope);
            }
        }
        self.hosts[at].node.put_envelopes(own);
        self.network.give_back(undelivered);
        self.confirm(at)
    }

    /// Tells the senders what a node has applied: their outboxes forget it.
    pub(crate) fn confirm(&mut self, at: usize) -> Checked {
        for to in (0..self.settings.shards).map(ShardId).filter(|shard| self.host_of(*shard) == at) {
            for from in (0..self.settings.shards).map(ShardId) {
                let sender = self.host_of(from);
                if sender == at {
                    continue;
                }
                let applied = self.hosts[at].node.applied(to, from);
                let store = &self.hosts[sender].store;
                let mut done = Vec::new();
                let (first, end) = (outbox_row(from, to, 0), outbox_row(from, to, applied + 1));
                let read = store.range(&first, &end, &mut |key, _| {
                    done.push((key.to_vec(), None));
                    true
                });
                let cleared = read.and_then(|()| if done.is_empty() { Ok(()) } else { store.commit(done) });
                cleared.map_err(|e| failed("an outbox")(e.into()))?;
            }
        }
        Ok(())
    }

    /// A planted mistake: the first of the envelopes is applied, and that it was is forgotten.
    fn apply_twice(&mut self, at: usize, waiting: &[Envelope]) -> Checked {
        let Some(first) = waiting.first().filter(|_| self.planted.now(Mistake::AppliedTwice)) else {
            return Ok(());
        };
        let host = &mut self.hosts[at];
        if host.node.applied(first.to(), first.from()) + 1 != first.number() {
            return Ok(());
        }
        host.node.put_envelopes([first.clone()]);
        let prepared = host.node.prepare(&*host.store, Vec::new(), 1);
        let prepared = prepared.map_err(|e| failed("the machine")(e.into()))?;
        host.store.commit(prepared.writes).map_err(|e| failed("a commit")(e.into()))?;
        host.node.forget_applied(first.to(), first.from());
        self.post(at)?;
        prepared.effects.into_iter().for_each(|effect| self.grant(at, effect));
        Ok(())
    }

    /// Carries out one effect of a commit.
    pub(crate) fn grant(&mut self, at: usize, effect: Effect) {
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
                self.index.orders.push_back(Order { command, exchanged });
            }
            Effect::Verify { page, content, winner, winner_content } => {
                host.verify.push((page, content, winner, winner_content));
            }
            Effect::Dirty(group) => {
                if !host.dirty.contains(&group) {
                    host.dirty.push(group);
                }
            }
            Effect::Pending { page, content, ticket } => {
                if self.planted.is(Mistake::TicketUsedTwice) {
                    let command = IndexCommand::Search { page, content, search: Search { ticket } };
                    self.index.orders.push_back(Order { command, exchanged: false });
                } else if !host.pending.contains(&page) {
                    host.pending.push(page);
                }
            }
            Effect::Deferred(page) => {
                if !host.deferred.contains(&page) {
                    host.deferred.push(page);
                }
            }
            Effect::Changed | Effect::Outcome(_) => {}
        }
    }

    /// A batch reaches the nodes of its pages, one after the other; true when all of it is acknowledged.
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
                hint = hint.map(doppel_tier1::simulation::Given::forged);
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
            // The model follows what became durable, whether or not the client hears of it.
            let before = self.model.clone();
            versions.iter().for_each(|version| self.model.accept(version));
            match self.commit(at, commands, deliver, order, stop)? {
                Commit::Answered => self.acknowledged.extend(versions),
                Commit::Unanswered => return Ok(false),
                Commit::Lost => {
                    self.model = before;
                    return Ok(false);
                }
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

/// Whether every commit is printed.
pub(crate) static TRACED: AtomicBool = AtomicBool::new(false);

/// What became of a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Commit {
    Answered,
    /// It is durable, and whoever waited for it was told nothing.
    Unanswered,
    Lost,
}
