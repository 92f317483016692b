//! The actions of a run as data. A list of actions is made from the seed alone, and can be replayed with
//! parts left out. Every number in an action is taken modulo the number of candidates, so an action makes
//! sense in any state.

use doppel_contract::WinnerRule;
use doppel_model::pairwise::Policy;
use doppel_protocol::index_node::SearchLimits;
use doppel_tier1::simulation::MessageKind;

use super::contents::{FAMILIES, islands};
use super::delays::delayed;
use super::model::{Body, Page};
use super::order;
use super::random::Random;
use super::replica_actions::{ReplicaAction, replica_action};

/// Where a range stops in the middle of a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    Never,
    /// Before any row is stored.
    BeforeCommit,
    /// After the rows are stored, and before any answer or effect leaves.
    AfterCommit,
    /// After this number of effects is carried out.
    AtEffect(u8),
}

/// State of the index's files at a restart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Files {
    Flushed,
    /// The files lack what was not yet written.
    AsTheyAre,
    Lost,
    /// Cut off at this share of their lengths, in 256ths.
    Cut(u8),
}

/// A version of a page that a client sends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Item {
    pub(crate) page: Page,
    pub(crate) body: Body,
    /// Age of the fetch in milliseconds.
    pub(crate) age: i64,
    pub(crate) popularity: Option<u8>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Action {
    /// A client sends a batch, which does not arrive yet.
    Send(Vec<Item>),
    /// The collection is created at once from these versions. Only the first action of a run may do this.
    AtOnce(Vec<Item>),
    /// A sent batch arrives. With `repeat` the client gets no answer and will send the batch again.
    Arrive {
        which: u32,
        repeat: bool,
        deliver: u8,
        stop: Stop,
    },
    /// A client gives up a batch, which may have been stored.
    GiveUp {
        which: u32,
    },
    Purge {
        page: Page,
        stop: Stop,
    },
    /// Retention examines a page's record, or a merged group.
    Expire {
        which: u32,
    },
    /// A range applies messages, its own and those that arrive from the network.
    Deliver {
        range: u32,
        order: u32,
        envelopes: u8,
        stop: Stop,
    },
    /// The network loses the messages of a range that are under way.
    Lose {
        range: u32,
    },
    /// The next message of a kind is held for this many commits, or until the next rest.
    Delay {
        kind: MessageKind,
        commits: u32,
    },
    /// A page gets a content that is near two groups, and is the only link between them.
    Bridge {
        which: u32,
    },
    /// A page gets another version while a message that names it is held.
    Overtake {
        which: u32,
        body: Body,
    },
    /// A page that differs from the winner of its group changes only its rank in the winner order.
    Reorder {
        which: u32,
    },
    /// A range sends its posts again without waiting longer for answers.
    SendAgain {
        range: u32,
    },
    /// Tier 2 makes a pass over some orders.
    Pass {
        orders: u8,
    },
    /// A command arrives at its range, in any order. With `repeat` the command arrives again later.
    Command {
        which: u32,
        repeat: bool,
        stop: Stop,
    },
    Verify {
        which: u32,
    },
    Recompute {
        which: u32,
    },
    Cover {
        which: u32,
    },
    Repair {
        which: u32,
    },
    SearchNow {
        which: u32,
        stop: Stop,
    },
    /// A change to another mapping of contents to partitions and nodes begins.
    Change {
        dice: u32,
    },
    /// Makes steps of the change of the mapping.
    Work {
        steps: u32,
    },
    /// An index node dies alone, and restarts with the remains of its file.
    KillIndexNode {
        node: u32,
        files: Files,
    },
    /// Index nodes write snapshots.
    Save,
    /// From now on, one in `one_in` calls between the router and the index nodes fails; 0 for none.
    FailCalls {
        one_in: u8,
        seed: u32,
    },
    /// From now on, one in `one_in` reads of tier 1's rows fails; 0 for none.
    FailReads {
        one_in: u8,
        seed: u32,
    },
    /// The shard of a page learns that tier 2 wants a new search for the page.
    Repeat {
        which: u32,
        stop: Stop,
    },
    /// A range is killed and restarted, together with tier 2 unless the range dies alone.
    Kill {
        range: u32,
        alone: bool,
        files: Files,
        commands_survive: bool,
    },
    /// All ranges and tier 2 are killed and restarted.
    KillAll {
        files: Files,
    },
    /// A client queries a status, as `GET /v1/status` does.
    Ask {
        page: Page,
    },
    /// A consumer reads the feed, as `GET /v1/changes` does.
    Read {
        limit: u8,
    },
    Tick {
        millis: i64,
    },
    /// An action on the replicas of a range, or on its log.
    Replica {
        range: u32,
        action: ReplicaAction,
    },
    /// All faults stop until only held messages are left to do.
    Lull,
    /// All faults stop until nothing is left to do. Then all invariants are checked.
    Rest,
}

/// The settings and the actions of a run.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) shards: u16,
    pub(crate) ranges: u16,
    /// Number of replicas of each range; 0 if ranges are not replicated.
    pub(crate) replicas: usize,
    /// Whether commits are settled by a standby, and the log may lose its last entries.
    pub(crate) loses_tail: bool,
    /// One in this many calls of the files of an unreplicated range fails; 0 if the range has no files.
    pub(crate) disk_fails: u64,
    /// Maximal size of a part of a record in bytes.
    pub(crate) part_bytes: usize,
    /// Maximal number of envelopes in a post.
    pub(crate) post_envelopes: usize,
    pub(crate) pages: usize,
    pub(crate) policy: Policy,
    /// Cost of searches after which other work gets its turn.
    pub(crate) search_limits: SearchLimits,
    pub(crate) step_rows: usize,
    pub(crate) group_members_max: u64,
    /// Share of members dissimilar to the winner, in percent, from which a group is recomputed; 0 for never.
    pub(crate) low_cohesion_percent: u8,
    /// The rules by which winners are elected.
    pub(crate) rules: Vec<WinnerRule>,
    pub(crate) actions: Vec<Action>,
}

/// Policies other than `jaccard` at its usual thresholds. They are lenient enough to make families of the
/// contents of a run.
const LENIENT: [&str; 12] = [
    "jaccard:tau=0.4",
    "jaccard:tau=0.85,words=3",
    "supershingle:equal=1",
    "projection:agreeing=361",
    "combined:equal=1,agreeing=300",
    "by-site:across=361,equal=1,agreeing=300",
    "simhash:differing=6",
    "imatch:idf-from=0,idf-to=100",
    "multi-simhash:below=7",
    "content:tau=0.7",
    "copies:text=0.8,within=0.9,across=0.75",
    "overlap:lines=2,shared=48",
];

/// `jaccard` with this threshold, or sometimes another policy.
fn policy(random: &mut Random, tau: &str) -> Policy {
    let policy = match random.once_in(3) {
        true => LENIENT[random.below(LENIENT.len() as u64) as usize].to_owned(),
        false if random.once_in(4) => format!("jaccard:tau={tau},tokens=code"),
        false => format!("jaccard:tau={tau}"),
    };
    policy.parse().expect("a policy")
}

impl Plan {
    pub(crate) fn of(seed: u64, steps: usize) -> Self {
        let mut random = Random::new(seed);
        let shards = 1 + random.below(7) as u16;
        let ranges = 1 + random.below(u64::from(shards).min(4)) as u16;
        let pages = 6 + random.below(30) as usize;
        let tau = if random.once_in(4) { "0.9" } else { "0.8" };
        let step_rows = [2, 3, 256][random.below(3) as usize];
        let group_members_max = if random.once_in(8) { 4 } else { 1_000 };
        let post_envelopes = [1, 3, 8, 256][random.below(4) as usize];
        let policy = policy(&mut Random::new(seed.rotate_left(20)), tau);
        // Rules and delays have random numbers of their own, so that the other actions of a seed do not
        // depend on them.
        let rules = order::rules(&mut Random::new(seed.rotate_left(32)));
        let mut delaying = Random::new(seed.rotate_left(16));
        let low_cohesion_percent = if delaying.once_in(3) { 25 } else { 0 };
        let delays = delaying.once_in(2);
        let mut reading = Random::new(seed.rotate_left(48));
        let reads_fail = reading.once_in(2);
        let mut reordering = Random::new(seed.rotate_left(56));
        let mut replicating = Random::new(seed.rotate_left(24));
        let replicas = if replicating.once_in(2) { 2 + replicating.below(2) as usize } else { 0 };
        let part_bytes = [300, 3_000, 512 << 10][replicating.below(3) as usize];
        let calm = [3, 8, 30][replicating.below(3) as usize];
        let mut losing = Random::new(seed.rotate_left(12));
        let loses_tail = replicas > 0 && losing.once_in(3);
        let mut failing = Random::new(seed.rotate_left(60));
        let has_files = replicas == 0 && failing.once_in(2);
        let disk_fails = if has_files { [60, 200, 600][failing.below(3) as usize] } else { 0 };
        // A held message also holds all later messages of its pair of shards, so there must be other pairs.
        let shards = if delays { shards.max(5) } else { shards };
        let pages = if delays { pages.max(12) } else { pages };
        let mut making = ActionGenerator::new(&mut random, pages);
        if delays {
            making.families = islands(policy).to_vec();
        }
        let mut actions: Vec<Action> = Vec::with_capacity(steps + 3);
        let mut beginning = Random::new(seed.rotate_left(8));
        if beginning.once_in(3) {
            let versions = 1 + beginning.below(2 * pages as u64);
            let mut making = ActionGenerator {
                families: making.families.clone(),
                ..ActionGenerator::new(&mut beginning, pages)
            };
            actions.push(Action::AtOnce((0..versions).map(|_| making.item()).collect()));
        }
        for step in 0..steps {
            let rests = step == steps * 2 / 3;
            if delays && (rests || delaying.once_in(100)) {
                actions.extend(delayed(&mut delaying));
            }
            if rests {
                actions.extend(reordered(&mut reordering));
                actions.push(Action::Rest);
            }
            if reads_fail && reading.once_in(40) {
                let one_in = [0, 3, 8, 20][reading.below(4) as usize];
                actions.push(Action::FailReads { one_in, seed: reading.number() });
            }
            if loses_tail && losing.once_in(3 * calm) {
                let entries = 1 + losing.below(9) as u8;
                let (range, action) = (losing.number(), ReplicaAction::LoseTail { entries });
                actions.push(Action::Replica { range, action });
            }
            if replicas > 0 && replicating.once_in(calm) {
                let (range, action) = (replicating.number(), replica_action(&mut replicating));
                actions.push(Action::Replica { range, action });
            }
            actions.push(making.action());
        }
        if delays {
            actions.extend(delayed(&mut delaying));
        }
        actions.extend(reordered(&mut reordering));
        actions.push(Action::Rest);
        // The limits come from a generator of their own, so that the actions of a seed stay the same.
        let (search, call) = [(u64::MAX, u64::MAX), (3, 3), (40, 100)][Random::new(!seed).below(3) as usize];
        Self {
            seed,
            search_limits: SearchLimits { search, call },
            shards,
            ranges,
            replicas,
            loses_tail,
            disk_fails,
            part_bytes,
            post_envelopes,
            pages,
            policy,
            step_rows,
            group_members_max,
            low_cohesion_percent,
            rules,
            actions,
        }
    }
}

/// In one run of three, only the order of pages changes between two rests.
fn reordered(random: &mut Random) -> Vec<Action> {
    if !random.once_in(3) {
        return Vec::new();
    }
    let mut actions = vec![Action::Lull];
    actions.extend((0..3).map(|_| Action::Reorder { which: random.number() }));
    actions
}

/// Habits of a run: how often each action occurs, and which contents its pages have.
struct ActionGenerator<'r> {
    random: &'r mut Random,
    pages: usize,
    /// Families of contents in use. Few families lead to large groups.
    families: Vec<(usize, usize)>,
    /// Whether ranges stop in the middle of commits. In one run of four they never do.
    stops: bool,
    redirects: u64,
    /// How often each class of action occurs, in the order of [`ActionGenerator::action`].
    weights: [u64; 26],
}

/// The weights of a usual run.
const WEIGHTS: [u64; 26] =
    [140, 150, 6, 6, 8, 170, 10, 15, 95, 130, 60, 50, 6, 44, 40, 7, 3, 43, 20, 30, 10, 6, 12, 8, 40, 25];

impl<'r> ActionGenerator<'r> {
    fn new(random: &'r mut Random, pages: usize) -> Self {
        let mut families: Vec<_> = FAMILIES.into_iter().filter(|_| random.once_in(3)).collect();
        if families.is_empty() {
            families.push(FAMILIES[random.below(4) as usize]);
        }
        let stops = !random.once_in(4);
        let redirects = [0, 1, 2, 5][random.below(4) as usize];
        // In half of the runs some actions occur often and others hardly ever (Groce et al.: Swarm testing,
        // 2012).
        let is_common = random.once_in(2);
        let weights = WEIGHTS
            .map(|weight| if is_common { weight } else { weight * [1, 4, 12][random.below(3) as usize] });
        Self { random, pages, families, stops, redirects, weights }
    }

    fn page(&mut self) -> Page {
        self.random.below(self.pages as u64) as Page
    }

    fn stop(&mut self) -> Stop {
        if !self.stops || !self.random.once_in(25) {
            return Stop::Never;
        }
        match self.random.below(4) {
            0 => Stop::BeforeCommit,
            1 => Stop::AfterCommit,
            _ => Stop::AtEffect(self.random.below(6) as u8),
        }
    }

    fn files(&mut self) -> Files {
        match self.random.below(4) {
            0 => Files::Flushed,
            1 => Files::AsTheyAre,
            2 => Files::Lost,
            _ => Files::Cut(self.random.below(256) as u8),
        }
    }

    fn body(&mut self, page: Page) -> Body {
        let of = 14 + self.redirects;
        match self.random.below(of) {
            0 => Body::Dead,
            n if n <= self.redirects => match self.page() {
                to if to != page => Body::Redirect(to),
                _ => Body::Dead,
            },
            _ => {
                // A page mostly keeps to one family, so that its contents are near each other.
                let family = match self.random.below(4) {
                    0 => self.random.below(self.families.len() as u64) as usize,
                    _ => page % self.families.len(),
                };
                let (first, length) = self.families[family];
                Body::Content(first + self.random.below(length as u64) as usize)
            }
        }
    }

    fn item(&mut self) -> Item {
        let page = self.page();
        let body = self.body(page);
        let age = if self.random.once_in(8) { self.random.below(3 * 86_400_000) as i64 } else { 0 };
        let popularity = self.random.once_in(4).then(|| self.random.below(9) as u8);
        Item { page, body, age, popularity }
    }

    fn send(&mut self) -> Action {
        if self.redirects > 0 && self.random.once_in(40) {
            // A chain of redirects with a length around the limit, or a loop.
            let (first, hops) = (self.page(), 2 + self.random.below(22) as usize);
            let item = |at: usize| {
                let page = (first + at) % self.pages;
                Item { page, body: Body::Redirect((page + 1) % self.pages), age: 0, popularity: None }
            };
            return Action::Send((0..hops.min(self.pages)).map(item).collect());
        }
        let items = if self.random.once_in(3) { 1 + self.random.below(6) } else { 1 };
        Action::Send((0..items).map(|_| self.item()).collect())
    }

    fn action(&mut self) -> Action {
        let which = self.random.number();
        let mut left = self.random.below(self.weights.iter().sum());
        let class = self.weights.iter().position(|weight| {
            let is_it = left < *weight;
            left = left.saturating_sub(*weight);
            is_it
        });
        match class.unwrap_or(0) {
            0 => self.send(),
            1 => {
                let (repeat, deliver) = (self.random.once_in(8), self.random.below(9) as u8);
                Action::Arrive { which, repeat, deliver, stop: self.stop() }
            }
            2 => Action::GiveUp { which },
            3 => Action::Purge { page: self.page(), stop: self.stop() },
            4 => Action::Expire { which },
            5 => {
                let (order, envelopes) = (self.random.number(), 1 + self.random.below(12) as u8);
                Action::Deliver { range: which, order, envelopes, stop: self.stop() }
            }
            6 => Action::Lose { range: which },
            7 => Action::SendAgain { range: which },
            8 => Action::Pass { orders: 1 + self.random.below(10) as u8 },
            9 => Action::Command { which, repeat: self.random.once_in(10), stop: self.stop() },
            10 => Action::Verify { which },
            11 => Action::Recompute { which },
            12 => Action::Repair { which },
            13 => Action::SearchNow { which, stop: self.stop() },
            14 if self.random.once_in(3) => Action::Change { dice: which },
            14 => Action::Work { steps: 1 + self.random.below(8) as u32 },
            15 if self.stops => {
                let (files, commands_survive) = (self.files(), self.random.once_in(2));
                Action::Kill { range: which, alone: self.random.once_in(2), files, commands_survive }
            }
            16 if self.stops => Action::KillAll { files: self.files() },
            17 => Action::Ask { page: self.page() },
            20 if self.stops => Action::KillIndexNode { node: which, files: self.files() },
            21 if self.stops => {
                let one_in = [0, 0, 3, 8, 20][self.random.below(5) as usize];
                Action::FailCalls { one_in, seed: which }
            }
            22 => Action::Repeat { which, stop: self.stop() },
            23 => Action::Save,
            24 => Action::Cover { which },
            25 => Action::Reorder { which },
            18 => Action::Read { limit: 1 + self.random.below(20) as u8 },
            _ => {
                let most = if self.random.once_in(5) { 200_000_000 } else { 5_000 };
                Action::Tick { millis: self.random.below(most) as i64 }
            }
        }
    }
}
