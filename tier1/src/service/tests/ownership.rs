//! Ranges that begin and end while the process runs.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::thread;
use std::time::Instant;

use doppel_protocol::range_owner::{self, PeerError, RangeDirectory};

use super::statuses::await_advice;
use super::*;
use crate::lease::Lease;
use crate::service::ownership::owner::OpenedRange;
use crate::storage::database::{Database, LogConsumer};
use crate::storage::store::{Intercept, Intercepted, StoreError, Write};

/// The range that begins and ends.
const MOVING: RangeId = RangeId(1);

/// A directory that knows no owner of any range.
pub(super) struct NoOwners;

impl RangeDirectory for NoOwners {
    fn owner(&self, _: RangeId) -> Option<Arc<dyn range_owner::RangeOwner>> {
        None
    }

    fn has_others(&self) -> bool {
        true
    }
}

/// A log that reports on request that another node owns the range.
#[derive(Default)]
struct DeposingLog(AtomicBool);

impl Intercept for DeposingLog {
    fn commit(&self, rows: &Memory, writes: Vec<Write>) -> Result<(), StoreError> {
        if self.0.load(Ordering::Relaxed) { Err(StoreError::Deposed(MOVING)) } else { rows.commit(writes) }
    }
}

/// A lease that has run out while the switch is set.
#[derive(Default)]
struct LeaseSwitch(AtomicBool);

impl Lease for LeaseSwitch {
    fn end(&self) {}

    fn check(&self) -> Result<(), PeerError> {
        if self.0.load(Ordering::Relaxed) {
            return Err(PeerError::unreachable(MOVING, "it has not heard from its log"));
        }
        Ok(())
    }
}

/// A lease that runs out after this many checks.
struct CountedLease(AtomicU64);

impl Lease for CountedLease {
    fn end(&self) {}

    fn check(&self) -> Result<(), PeerError> {
        let less = |left: u64| left.checked_sub(1);
        let left = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        left.map(drop).map_err(|_| PeerError::NotOwner(MOVING))
    }
}

/// A process that began with three ranges, and their rows.
struct Process {
    tier1: Arc<Tier1>,
    tier2: Arc<LinkingIndex>,
    stores: Vec<Arc<Intercepted<DeposingLog>>>,
    /// Lease of the range that begins and ends.
    lease: Arc<LeaseSwitch>,
    epochs: AtomicU64,
}

impl Process {
    fn start(partners: usize) -> Self {
        let dir = std::env::temp_dir();
        let config = Config { dir, pending_max: 100_000, ..config(Retention::DEFAULT, 3) };
        let tier1 = Tier1::open_none(&config, Arc::new(NoOwners)).unwrap();
        let tier2 = Arc::new(LinkingIndex::naming(partners));
        assert!(tier2.answer.set(Arc::clone(&tier1) as Arc<dyn ContentSource>).is_ok());
        let stores = (0..3).map(|_| Arc::default()).collect();
        let this = Self { tier1, tier2, stores, lease: Arc::default(), epochs: AtomicU64::new(1) };
        // Two ranges begin before the start, and one after it.
        this.begin(RangeId(0));
        this.begin(MOVING);
        this.tier1.start(Arc::clone(&this.tier2) as Arc<dyn IndexOrders>).unwrap();
        this.begin(RangeId(2));
        this
    }

    fn begin(&self, range: RangeId) {
        let store = Arc::clone(&self.stores[usize::from(range.0)]) as Arc<dyn Store>;
        let lease = (range == MOVING).then(|| Arc::clone(&self.lease) as Arc<dyn Lease>);
        let epoch = Some(Epoch(self.epochs.fetch_add(1, Ordering::Relaxed)));
        let opened = OpenedRange { lease, epoch, ..OpenedRange::over(store, None) };
        let range = self.tier1.open_range(range, &opened).unwrap();
        self.tier1.begin_range(opened, range).unwrap();
    }

    fn is_moving(&self, page: u64) -> bool {
        self.tier1.collection.map.of_page(url(page).id()) == MOVING
    }

    /// The first page from `from` on that is, or is not, in the range that begins and ends.
    fn page(&self, moving: bool, from: u64) -> u64 {
        (from..).find(|page| self.is_moving(*page) == moving).unwrap()
    }

    fn try_submit(&self, page: u64, at: i64) -> Result<SubmissionOutcome, Tier1Error> {
        let submission = Submission {
            url: url(page),
            fetched_at: Timestamp::from_millis(at),
            popularity: None,
            language: None,
            canonical: None,
            body: content(page),
        };
        Ok(self.tier1.submit(vec![submission])?[0])
    }

    /// Asserts that the range answers no question and accepts no page.
    fn assert_away(&self) {
        for page in [0, 1_000].map(|from| self.page(true, from)) {
            let id = url(page).id();
            let answers = [
                self.tier1.pages(&[id]).err(),
                self.tier1.signature(id).err(),
                self.tier1.totals().err(),
                self.try_submit(page, 9).err(),
                self.tier1.purge(&[id]).err(),
            ];
            for answer in answers {
                assert!(matches!(answer, Some(Tier1Error::Unavailable(_))), "{answer:?}");
            }
            assert_eq!(self.tier1.known_advice(&url(page)), None);
        }
    }

    /// Asserts that everything is decided in one group, and that the status table agrees with the rows.
    fn assert_at_rest(&self, pages: &[u64]) {
        assert!(self.tier1.flush(PATIENCE).unwrap());
        let ids: Vec<PageId> = pages.iter().map(|page| url(*page).id()).collect();
        let views: Vec<_> = self.tier1.pages(&ids).unwrap().into_iter().map(Option::unwrap).collect();
        let groups: HashSet<_> = views.iter().map(|view| view.line.group).collect();
        assert_eq!(groups.len(), 1, "{groups:?}");
        for (page, view) in pages.iter().zip(&views) {
            let group = view.line.group.map(|group| group.to_string());
            await_advice(&self.tier1, *page, |told| told.status == view.line.status && told.group == group);
        }
        await_advice(&self.tier1, self.page(true, 5_000), |told| told.status == Status::Unknown);
    }
}

#[test]
fn a_range_ends_and_begins_again_while_the_others_continue() {
    let process = Process::start(usize::MAX);
    let mut pages: Vec<u64> = (0..30).collect();
    for page in &pages {
        process.try_submit(*page, 1).unwrap();
    }
    process.assert_at_rest(&pages);

    let node: &dyn range_owner::RangeOwner = &*process.tier1;
    node.follow(MOVING, 7).unwrap();
    process.tier1.end_range(MOVING);
    process.tier1.end_range(MOVING);
    process.assert_away();
    let others = || (100..130).filter(|page| !process.is_moving(*page));
    for page in others() {
        process.try_submit(page, 1).unwrap();
        assert!(process.tier1.pages(&[url(page).id()]).unwrap()[0].is_some());
    }
    process.tier1.writable().unwrap();
    assert!(!process.tier1.flush(Duration::ZERO).unwrap(), "a range has no owner");

    process.begin(MOVING);
    assert!(node.cut(MOVING, 7).is_err(), "the backup has lost the commits of the other owner");
    pages.extend(others());
    process.assert_at_rest(&pages);
    process.tier1.stop();
}

#[test]
fn a_range_begins_once_and_never_after_a_stop() {
    let process = Process::start(0);
    let begin = || {
        let opened = OpenedRange::over(Arc::clone(&process.stores[1]) as Arc<dyn Store>, None);
        let range = process.tier1.open_range(MOVING, &opened).unwrap();
        process.tier1.begin_range(opened, range).unwrap_err()
    };
    assert!(matches!(begin(), crate::Error::Owned(MOVING)));
    await_advice(&process.tier1, process.page(true, 0), |told| told.status == Status::Unknown);
    process.tier1.stop();
    process.tier1.end_range(MOVING);
    assert!(matches!(begin(), crate::Error::Stopped));
}

#[test]
fn a_deposed_owner_ends_without_the_other_ranges() {
    let process = Process::start(usize::MAX);
    let pages: Vec<u64> = (0..12).collect();
    for page in &pages {
        process.try_submit(*page, 1).unwrap();
    }
    process.assert_at_rest(&pages);
    let is_deposed = &process.stores[1].by.0;
    is_deposed.store(true, Ordering::Relaxed);
    let refused = process.try_submit(process.page(true, 200), 1).unwrap_err();
    assert!(matches!(refused, Tier1Error::Unavailable(_)), "{refused:?}");
    process.assert_away();
    process.tier1.writable().unwrap();
    let other = process.page(false, 200);
    process.try_submit(other, 1).unwrap();

    process.tier1.end_range(MOVING);
    is_deposed.store(false, Ordering::Relaxed);
    process.begin(MOVING);
    process.try_submit(process.page(true, 200), 1).unwrap();
    process.assert_at_rest(&[&pages[..], &[other, process.page(true, 200)]].concat());
    process.tier1.stop();
}

#[test]
fn an_expired_lease_stops_answers_but_no_work() {
    let process = Process::start(usize::MAX);
    let pages: Vec<u64> = (0..12).collect();
    process.tier2.refusals.store(usize::MAX, Ordering::Relaxed);
    for page in &pages {
        process.try_submit(*page, 1).unwrap();
    }
    process.lease.0.store(true, Ordering::Relaxed);
    process.assert_away();
    assert!(process.tier1.pages(&[url(process.page(false, 0)).id()]).unwrap()[0].is_some());
    let owner = process.tier1.owned.ranges.local_owner(MOVING).unwrap();
    assert!(owner.totals().1.pending > 0);
    process.tier2.refusals.store(0, Ordering::Relaxed);
    let deadline = Instant::now() + PATIENCE;
    while !owner.totals().1.is_quiescent() {
        assert!(Instant::now() < deadline, "{:?}", owner.totals().1);
        thread::sleep(Duration::from_millis(5));
    }
    process.assert_away();
    process.lease.0.store(false, Ordering::Relaxed);
    process.assert_at_rest(&pages);
    process.tier1.stop();
}

#[test]
fn no_page_is_lost_while_a_range_begins_and_ends() {
    let process = Process::start(2);
    let is_over = AtomicBool::new(false);
    let kept = thread::scope(|scope| {
        let submitting = |of: u64| {
            let (process, is_over) = (&process, &is_over);
            scope.spawn(move || {
                let pages = (of * 100_000..).take_while(|_| !is_over.load(Ordering::Relaxed));
                let taken = pages.filter(|page| match process.try_submit(*page, 1) {
                    Ok(_) => true,
                    Err(Tier1Error::Unavailable(_)) => false,
                    Err(refused) => panic!("{refused}"),
                });
                taken.inspect(|_| thread::sleep(Duration::from_millis(1))).collect::<Vec<u64>>()
            })
        };
        let submitters = [submitting(1), submitting(2)];
        scope.spawn(|| {
            for page in (100_000..).take_while(|_| !is_over.load(Ordering::Relaxed)) {
                for answer in [process.tier1.pages(&[url(page).id()]).err(), process.tier1.totals().err()] {
                    let is_transient = matches!(answer, None | Some(Tier1Error::Unavailable(_)));
                    assert!(is_transient, "{answer:?}");
                }
                drop(process.tier1.known_advice(&url(page)));
                thread::yield_now();
            }
        });
        for _ in 0..30 {
            thread::sleep(Duration::from_millis(10));
            process.tier1.end_range(MOVING);
            process.begin(MOVING);
        }
        is_over.store(true, Ordering::Relaxed);
        submitters.into_iter().flat_map(|submitter| submitter.join().unwrap()).collect::<Vec<u64>>()
    });
    assert!(kept.iter().any(|page| process.is_moving(*page)), "{} pages", kept.len());
    assert!(process.tier1.flush(PATIENCE).unwrap());
    for page in kept {
        let view = process.tier1.pages(&[url(page).id()]).unwrap().remove(0);
        assert!(view.is_some_and(|view| view.line.status != Status::Pending), "{page}");
    }
    process.tier1.stop();
}

#[test]
fn a_request_of_the_index_to_an_ending_owner_has_no_effect() {
    let dir = tempfile::tempdir().unwrap();
    let tier1 = Tier1::open_none(&config(Retention::DEFAULT, 3), Arc::new(NoOwners)).unwrap();
    let database = Arc::new(Database::open(dir.path(), false).unwrap());
    let lease = Arc::new(CountedLease(AtomicU64::new(u64::MAX)));
    let opened = OpenedRange {
        database: Some(Arc::clone(&database)),
        lease: Some(Arc::clone(&lease) as Arc<dyn Lease>),
        ..OpenedRange::over(Arc::clone(&database) as Arc<dyn Store>, None)
    };
    let range = tier1.open_range(MOVING, &opened).unwrap();
    tier1.begin_range(opened, range).unwrap();
    let keep = |after| range_owner::RangeOwner::keep_log(&*tier1, MOVING, after);
    for before in [Some(3), None] {
        lease.0.store(u64::MAX, Ordering::Relaxed);
        keep(before).unwrap();
        assert_eq!(database.kept_log_after(LogConsumer::Index), before);
        lease.0.store(1, Ordering::Relaxed);
        assert_eq!(keep(Some(4)), Err(PeerError::NotOwner(MOVING)));
        assert_eq!(database.kept_log_after(LogConsumer::Index), before);
    }
    // A later request of the index keeps its effect.
    let ended = database.keep_log_if(LogConsumer::Index, Some(4), || {
        database.keep_log(LogConsumer::Index, Some(5));
        Err(())
    });
    assert_eq!((ended, database.kept_log_after(LogConsumer::Index)), (Err(()), Some(5)));
    tier1.stop();
}
