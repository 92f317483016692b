//! Bounds of what waits for a writer that is stuck, whether or not its callers still wait.

use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Instant;

use crossbeam::channel::{Receiver, Sender, bounded, unbounded};
use doppel_model::ClientId;
use doppel_protocol::range_owner::{EncodedPost, PeerError, RangeOwner, Receipt};

use super::*;
use crate::lease::Lease;
use crate::service::ownership::owner::{OpenedRange, Owner};
use crate::service::submissions::arrivals::Arriving;
use crate::storage::store::{Intercept, Intercepted, StoreError, Write};

const RANGE: RangeId = RangeId(0);

/// A log that accepts nothing until it is told to.
struct FullLog {
    begun: Sender<()>,
    goes_on: Receiver<()>,
}

impl Intercept for FullLog {
    fn commit(&self, rows: &Memory, writes: Vec<Write>) -> Result<(), StoreError> {
        // A dropped channel is an answer, too.
        let _ = self.begun.send(());
        let _ = self.goes_on.recv();
        rows.commit(writes)
    }
}

/// A lease that reports waiting commits while this is set.
#[derive(Default)]
struct WaitingLease(AtomicBool);

impl Lease for WaitingLease {
    fn end(&self) {}

    fn check(&self) -> Result<(), PeerError> {
        Ok(())
    }

    fn check_commits(&self) -> Result<(), PeerError> {
        let waits = self.0.load(Ordering::Relaxed);
        if waits { Err(PeerError::unreachable(RANGE, "the stream is full")) } else { Ok(()) }
    }
}

/// A process of three ranges. The first range waits in its first commit.
struct Process {
    tier1: Arc<Tier1>,
    owner: Arc<Owner>,
    waits: Arc<WaitingLease>,
    goes_on: Sender<()>,
    first: u64,
}

impl Process {
    fn start(pending_max: u64) -> Self {
        let config = Config { pending_max, ..config(Retention::DEFAULT, 3) };
        let tier1 = Tier1::open_none(&config, Arc::new(ownership::NoOwners)).unwrap();
        let tier2 = Arc::new(LinkingIndex::naming(0));
        assert!(tier2.answer.set(Arc::clone(&tier1) as Arc<dyn ContentSource>).is_ok());
        tier1.start(tier2 as Arc<dyn IndexOrders>).unwrap();
        let ((begun, begins), (goes_on, receiver)) = (unbounded(), unbounded());
        let waits = Arc::new(WaitingLease::default());
        let rows = || Arc::new(Memory::default()) as Arc<dyn Store>;
        let full: Arc<dyn Store> = Arc::new(Intercepted::new(FullLog { begun, goes_on: receiver }));
        for (range, store) in (0..).map(RangeId).zip([full, rows(), rows()]) {
            let lease = (range == RANGE).then(|| Arc::clone(&waits) as Arc<dyn Lease>);
            let opened = OpenedRange { epoch: Some(Epoch(1)), lease, ..OpenedRange::over(store, None) };
            let range = tier1.open_range(range, &opened).unwrap();
            tier1.begin_range(opened, range).unwrap();
        }
        let owner = tier1.answering_owner(RANGE).unwrap();
        let this = Self { tier1, owner, waits, goes_on, first: 0 };
        let first = this.page(0);
        let this = Self { first, ..this };
        drop(this.begin(first));
        begins.recv_timeout(PATIENCE).unwrap();
        this
    }

    /// The first page from `from` on that belongs to the range.
    fn page(&self, from: u64) -> u64 {
        (from..).find(|page| self.tier1.collection.map.of_page(url(*page).id()) == RANGE).unwrap()
    }

    /// Submits a page as a caller does that goes away before the answer.
    fn begin(&self, page: u64) -> Result<(), Tier1Error> {
        let page = submission(page);
        let arriving = self.tier1.submissions.admit(ClientId::NONE, std::slice::from_ref(&page))?;
        self.owner.submit(vec![(page, None)], arriving).map(drop)
    }

    fn arriving(&self) -> u64 {
        self.tier1.submissions.arriving.all()
    }

    /// Sends a post of another range.
    fn post(&self, from: RangeId) -> Receiver<Result<Receipt, PeerError>> {
        let post = EncodedPost { from, to: RANGE, messages: Vec::new() };
        let (reply, answer) = bounded(1);
        RangeOwner::post(&*self.tier1, post, Box::new(move |answer| drop(reply.send(answer))));
        answer
    }

    /// Lets the commit go on. Later commits do not wait.
    fn go_on(&mut self) {
        self.goes_on = unbounded().0;
    }

    fn await_all_taken(&self) {
        let began = Instant::now();
        while self.arriving() > 0 {
            assert!(began.elapsed() < PATIENCE, "{} arrive", self.arriving());
            thread::sleep(Duration::from_millis(5));
        }
    }
}

#[test]
fn abandoned_submissions_count_until_they_are_committed() {
    let mut process = Process::start(10);
    let mut page = process.first;
    let refused = (1..=100).find_map(|number| {
        page = process.page(page + 1);
        Some((number, process.begin(page).err()?))
    });
    assert_eq!(refused, Some((10, Tier1Error::Full { pending: 10, limit: 10 })));
    assert_eq!(process.arriving(), 10);
    process.go_on();
    process.await_all_taken();
    process.tier1.stop();
}

#[test]
fn all_kinds_of_waiting_tasks_have_a_bound_in_bytes() {
    let mut process = Process::start(100_000);
    let tokens: Vec<u64> = (0..1_000_000).collect();
    let signature = Arc::new(Builder::new().build(&tokens));
    let size = signature.as_bytes().len();
    let submission = |page| {
        let body = Body::Content(Arc::clone(&signature));
        (Submission { body, ..version(page, 1, content(page)) }, None)
    };
    let begin = |page| {
        let arriving = Arriving::count(&process.tier1.submissions.arriving, ClientId::NONE, 1).0;
        process.owner.submit(vec![submission(page)], arriving).map(drop)
    };
    let taken = (0..1_000).take_while(|_| begin(process.first).is_ok()).count();
    // Three ranges share the memory of the process, and each has two queue spaces.
    assert!(taken > 0 && taken * size <= (512 << 20) / 6, "{taken} of {size} bytes");
    assert!(matches!(begin(process.first), Err(Tier1Error::Unavailable(_))));
    // Reports, results and the like have a queue space of their own.
    assert!(process.owner.deliver(Vec::new()).is_ok());
    process.go_on();
    process.await_all_taken();
    process.tier1.stop();
}

/// A thread is told once of a repeated request, until it takes note.
#[test]
fn a_repeated_hurry_is_told_once() {
    let tier1 = Tier1::open_none(&config(Retention::DEFAULT, 3), Arc::new(ownership::NoOwners)).unwrap();
    let opened =
        OpenedRange { epoch: Some(Epoch(1)), ..OpenedRange::over(Arc::new(Memory::default()), None) };
    let range = tier1.open_range(RANGE, &opened).unwrap();
    // The threads are not started, so nobody takes the tasks.
    tier1.begin_range(opened, range).unwrap();
    let owner = tier1.answering_owner(RANGE).unwrap();
    let hurry = |again| {
        (0..10).for_each(|_| RangeOwner::hurry(&*tier1, RANGE, again).unwrap());
        (owner.tasks.len(), owner.jobs.len())
    };
    assert_eq!(hurry(true), (1, 0), "nothing has failed");
    owner.failures.record(Tier1Error::Damaged("a row".to_owned()));
    assert_eq!(hurry(false), (1, 0));
    assert_eq!(hurry(true), (1, 1));
    owner.clear_hurry();
    assert_eq!(hurry(true), (2, 1));
    owner.clear_retry();
    assert_eq!(hurry(true), (2, 2));
    tier1.stop();
}

#[test]
fn at_most_one_post_of_each_range_waits() {
    let mut process = Process::start(100);
    let (first, other) = (process.post(RangeId(1)), process.post(RangeId(2)));
    for _ in 0..10 {
        let again = process.post(RangeId(1)).recv_timeout(PATIENCE).unwrap();
        assert_eq!(again, Err(PeerError::Busy(RangeId(1))));
    }
    process.go_on();
    for answer in [first, other] {
        assert_eq!(answer.recv_timeout(PATIENCE).unwrap(), Ok(Receipt::default()));
    }
    for from in [RangeId(1), RangeId(2)] {
        assert_eq!(process.post(from).recv_timeout(PATIENCE).unwrap(), Ok(Receipt::default()));
    }
    process.tier1.stop();
}

#[test]
fn a_range_whose_commits_wait_refuses_pages_and_the_others_accept_theirs() {
    let mut process = Process::start(100);
    process.waits.0.store(true, Ordering::Relaxed);
    let other =
        (0..).find(|page| process.tier1.collection.map.of_page(url(*page).id()) == RangeId(1)).unwrap();
    let batch = |at: i64| {
        let pages = [process.first, other].map(submission);
        pages.map(|page| Submission { fetched_at: Timestamp::from_millis(at), ..page }).to_vec()
    };
    let began = Instant::now();
    let refused = Tier1Api::submit(&*process.tier1, batch(2)).unwrap_err();
    assert!(matches!(&refused, Tier1Error::Unavailable(why) if why.contains("full")), "{refused}");
    let recorded = process.tier1.pages(&[url(other).id()]).unwrap();
    assert_eq!(recorded[0].as_ref().unwrap().fetched_at, Timestamp::from_millis(2));
    let post = process.post(RangeId(1)).recv_timeout(PATIENCE).unwrap();
    assert!(matches!(post, Err(PeerError::Unreachable { .. })), "{post:?}");
    let repeat = RangeOwner::repeat(&*process.tier1, RANGE, Vec::new());
    assert!(matches!(repeat, Err(PeerError::Refused(Tier1Error::Unavailable(_)))), "{repeat:?}");
    assert!(began.elapsed() < PATIENCE && process.arriving() == 1);
    // An empty batch waits for nothing.
    assert_eq!(Tier1Api::submit(&*process.tier1, Vec::new()).unwrap(), Vec::new());
    let again = batch(3);
    process.waits.0.store(false, Ordering::Relaxed);
    process.go_on();
    assert_eq!(Tier1Api::submit(&*process.tier1, again).unwrap().len(), 2);
    process.tier1.stop();
}

#[test]
fn a_page_purged_while_pending_does_not_count_as_decided() {
    let store = Arc::new(Memory::default());
    let (tier1, tier2) = start_with(&store, &config(Retention::DEFAULT, 1), usize::MAX);
    tier2.refusals.store(usize::MAX, Ordering::Relaxed);
    let figures = || {
        let totals = tier1.totals().unwrap();
        (totals.backlog.pending, totals.decision_times.decided())
    };
    (1..4).for_each(|page| {
        assert_eq!(submit(&tier1, page, 1, content(page * 1_000)), SubmissionOutcome::Pending)
    });
    assert_eq!(figures(), (3, 0));
    Tier1Api::purge(&*tier1, &[url(1).id()]).unwrap();
    submit(&tier1, 2, 2, Body::Dead);
    assert_eq!(figures(), (1, 0));
    tier2.refusals.store(0, Ordering::Relaxed);
    assert!(tier1.flush(PATIENCE).unwrap());
    assert_eq!(figures(), (0, 1));
    tier1.stop();
}
