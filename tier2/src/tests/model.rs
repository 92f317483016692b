//! A simple model of a collection, beside an index whose answers are all checked against it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use doppel_model::pairwise::{Features, Policy, Signer};
use doppel_model::signature::{Builder, Signature};
use doppel_model::{ClientId, ContentHash, InsertSeq, PageId, stable_hash64};
use doppel_protocol::index_node::IndexNode;
use doppel_protocol::index_node::SearchLimits;
use doppel_protocol::{ContentSource, IndexCommand, Search, SearchResult, VerifiedPartner};
use tempfile::TempDir;

pub(super) use super::source::Pages;
use super::source::{Source, orders};
use crate::embedded::Parts;
use crate::node::LocalNode;
use crate::node::partition::PartitionState;
use crate::node::partition::families::Listing;
use crate::node::tables::EntryRef;
use crate::router::Pass;
use crate::router::scheduler::StepOutcome;
use crate::{Config, CrowdingLimits};

pub(super) fn page(number: usize) -> PageId {
    PageId::of(&format!("https://example.org/{number}"))
}

pub(super) fn signature_of(words: &[u32]) -> Arc<Signature> {
    let tokens: Vec<u64> = words.iter().map(|w| stable_hash64(&w.to_le_bytes())).collect();
    Arc::new(Builder::new().build(&tokens))
}

/// Like [`signature_of`], but under a policy. The texts have one word per line and come from two sites, where
/// the policy uses this.
pub(super) fn signature_under(policy: Policy, words: &[u32]) -> Arc<Signature> {
    let tokens: Vec<u64> = words.iter().map(|w| stable_hash64(&w.to_le_bytes())).collect();
    let site = words.iter().map(|word| u64::from(*word)).sum::<u64>() % 2;
    let main = (!words.len().is_multiple_of(3)).then_some(&*tokens);
    // Tables that were learned from no content, so that all words have the same weight.
    let mut signer = Signer::learnt(policy, Vec::<Vec<u64>>::new());
    Arc::new(signer.sign(Features {
        tokens: &tokens,
        site: Some(site),
        main,
        terms: &tokens,
        lines: &tokens,
    }))
}

/// Member `member` of family `family`: the text of the family with a few words replaced. Some members are
/// equal. Families have different lengths, and every eighth is short.
pub(super) fn text(family: u32, member: u32) -> Vec<u32> {
    let hash = |i: u64| stable_hash64(&(u64::from(family) << 40 | i).to_le_bytes());
    let length = if family % 8 == 7 { 5 + hash(0) % 15 } else { 20 + hash(0) % 120 } as u32;
    let mut words: Vec<u32> = (0..length).map(|i| (hash(1 + u64::from(i)) % 5_000) as u32).collect();
    let edits = member % 5;
    for edit in 0..edits {
        let at = hash(u64::from(member) << 20 | u64::from(edit) | 1 << 39) % u64::from(length);
        words[at as usize] = 10_000 + member * 7 + edit;
    }
    words
}

/// An index without its thread, the model, and all links that answers have reported.
pub(super) struct World {
    pub(super) parts: Parts,
    pass: Pass,
    pub(super) source: Arc<Source>,
    pub(super) pages: Pages,
    pub(super) answers: Arc<Mutex<Vec<SearchResult>>>,
    pub(super) commands: Vec<IndexCommand>,
    pub(super) config: Config,
    pub(super) dir: TempDir,
    /// Whether answers are not checked. Checking takes time in the square of the collection.
    pub(super) unchecked: bool,
    /// Whether the plan changes only when the test calls [`work`](Self::work). Otherwise every pass completes
    /// the plan change.
    changes_on_demand: bool,
    tickets: u32,
    /// Number of orders that were handed over.
    pub(super) orders_sent: u64,
    /// All reported pairs of present contents.
    linked: BTreeSet<(Version, Version)>,
}

/// A page with one of its contents.
type Version = (PageId, ContentHash);

pub(super) fn config(dir: &TempDir, policy: Policy, partitions: u32, threads: usize) -> Config {
    // Large buckets are crowded soon, so that their entries get family keys.
    let crowding = CrowdingLimits { vain_free: 0, vain_per_member: 1, learn_min: 1 };
    Config { partitions: Some(partitions), threads, crowding, step: 16, ..Config::new(dir.path(), policy) }
}

impl World {
    pub(super) fn new(policy: Policy, partitions: u32, threads: usize) -> Self {
        let dir = TempDir::new().unwrap();
        Self::open(config(&dir, policy, partitions, threads), dir, Pages::default())
    }

    /// Like [`new`](Self::new), but with one partition, and with these limits for crowded buckets.
    pub(super) fn with_crowding(policy: Policy, crowding: CrowdingLimits) -> Self {
        let dir = TempDir::new().unwrap();
        Self::open(Config { crowding, ..config(&dir, policy, 1, 1) }, dir, Pages::default())
    }

    /// Like [`new`](Self::new), but on several nodes. The plan changes only when the test calls
    /// [`work`](Self::work).
    pub(super) fn on_nodes(policy: Policy, nodes: u32, partitions: u32, threads: usize) -> Self {
        let limits = SearchLimits { search: u64::MAX, call: u64::MAX };
        Self::on_nodes_with(policy, nodes, partitions, threads, limits)
    }

    /// Like [`on_nodes`](Self::on_nodes), but with these limits for the cost of searches.
    pub(super) fn on_nodes_with(
        policy: Policy,
        nodes: u32,
        partitions: u32,
        threads: usize,
        search_limits: SearchLimits,
    ) -> Self {
        let dir = TempDir::new().unwrap();
        let config = Config { nodes, search_limits, ..config(&dir, policy, partitions, threads) };
        let mut world = Self::open(config, dir, Pages::default());
        world.changes_on_demand = true;
        world
    }

    /// Begins a random change of the plan, unless one is under way.
    pub(super) fn change_plan(&mut self, dice: u64) {
        self.parts.router.begin_random_change(dice).unwrap();
    }

    /// Makes steps of a plan change.
    pub(super) fn work(&mut self, steps: usize) {
        for _ in 0..steps {
            assert_ne!(self.parts.router.run_step(), StepOutcome::Retry);
        }
        if self.commands.is_empty() {
            self.check_tables(&self.pages.lock().unwrap().clone());
        }
    }

    fn open(config: Config, dir: TempDir, pages: Pages) -> Self {
        Self::open_with(config, dir, pages, None)
    }

    /// Opens an index of a tier 1 with this log.
    fn open_with(config: Config, dir: TempDir, pages: Pages, log: Option<Vec<PageId>>) -> Self {
        let answers = Arc::<Mutex<Vec<SearchResult>>>::default();
        let taken = Arc::clone(&answers);
        let source = Source::new(&pages, move |results| taken.lock().unwrap().extend(results));
        *source.ordered.lock().unwrap() = (0, log.as_ref().map_or(0, Vec::len));
        *source.log.lock().unwrap() = log;
        let parts = open_parts(&config, &source);
        Self {
            parts,
            pass: Pass::default(),
            source,
            pages,
            answers,
            commands: Vec::new(),
            config,
            dir,
            unchecked: false,
            changes_on_demand: false,
            tickets: 0,
            orders_sent: 0,
            linked: BTreeSet::new(),
        }
    }

    /// Closes the index and opens it again.
    pub(super) fn reopen(self) -> Self {
        self.flush();
        self.reopen_as_it_is()
    }

    /// Like [`reopen`](Self::reopen), but after the process was killed.
    pub(super) fn reopen_as_it_is(self) -> Self {
        let Self { parts, pages, config, dir, changes_on_demand, source, linked, .. } = self;
        drop(parts);
        let log = source.log.lock().unwrap().take();
        Self { changes_on_demand, linked, ..Self::open_with(config, dir, pages, log) }
    }

    /// Writes a snapshot of everything that was carried out.
    pub(super) fn save(&self) {
        self.parts.router.save_now().unwrap();
        self.parts.nodes.iter().for_each(|node| node.finish_snapshot());
    }

    pub(super) fn policy(&self) -> Policy {
        self.config.policy
    }

    pub(super) fn flush(&self) {
        self.parts.nodes.iter().for_each(|node| node.flush());
    }

    /// Number of exact comparisons on the first node.
    pub(super) fn comparisons(&self) -> u64 {
        self.parts.nodes[0].read().tables.partitions.iter().map(|p| p.comparisons).sum()
    }

    /// Size of the first node's signature file, in bytes.
    pub(super) fn file_bytes(&self) -> u64 {
        self.parts.nodes[0].read().signatures.own().unwrap().bytes()
    }

    /// The node of a content, and its entry there.
    pub(super) fn find(&self, content: ContentHash) -> (usize, EntryRef) {
        let found = |node: usize| Some((node, self.parts.nodes[node].read().tables.find(content)?));
        (0..self.parts.nodes.len()).find_map(found).unwrap()
    }

    fn ticket(&mut self) -> Search {
        self.tickets += 1;
        Search { ticket: self.tickets, client: ClientId(self.tickets % 3) }
    }

    /// Gives a page a content, as tier 1 would.
    pub(super) fn put(&mut self, page: PageId, signature: Arc<Signature>, search: bool) {
        self.remove(page);
        self.log_change(page);
        self.pages.lock().unwrap().insert(page, Arc::clone(&signature));
        let search = search.then(|| self.ticket());
        self.commands.push(IndexCommand::Put { page, signature, search });
    }

    pub(super) fn remove(&mut self, page: PageId) {
        self.log_change(page);
        if let Some(old) = self.pages.lock().unwrap().remove(&page) {
            self.commands.push(IndexCommand::Remove { page, content: old.content() });
        }
    }

    /// Adds a change to the log.
    fn log_change(&self, page: PageId) {
        if let Some(log) = self.source.log.lock().unwrap().as_mut() {
            log.push(page);
        }
    }

    pub(super) fn search(&mut self, page: PageId) {
        let content = self.pages.lock().unwrap().get(&page).map(|s| s.content());
        if let Some(content) = content {
            let search = self.ticket();
            self.commands.push(IndexCommand::Search { page, content, search });
        }
    }

    pub(super) fn search_all(&mut self) {
        let pages: Vec<PageId> = self.pages.lock().unwrap().keys().copied().collect();
        pages.into_iter().for_each(|page| self.search(page));
    }

    /// Stores the waiting orders and makes one round of searches. Returns its answers.
    pub(super) fn round(&mut self) -> Vec<SearchResult> {
        self.answers.lock().unwrap().clear();
        let commands = std::mem::take(&mut self.commands);
        let (after, count) = (self.orders_sent, commands.len() as u64);
        self.orders_sent += count;
        if count > 0 {
            self.pass.take(&self.parts.router, orders(after, commands));
            self.pass.store(&self.parts.router).unwrap();
        }
        self.pass.search(&self.parts.router).unwrap();
        self.parts.router.deliver_repeats().unwrap();
        self.answers.lock().unwrap().clone()
    }

    /// Whether searches wait for their turn.
    pub(super) fn has_searches(&self) -> bool {
        self.pass.has_searches()
    }

    /// Makes a pass and checks each answer. Returns the answers.
    pub(super) fn pass(&mut self) -> Vec<SearchResult> {
        // Of two searches for a page, only the later one counts, and none from before a removal.
        let mut last: BTreeMap<PageId, (ContentHash, u32)> = BTreeMap::new();
        for command in &self.commands {
            if let IndexCommand::Remove { page, .. } = command {
                last.remove(page);
            } else if let Some((page, content, ticket)) = ordered_search(command) {
                last.insert(page, (content, ticket));
            }
        }
        self.answers.lock().unwrap().clear();
        self.source.repeats.lock().unwrap().clear();
        let commands = std::mem::take(&mut self.commands);
        let (after, count) = (self.orders_sent, commands.len() as u64);
        self.orders_sent += count;
        let changes = self.source.log.lock().unwrap().as_ref().map_or(0, Vec::len);
        *self.source.ordered.lock().unwrap() = (self.orders_sent, changes);
        if count > 0 {
            self.pass.take(&self.parts.router, orders(after, commands));
            self.pass.store(&self.parts.router).unwrap();
            while self.pass.has_searches() {
                self.pass.search(&self.parts.router).unwrap();
            }
        }
        self.parts.router.deliver_repeats().unwrap();
        let answers = self.answers.lock().unwrap().clone();
        let pages = self.pages.lock().unwrap().clone();
        let is_present = |page: &PageId, content| pages.get(page).is_some_and(|s| s.content() == content);
        let due: BTreeSet<_> = last
            .into_iter()
            .filter(|(page, (content, _))| is_present(page, *content))
            .map(|(page, (content, ticket))| (page, content, ticket))
            .collect();
        let given: BTreeSet<_> = answers.iter().map(|a| (a.page, a.content, a.ticket)).collect();
        assert_eq!(given.len(), answers.len(), "a search is answered twice");
        assert_eq!(given, due, "not exactly the last searches for present contents are answered");
        for answer in &answers {
            let own = (answer.page, answer.content);
            self.linked.extend(answer.pairs.iter().map(|pair| (own, (pair.page, pair.content))));
        }
        let current = |(page, content): Version| pages.get(&page).is_some_and(|s| s.content() == content);
        self.linked.retain(|(a, b)| current(*a) && current(*b));
        let linked = self.linked.iter().map(|(a, b)| (a.1, b.1)).collect();
        let mut together = Components::default();
        self.linked.iter().for_each(|(a, b)| together.link(a.1, b.1));
        for answer in answers.iter().filter(|_| !self.unchecked) {
            self.check(answer, &pages, &linked, &mut together);
        }
        if !self.changes_on_demand {
            self.parts.router.maintain(usize::MAX / 4);
        }
        self.check_tables(&pages);
        answers
    }

    /// Checks the invariant of [`crate::node::search`] by the definition.
    ///
    /// `linked` has all pairs that were reported for pages as they are. An entry may have got another center
    /// since the search, by a search of its own; then the answer to that search has the link. If searches are
    /// interrupted, a center may have changed more than once. Then the two contents are linked through others
    /// (`together`).
    fn check(
        &self,
        answer: &SearchResult,
        pages: &BTreeMap<PageId, Arc<Signature>>,
        linked: &BTreeSet<(ContentHash, ContentHash)>,
        together: &mut Components,
    ) {
        let is_interrupted = self.config.search_limits.search < 10_000;
        let policy = self.policy();
        let own = &pages[&answer.page];
        let mut partners = BTreeSet::new();
        for pair in &answer.pairs {
            check_pair(policy, own, pair, pages);
            assert_ne!(pair.page, answer.page);
            partners.insert(pair.content);
        }
        let has_copies = pages.iter().any(|(page, s)| *page != answer.page && s.content() == answer.content);
        assert_eq!(partners.contains(&answer.content), has_copies, "the answer does not link exact copies");
        let (node, entry) = self.find(answer.content);
        let core = self.parts.nodes[node].read();
        let tables = &core.tables;
        let first = tables.partition(entry).columns.page(entry.slot);
        if first != answer.page {
            let named: Vec<PageId> = answer.pairs.iter().map(|pair| pair.page).collect();
            assert_eq!(named, [first], "a copy is not linked to the first page alone");
            assert_ne!(tables.partition(entry).columns.query_order(entry.slot), 0);
            return;
        }
        let query_order = tables.partition(entry).columns.query_order(entry.slot);
        let insert_seq =
            |(node, entry): (usize, EntryRef)| (node, self.parts.nodes[node].read().tables.insert_seq(entry));
        let insert_seqs: BTreeSet<(usize, InsertSeq)> =
            partners.iter().map(|content| insert_seq(self.find(*content))).collect();
        for other in pages.values() {
            let content = other.content();
            if content == answer.content || partners.contains(&content) {
                continue;
            }
            // The cheap half of the definition first.
            if !policy.similar(own, other) || !policy.linked(own, other) {
                continue;
            }
            let (there, at) = self.find(content);
            let core = self.parts.nodes[there].read();
            let columns = &core.tables.partition(at).columns;
            let later = there == node && columns.query_order(at.slot) > query_order;
            let centers = [columns.center(at.slot), columns.second_center(at.slot)];
            let covered = centers.iter().any(|center| insert_seqs.contains(&(there, center.insert_seq)))
                || partners.iter().any(|partner| linked.contains(&(content, *partner)));
            let by_others = is_interrupted && together.find(content) == together.find(answer.content);
            assert!(later || covered || by_others, "the answer for {own:?} misses {other:?}");
        }
    }

    /// Checks that the tables contain exactly the contents and pages of the model.
    fn check_tables(&self, pages: &BTreeMap<PageId, Arc<Signature>>) {
        let plan = self.parts.router.plan();
        let mut expected: BTreeMap<ContentHash, BTreeSet<PageId>> = BTreeMap::new();
        for (page, signature) in pages.iter().filter(|(_, s)| s.tokens() > 0) {
            expected.entry(signature.content()).or_default().insert(*page);
        }
        let (mut contents, mut stored) = (0, 0);
        for node in &self.parts.nodes {
            let core = node.read();
            contents += core.tables.len();
            stored += core.tables.serving().map(|p| p.columns.len() + p.pages.len()).sum::<usize>();
        }
        assert_eq!(contents, expected.len());
        assert_eq!(stored, expected.values().map(BTreeSet::len).sum::<usize>());
        for (content, pages) in expected {
            let (node, entry) = self.find(content);
            let core = self.parts.nodes[node].read();
            let partition = core.tables.partition(entry);
            let has: BTreeSet<PageId> = partition.pages_of(entry.slot).collect();
            assert_eq!(has, pages);
            let assignment =
                plan.assignments()[plan.map().home(&partition.columns.vector(entry.slot)).index()];
            let local = core.tables.local(assignment.id);
            let home = (assignment.node.index(), local);
            assert_eq!(home, (node, Some(entry.partition)), "a content is not at its home");
        }
        self.parts.nodes.iter().for_each(|node| check_keys(node, pages));
    }
}

/// Checks that every entry of a node is listed under its keys, and under no others.
fn check_keys(node: &LocalNode, pages: &BTreeMap<PageId, Arc<Signature>>) {
    let core = node.read();
    if core.tables.is_renewal_due() {
        // Entries that could not be read stay listed until the tables are rebuilt.
        return;
    }
    let mut listed = vec![0; core.tables.partitions.len()];
    for entry in core.tables.entries() {
        let partition = core.tables.partition(entry);
        let signature = &pages[&partition.columns.page(entry.slot)];
        let is_listed = signature.content() == partition.columns.content(entry.slot)
            && partition.columns.is_comparable(entry.slot);
        if is_listed {
            let Listing { keys, shapes } = core.tables.listing(&partition.families, signature);
            assert!(partition.families.has_shapes(&shapes));
            let keys: BTreeSet<_> = keys.into_iter().collect();
            assert!(keys.iter().all(|key| partition.candidates.members(*key).contains(&entry.slot)));
            listed[entry.partition.index()] += keys.len();
        }
    }
    for (partition, listed) in core.tables.partitions.iter().zip(listed) {
        if partition.state == PartitionState::Serving {
            assert_eq!(partition.candidates.members_of_all(), listed);
        }
    }
}

fn ordered_search(command: &IndexCommand) -> Option<(PageId, ContentHash, u32)> {
    match command {
        IndexCommand::Put { page, signature, search } => {
            Some((*page, signature.content(), search.as_ref()?.ticket))
        }
        IndexCommand::Search { page, content, search } => Some((*page, *content, search.ticket)),
        IndexCommand::Remove { .. } => None,
    }
}

pub(super) fn open_parts(config: &Config, source: &Arc<Source>) -> Parts {
    let source = Arc::clone(source) as Arc<dyn ContentSource>;
    let parts =
        Parts::open(config.clone(), source, None, |node| Arc::clone(node) as Arc<dyn IndexNode>).unwrap();
    parts.router.feed_lost_nodes().unwrap();
    parts
}

/// Checks that a pair names a current page with its content, and the correct similarity.
pub(super) fn check_pair(
    policy: Policy,
    own: &Signature,
    pair: &VerifiedPartner,
    pages: &BTreeMap<PageId, Arc<Signature>>,
) {
    let other = pages.get(&pair.page).expect("the partner is a current page");
    assert_eq!(other.content(), pair.content);
    assert!(policy.linked(own, other));
    assert_eq!(pair.similarity, policy.compare(own, other).similarity);
}

/// Sets of contents that are linked, directly or through others.
#[derive(Default)]
pub(super) struct Components(BTreeMap<ContentHash, ContentHash>);

impl Components {
    pub(super) fn find(&mut self, content: ContentHash) -> ContentHash {
        let parent = *self.0.entry(content).or_insert(content);
        if parent == content {
            return content;
        }
        let root = self.find(parent);
        self.0.insert(content, root);
        root
    }

    pub(super) fn link(&mut self, a: ContentHash, b: ContentHash) {
        let (a, b) = (self.find(a), self.find(b));
        self.0.insert(a.max(b), a.min(b));
    }

    pub(super) fn take(&mut self, answers: &[SearchResult]) {
        for answer in answers {
            self.find(answer.content);
            answer.pairs.iter().for_each(|pair| self.link(answer.content, pair.content));
        }
    }

    /// Components by the definition.
    pub(super) fn of(policy: Policy, signatures: &[Arc<Signature>]) -> Self {
        let mut components = Self::default();
        for (i, a) in signatures.iter().enumerate() {
            components.find(a.content());
            for b in &signatures[..i] {
                if policy.similar(a, b) && policy.linked(a, b) {
                    components.link(a.content(), b.content());
                }
            }
        }
        components
    }

    /// The smallest content in the set of each content.
    pub(super) fn roots(&mut self) -> BTreeMap<ContentHash, ContentHash> {
        let contents: Vec<ContentHash> = self.0.keys().copied().collect();
        contents.into_iter().map(|content| (content, self.find(content))).collect()
    }
}
