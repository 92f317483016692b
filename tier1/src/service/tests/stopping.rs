//! The end of the service and its threads.

use std::thread;

use crossbeam::channel::{Receiver, Sender, unbounded};
use doppel_model::ClientId;

use super::*;
use crate::service::submissions::arrivals::Arriving;
use crate::storage::store::{Intercept, Intercepted, StoreError, Write};

/// Reports when a commit begins, and asks whether to make it.
struct CommitGate {
    begun: Sender<()>,
    is_made: Receiver<bool>,
}

impl Intercept for CommitGate {
    fn commit(&self, rows: &Memory, writes: Vec<Write>) -> Result<(), StoreError> {
        self.begun.send(()).unwrap();
        if self.is_made.recv().unwrap() { rows.commit(writes) } else { Err(StoreError::DiskFull) }
    }
}

#[test]
fn a_stop_ends_although_the_last_commit_fails() {
    let ((begun, begins), (make, is_made)) = (unbounded(), unbounded());
    let store = Arc::new(Intercepted::new(CommitGate { begun, is_made }));
    let (tier1, _) = start_with(&store, &config(Retention::DEFAULT, 1), usize::MAX);
    let submit = |page| {
        let body = Body::Redirect(url(9));
        let at = Timestamp::from_millis(1);
        let (popularity, language, canonical) = (None, None, None);
        let submission = Submission { url: url(page), fetched_at: at, popularity, language, canonical, body };
        let arriving = Arriving::count(&Arc::default(), ClientId::NONE, 0).0;
        tier1.answering_owner(RangeId(0)).unwrap().submit(vec![(submission, None)], arriving).unwrap()
    };
    let first = submit(1);
    begins.recv_timeout(PATIENCE).unwrap();
    // Both wait while the first commit is made, so the writer takes them together.
    let second = submit(2);
    let (stopped, ends) = unbounded();
    let stopping = Arc::clone(&tier1);
    let thread = thread::spawn(move || {
        stopping.stop();
        stopped.send(()).unwrap();
    });
    thread::sleep(Duration::from_millis(200));
    make.send(true).unwrap();
    begins.recv_timeout(PATIENCE).unwrap();
    make.send(false).unwrap();
    assert!(first.wait().flatten().is_ok());
    assert!(matches!(second.wait().flatten().unwrap_err(), Tier1Error::DiskFull(_)));
    ends.recv_timeout(PATIENCE).expect("the writer ends after one stop");
    thread.join().unwrap();
}

/// Where a commit reports that it begins, and waits until it may go on.
type NextCommit = (Sender<()>, Receiver<()>);

/// Counts commits, and makes the next one wait on request.
#[derive(Default)]
struct CountingCommits {
    commits: Arc<AtomicUsize>,
    waits: Arc<Mutex<Option<NextCommit>>>,
}

impl Intercept for CountingCommits {
    fn commit(&self, rows: &Memory, writes: Vec<Write>) -> Result<(), StoreError> {
        if let Some((begun, goes_on)) = self.waits.lock().unwrap().take() {
            begun.send(()).unwrap();
            goes_on.recv().unwrap();
        }
        self.commits.fetch_add(1, Ordering::Relaxed);
        rows.commit(writes)
    }
}

#[test]
fn a_stop_leaves_messages_under_way_to_the_next_start() {
    const REDIRECTS: u64 = 20_000;
    let (commits, waits) = (Arc::<AtomicUsize>::default(), Arc::default());
    let counting = CountingCommits { commits: Arc::clone(&commits), waits: Arc::clone(&waits) };
    let store = Arc::new(Intercepted::new(counting));
    let (tier1, _) = start_with(&store, &config(Retention::DEFAULT, 1), 0);
    let redirect = |page| version(page, 1, Body::Redirect(url(0)));
    for first in (1..=REDIRECTS).step_by(1_000) {
        tier1.submit((first..first + 1_000).map(redirect).collect()).unwrap();
    }
    assert!(tier1.flush(PATIENCE).unwrap());
    let ((begun, begins), (go_on, goes_on)) = (unbounded(), unbounded());
    *waits.lock().unwrap() = Some((begun, goes_on));
    let target = Arc::clone(&tier1);
    let submitted = thread::spawn(move || target.submit(vec![submission(0)]));
    begins.recv_timeout(PATIENCE).unwrap();
    let before = commits.load(Ordering::Relaxed);
    let stopping = Arc::clone(&tier1);
    let stopped = thread::spawn(move || stopping.stop());
    thread::sleep(Duration::from_millis(100));
    go_on.send(()).unwrap();
    stopped.join().unwrap();
    assert_eq!(submitted.join().unwrap(), Ok(vec![SubmissionOutcome::Pending]));
    let made = commits.load(Ordering::Relaxed) - before;
    assert!(made <= 3, "{made} commits were made at the end, some for messages that no caller waits for");
    drop(tier1);
    let (tier1, _) = start_with(&store, &config(Retention::DEFAULT, 1), 0);
    assert!(tier1.flush(PATIENCE).unwrap());
    let last = tier1.pages(&[url(REDIRECTS).id()]).unwrap().remove(0).unwrap();
    assert_eq!(last.line.status, Status::Duplicate, "{last:?}");
    tier1.stop();
}
