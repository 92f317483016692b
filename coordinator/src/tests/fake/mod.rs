//! Both tiers in memory, small and slow: what they answer at quiescence, computed from scratch.

mod groups;
mod mapping;
mod tier1;
mod tier2;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

use doppel_model::signature::Signature;
use doppel_model::{GroupId, PageId, PageUrl, Timestamp};
use doppel_partitioning::Plan;
use doppel_protocol::answer::Advice;
use doppel_protocol::{
    Change, GroupSummary, IndexError, PageView, RebalanceOutcome, RebalanceProgress, RepairDetails,
    Tier1Error, WinnerOrder,
};

use super::gate::Gate;

/// The moment at which every test takes place.
pub(super) const NOW: Timestamp = Timestamp::from_millis(1_800_000_000_000);

/// Both tiers.
#[derive(Default)]
pub(super) struct Fake {
    state: Mutex<State>,
    changed: Condvar,
    pub(super) gate: Gate,
}

/// What a test may read and bend.
#[derive(Default)]
pub(super) struct State {
    pub(super) pages: BTreeMap<PageId, Page>,
    pub(super) groups: BTreeMap<GroupId, (GroupSummary, Vec<PageId>)>,
    pub(super) log: Vec<Change>,
    /// The URLs of every call of `submit` that was taken.
    pub(super) submitted: Vec<Vec<String>>,
    /// What `submit` refuses with once this many calls were taken.
    pub(super) refuse: Option<(usize, Tier1Error)>,
    /// Makes `submit` give one outcome less than there are submissions, or one more.
    pub(super) miscount: Option<bool>,
    /// Makes a backup come without its end.
    pub(super) cut_backup: bool,
    /// What `scan` fails with.
    pub(super) damaged: bool,
    /// Why `totals` does not answer.
    pub(super) totals_error: Option<Tier1Error>,
    /// Makes the next call of `totals` panic.
    pub(super) panic: bool,
    pub(super) repairs: Vec<(GroupId, bool, String)>,
    /// What is written down of repairs, oldest first.
    pub(super) trail: Vec<RepairDetails>,
    pub(super) flushes: u32,
    /// What a flush that waits answers after its time, where not everything is decided by then.
    pub(super) undecided: Option<Result<bool, Tier1Error>>,
    /// The mapping, where there is one.
    pub(super) plan: Option<Plan>,
    pub(super) progress: Option<RebalanceProgress>,
    pub(super) outcome: Option<RebalanceOutcome>,
    /// Why tier 2 does not answer.
    pub(super) index_error: Option<IndexError>,
    pub(super) winners: WinnerOrder,
    /// What is known without a read of rows.
    pub(super) known: HashMap<PageUrl, Advice>,
    /// Called before a signature is handed out.
    pub(super) on_signature: Option<Bend>,
    /// Reads of pages that take long: when the owner was asked, as far back from the answer.
    pub(super) slow: HashMap<PageId, VecDeque<Duration>>,
    /// Where owners may be deposed.
    pub(super) may_change: bool,
    /// Pages that a question reads of replicas, and how old they are there.
    pub(super) old: HashMap<PageId, Duration>,
    minted: u64,
}

/// Changes the state between two reads.
type Bend = Box<dyn FnMut(&mut State) + Send>;

#[derive(Clone)]
pub(super) struct Page {
    pub(super) view: PageView,
    pub(super) signature: Option<Arc<Signature>>,
}

impl Fake {
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }
}

impl State {
    /// Whether tier 2 answers.
    fn index(&self) -> Result<(), IndexError> {
        self.index_error.clone().map_or(Ok(()), Err)
    }

    /// The record of a URL.
    pub(super) fn page(&mut self, url: &str) -> &mut Page {
        let id = PageUrl::parse(url).unwrap().id();
        self.pages.get_mut(&id).unwrap()
    }

    /// The group of a URL.
    pub(super) fn group_of(&mut self, url: &str) -> GroupId {
        self.page(url).view.line.group.unwrap()
    }
}
