//! A small and slow fake of both tiers in memory. It computes their answers at quiescence from scratch.

mod groups;
mod mapping;
mod tier1;
mod tier2;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

use doppel_contract::answer::Advice;
use doppel_contract::{RebalanceOutcome, RebalanceProgress};
use doppel_model::signature::Signature;
use doppel_model::{GroupId, PageId, PageUrl, Timestamp};
use doppel_partitioning::Plan;
use doppel_protocol::{
    FeedEvent, GroupSummary, IndexError, PageView, RepairDetails, Tier1Error, WinnerOrder,
};

use super::gate::CallGate;

/// Time at which every test takes place.
pub(super) const NOW: Timestamp = Timestamp::from_millis(1_800_000_000_000);

/// Fake of both tiers.
#[derive(Default)]
pub(super) struct Fake {
    state: Mutex<State>,
    changed: Condvar,
    pub(super) gate: CallGate,
}

/// State that a test may read and change.
#[derive(Default)]
pub(super) struct State {
    pub(super) pages: BTreeMap<PageId, Page>,
    pub(super) groups: BTreeMap<GroupId, (GroupSummary, Vec<PageId>)>,
    pub(super) log: Vec<FeedEvent>,
    /// URLs of every accepted call of `submit`.
    pub(super) submitted: Vec<Vec<String>>,
    /// Error with which `submit` refuses after this number of accepted calls.
    pub(super) refuse: Option<(usize, Tier1Error)>,
    /// Makes `submit` return one outcome too few or too many.
    pub(super) miscount: Option<bool>,
    /// Makes a backup stop before its end.
    pub(super) cut_backup: bool,
    /// Makes `scan` fail because of a damaged record.
    pub(super) damaged: bool,
    /// Error with which `totals` fails.
    pub(super) totals_error: Option<Tier1Error>,
    /// Makes the next call of `totals` panic.
    pub(super) panic: bool,
    pub(super) repairs: Vec<(GroupId, bool, String)>,
    /// Trail of the repairs, oldest first.
    pub(super) trail: Vec<RepairDetails>,
    pub(super) flushes: u32,
    /// Answer of a waiting flush after its time, if set: not everything is decided by then.
    pub(super) undecided: Option<Result<bool, Tier1Error>>,
    /// Plan of the partition map, if there is one.
    pub(super) plan: Option<Plan>,
    pub(super) progress: Option<RebalanceProgress>,
    pub(super) outcome: Option<RebalanceOutcome>,
    /// Error with which tier 2 fails.
    pub(super) index_error: Option<IndexError>,
    pub(super) winners: WinnerOrder,
    /// Content of the status table: advice that needs no read of rows.
    pub(super) known: HashMap<PageUrl, Advice>,
    /// Hook that runs before a signature is returned.
    pub(super) on_signature: Option<Bend>,
    /// Durations of the next slow reads of a page: the time between the question to the owner and the answer.
    pub(super) slow: HashMap<PageId, VecDeque<Duration>>,
    /// Whether the owners of ranges may be deposed.
    pub(super) may_change: bool,
    /// Pages that are read from replicas, with the age of the replicas' data.
    pub(super) old: HashMap<PageId, Duration>,
    minted: u64,
}

/// Hook that changes the state between two reads.
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
    /// Fails if tier 2 is set not to answer.
    fn index(&self) -> Result<(), IndexError> {
        self.index_error.clone().map_or(Ok(()), Err)
    }

    /// Returns the record of a URL.
    pub(super) fn page(&mut self, url: &str) -> &mut Page {
        let id = PageUrl::parse(url).unwrap().id();
        self.pages.get_mut(&id).unwrap()
    }

    /// Returns the group of a URL.
    pub(super) fn group_of(&mut self, url: &str) -> GroupId {
        self.page(url).view.line.group.unwrap()
    }
}
