//! A cluster in one thread: nodes of tier 1 with their stores, the network between them, the index, the
//! worker, clients, a clock, and the model of what is true.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use doppel_model::{ContentHash, GroupId, PageId, ShardId, Timestamp};
use doppel_protocol::IndexCommand;
use doppel_tier1::Store;
use doppel_tier1::simulation::{Fact, Letter, Node, Row, Settings, Wish, Worker, outbox_row, rows};
use doppel_tier2::Fetch;

use super::action::{Files, Plan, Stop};
use super::clients::{Reader, Request, submission};
use super::contents::Contents;
use super::index_side::{IndexSide, Order};
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
pub(crate) struct Place {
    pub(crate) node: Node,
    pub(crate) store: Arc<NodeStore>,
    pub(crate) late: Vec<PageId>,
    pub(crate) touched: Vec<GroupId>,
    pub(crate) verify: Vec<(PageId, ContentHash, PageId, ContentHash)>,
}

pub(crate) struct World {
    pub(crate) settings: Settings,
    pub(crate) contents: &'static Contents,
    pub(crate) places: Vec<Place>,
    pub(crate) worker: Worker,
    pub(crate) all: Arc<AllStores>,
    pub(crate) network: Network,
    /// The last number of each pair of shards that the network has seen.
    pub(crate) seen: BTreeMap<(ShardId, ShardId), u64>,
    pub(crate) index: IndexSide,
    /// What the index and the worker have found out and nobody knows yet.
    pub(crate) facts: Vec<Fact>,
    pub(crate) requests: Vec<Request>,
    /// Versions that were acknowledged since their page was last forgotten.
    pub(crate) acknowledged: Vec<Version>,
    pub(crate) model: Model,
    pub(crate) reader: Reader,
    /// What was delivered long ago, and may come again.
    pub(crate) old_letters: Vec<Letter>,
    pub(crate) old_facts: Vec<Fact>,
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
        let mut places = Vec::new();
        for number in 0..plan.nodes {
            let store = Arc::new(NodeStore::new(planted.lazy()));
            let has = |shard: ShardId| usize::from(shard.0) % plan.nodes == number;
            let (node, _) = Node::start(&*store, settings, has).map_err(|e| failed("a start")(e.into()))?;
            places.push(Place { node, store, late: Vec::new(), touched: Vec::new(), verify: Vec::new() });
        }
        let all =
            Arc::new(AllStores { stores: places.iter().map(|place| Arc::clone(&place.store)).collect() });
        let worker = Worker::over(Arc::clone(&all) as Arc<dyn Store>, settings);
        Ok(Self {
            settings,
            contents,
            places,
            worker,
            index: IndexSide::new(contents, fetch(&all, settings.shards))?,
            all,
            network: Network::default(),
            seen: BTreeMap::new(),
            facts: Vec::new(),
            requests: Vec::new(),
            acknowledged: Vec::new(),
            model: Model::new(contents, plan.pages, &plan.rules),
            reader: Reader::default(),
            old_letters: Vec::new(),
            old_facts: Vec::new(),
            changed: Vec::new(),
            clock: 1_700_000_000_000,
            planted,
            pages: plan.pages,
        })
    }

    /// The node that has a shard.
    pub(crate) fn place_of(&self, shard: ShardId) -> usize {
        usize::from(shard.0) % self.places.len()
    }

    pub(crate) fn place_of_page(&self, page: PageId) -> usize {
        self.place_of(page.shard(self.settings.shards))
    }

    /// All rows of all nodes.
    pub(crate) fn rows(&self) -> Checked<Vec<Row>> {
        rows(&*self.all, self.settings.shards).map_err(|e| failed("reading the stores")(e.into()))
    }

    /// One commit of a node: commands, then letters of its own and up to `letters` from the network. Returns
    /// whether it is durable and the node goes on.
    pub(crate) fn commit(
        &mut self,
        at: usize,
        facts: Vec<Fact>,
        letters: usize,
        order: u32,
        stop: Stop,
    ) -> Checked<Commit> {
        let mut random = Random::new(u64::from(order));
        let nodes = self.places.len();
        let is_here = |shard: ShardId| usize::from(shard.0) % nodes == at;
        // What waits in the node is delivered among what the network brings, in any order of pairs.
        let mut waiting = self.places[at].node.take_letters();
        waiting.extend(self.network.take(is_here, letters, &mut random));
        let waiting = if order == 0 { waiting } else { shuffled(waiting, &mut random) };
        if self.old_letters.len() < REMEMBERED && random.once_in(4) {
            self.old_letters.extend(waiting.first().cloned());
        }
        self.apply_twice(at, &waiting)?;
        if TRACED.load(Ordering::Relaxed) {
            eprintln!("node {at}, {stop:?}: {facts:?} {waiting:#?}");
        }
        self.changed = facts.iter().filter_map(Fact::submitted).collect();
        let place = &mut self.places[at];
        place.node.put_letters(waiting);
        let prepared =
            place.node.prepare(&*place.store, facts, letters).map_err(|e| failed("the machine")(e.into()))?;
        if stop == Stop::BeforeCommit {
            self.kill(at, Files::AsTheyAre, order.is_multiple_of(2))?;
            return Ok(Commit::Lost);
        }
        let (mut writes, mut wishes) = (prepared.writes, prepared.wishes);
        let groups = || {
            let rows = rows(&*self.all, self.settings.shards).unwrap_or_default();
            rows.iter()
                .filter_map(|row| if let Row::Group(row) = row { Some(row.group) } else { None })
                .collect()
        };
        self.planted.writes(&mut writes, groups);
        self.places[at].store.commit(writes).map_err(|e| failed("a commit")(e.into()))?;
        if stop == Stop::AfterCommit {
            self.kill(at, Files::AsTheyAre, order.is_multiple_of(2))?;
            return Ok(Commit::Unanswered);
        }
        self.post(at)?;
        self.planted.wishes(&mut wishes);
        let until = if let Stop::AtWish(number) = stop { usize::from(number) } else { usize::MAX };
        let stops = until < wishes.len();
        for wish in wishes.into_iter().take(until) {
            self.grant(at, wish);
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
        let end = |shard| self.places[self.place_of(shard)].node.feed_end(shard);
        self.worker.set_feed((0..self.settings.shards).map(|shard| end(ShardId(shard))).collect());
    }

    /// Sends what a node has written to other nodes, and tells the senders what it has applied.
    fn post(&mut self, at: usize) -> Checked {
        let nodes = self.places.len();
        let here = |shard: ShardId| usize::from(shard.0) % nodes == at;
        let (mut own, mut undelivered) = (Vec::new(), Vec::new());
        let mut next: BTreeMap<_, u64> = BTreeMap::new();
        for mut letter in self.places[at].node.take_letters() {
            let pair = (letter.from(), letter.to());
            if !here(letter.from()) {
                // One that came across a gap is lost; it is in the sender's outbox.
                let applied = self.places[at].node.applied(letter.to(), letter.from());
                let next = next.entry(pair).or_insert(applied + 1);
                if letter.number() == *next {
                    *next += 1;
                    undelivered.push(letter);
                }
                continue;
            }
            let seen = self.seen.entry(pair).or_default();
            if letter.number() > *seen {
                *seen = letter.number();
                let model = &self.model;
                self.planted.letter(&mut letter, |page| model.content(model.page(page)).is_none());
                if !here(letter.to()) {
                    self.network.send(letter);
                    continue;
                }
            }
            if here(letter.to()) {
                own.push(letter);
            }
        }
        self.places[at].node.put_letters(own);
        self.network.give_back(undelivered);
        self.confirm(at)
    }

    /// Tells the senders what a node has applied: their outboxes forget it.
    pub(crate) fn confirm(&mut self, at: usize) -> Checked {
        for to in (0..self.settings.shards).map(ShardId).filter(|shard| self.place_of(*shard) == at) {
            for from in (0..self.settings.shards).map(ShardId) {
                let sender = self.place_of(from);
                if sender == at {
                    continue;
                }
                let applied = self.places[at].node.applied(to, from);
                let store = &self.places[sender].store;
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

    /// A planted mistake: the first of the letters is applied, and that it was is forgotten.
    fn apply_twice(&mut self, at: usize, waiting: &[Letter]) -> Checked {
        let Some(first) = waiting.first().filter(|_| self.planted.now(Mistake::AppliedTwice)) else {
            return Ok(());
        };
        let place = &mut self.places[at];
        if place.node.applied(first.to(), first.from()) + 1 != first.number() {
            return Ok(());
        }
        place.node.put_letters([first.clone()]);
        let prepared = place.node.prepare(&*place.store, Vec::new(), 1);
        let prepared = prepared.map_err(|e| failed("the machine")(e.into()))?;
        place.store.commit(prepared.writes).map_err(|e| failed("a commit")(e.into()))?;
        place.node.forget_applied(first.to(), first.from());
        self.post(at)?;
        prepared.wishes.into_iter().for_each(|wish| self.grant(at, wish));
        Ok(())
    }

    /// Carries out one wish of a commit.
    pub(crate) fn grant(&mut self, at: usize, wish: Wish) {
        let place = &mut self.places[at];
        match wish {
            Wish::Index(command) => {
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
            Wish::Verify { page, content, winner, winner_content } => {
                place.verify.push((page, content, winner, winner_content));
            }
            Wish::Touched(group) => {
                if !place.touched.contains(&group) {
                    place.touched.push(group);
                }
            }
            Wish::Late(page) => {
                if !place.late.contains(&page) {
                    place.late.push(page);
                }
            }
            Wish::Changed | Wish::Outcome(_) => {}
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
        let mut by_place: BTreeMap<usize, Vec<(Version, Fact)>> = BTreeMap::new();
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
            let fact = Fact::submit(submission(&version, self.contents), hint);
            by_place
                .entry(self.place_of_page(url(version.page).id()))
                .or_default()
                .push((true_version, fact));
        }
        for (at, versions) in by_place {
            let (versions, facts): (Vec<Version>, Vec<Fact>) = versions.into_iter().unzip();
            // The model follows what became durable, whether or not the client hears of it.
            let before = self.model.clone();
            versions.iter().for_each(|version| self.model.accept(version));
            match self.commit(at, facts, deliver, order, stop)? {
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

/// Where tier 2 gets a signature again.
pub(crate) fn fetch(all: &Arc<AllStores>, shards: u16) -> Fetch {
    let all = Arc::clone(all);
    Arc::new(move |page| doppel_tier1::simulation::signature(&*all, shards, page))
}
