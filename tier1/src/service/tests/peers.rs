//! Ranges that do not answer: messages are sent again until they are confirmed, no message is applied twice,
//! and failed reads are repeated later.

use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Instant;

use crossbeam::channel::bounded;
use doppel_model::RangeId;
use doppel_protocol::SignatureSource as _;

use super::*;
use crate::peers::{PeerError, Peers, Post, PostAnswer};
use doppel_protocol::range_owner::EncodedRow;

/// Peers that lose some posts and some answers, or do not answer reads.
struct UnreliablePeers {
    peers: Arc<dyn Peers>,
    loses: bool,
    posts: AtomicUsize,
    /// Most rows of an answer.
    rows: usize,
    /// Number of reads by key.
    reads: AtomicUsize,
    /// Reads fail while this is set.
    is_down: AtomicBool,
}

impl UnreliablePeers {
    fn new(peers: Arc<dyn Peers>, loses: bool, rows: usize) -> Arc<Self> {
        let (posts, reads, is_down) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicBool::new(false));
        Arc::new(Self { peers, loses, posts, rows, reads, is_down })
    }

    fn check(&self, range: RangeId) -> Result<(), PeerError> {
        if self.is_down.load(Ordering::Relaxed) {
            Err(PeerError::unreachable(range, "it is down"))
        } else {
            Ok(())
        }
    }
}

impl Peers for UnreliablePeers {
    fn post(&self, post: Post) -> Result<PostAnswer, PeerError> {
        match self.posts.fetch_add(1, Ordering::Relaxed) % 4 {
            0 if self.loses => Err(PeerError::unreachable(post.to, "it is lost")),
            // The post arrives and is applied, and its answer is lost.
            1 if self.loses => {
                drop(self.peers.post(post)?);
                Ok(bounded(1).1)
            }
            _ => self.peers.post(post),
        }
    }

    fn rows(&self, range: RangeId, keys: &[Vec<u8>]) -> Result<Vec<Option<Vec<u8>>>, PeerError> {
        self.check(range)?;
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.peers.rows(range, &keys[..keys.len().min(self.rows)])
    }

    fn scan(
        &self,
        range: RangeId,
        from: &[u8],
        to: &[u8],
        limit: usize,
    ) -> Result<Vec<EncodedRow>, PeerError> {
        self.check(range)?;
        self.peers.scan(range, from, to, limit.min(self.rows))
    }
}

/// Starts three ranges with such peers between them.
fn start_between(loses: bool, rows: usize) -> (Arc<Tier1>, Arc<UnreliablePeers>) {
    let store = Arc::new(Memory::default());
    let stores = (0..3).map(|_| Arc::clone(&store) as Arc<dyn Store>).collect();
    let mut peers = None;
    let between = |direct| {
        let unreliable = UnreliablePeers::new(direct, loses, rows);
        peers = Some(Arc::clone(&unreliable));
        unreliable as Arc<dyn Peers>
    };
    let tier1 = Tier1::over_stores(stores, &config(Retention::DEFAULT, 3), between).unwrap();
    let tier2 = Arc::new(LinkingIndex::naming(usize::MAX));
    assert!(tier2.answer.set(Arc::clone(&tier1) as Arc<dyn ContentSource>).is_ok());
    tier1.start(tier2 as Arc<dyn IndexOrders>).unwrap();
    (tier1, peers.unwrap())
}

#[test]
fn lost_messages_are_sent_again_and_short_answers_are_continued() {
    let (tier1, _) = start_between(true, 1);
    for page in 0..12 {
        submit(&tier1, page, 1, content(page));
    }
    for page in 20..30 {
        submit(&tier1, page, 1, Body::Redirect(url(page % 12)));
    }
    assert!(tier1.flush(PATIENCE).unwrap());
    let pages: Vec<PageId> = (0..12).chain(20..30).map(|page| url(page).id()).collect();
    let views = tier1.pages(&pages).unwrap();
    let groups: std::collections::HashSet<_> = views.iter().flatten().map(|view| view.line.group).collect();
    assert_eq!((views.iter().flatten().count(), groups.len()), (22, 1), "{groups:?}");
    let group = groups.into_iter().next().flatten().unwrap();
    let view = tier1.group(group, None, 100, true).unwrap().unwrap();
    assert_eq!((view.summary.members, view.members.len()), (12, 22));
    assert_eq!(tier1.totals().unwrap().counters.submissions, 22);
    tier1.stop();
}

#[test]
fn a_flush_waits_for_a_range_that_does_not_answer() {
    let (tier1, peers) = start_between(false, usize::MAX);
    for page in 0..4 {
        submit(&tier1, page, 1, content(page));
    }
    assert!(tier1.flush(PATIENCE).unwrap());
    peers.is_down.store(true, Ordering::Relaxed);
    // The other pages now owe a recomputation.
    submit(&tier1, 0, 2, Body::Dead);
    let is_transient = |refused| matches!(refused, Tier1Error::Unavailable(_));
    assert!(is_transient(tier1.flush(Duration::from_secs(2)).unwrap_err()));
    assert!(is_transient(tier1.pages(&[url(1).id()]).unwrap_err()));
    // The update is accepted without a comparison with its representative.
    assert_eq!(submit(&tier1, 1, 2, content(9)), SubmissionOutcome::Pending);
    // A flush waits for a range that is away, and does not fail because of it.
    thread::scope(|scope| {
        let flush = scope.spawn(|| tier1.flush(PATIENCE));
        thread::sleep(Duration::from_millis(200));
        assert!(!flush.is_finished(), "{:?}", flush.join());
        peers.is_down.store(false, Ordering::Relaxed);
        assert!(flush.join().unwrap().unwrap());
    });
    let views = tier1.pages(&[1, 2, 3].map(|page| url(page).id())).unwrap();
    let groups: std::collections::HashSet<_> = views.iter().flatten().map(|view| view.line.group).collect();
    assert_eq!((views.iter().flatten().count(), groups.len()), (3, 1), "{groups:?}");
    tier1.stop();
}

#[test]
fn signatures_are_read_many_at_once() {
    let (tier1, peers) = start_between(false, usize::MAX);
    for page in 0..60 {
        submit(&tier1, page, 1, content(page));
    }
    assert!(tier1.flush(PATIENCE).unwrap());
    let pages: Vec<PageId> = (0..61).map(|page| url(page).id()).collect();
    let read = || {
        let before = peers.reads.load(Ordering::Relaxed);
        let signatures = tier1.signatures(&pages).unwrap();
        (peers.reads.load(Ordering::Relaxed) - before, signatures)
    };
    // Background work reads, too, for a while.
    let begin = Instant::now();
    let (reads, signatures) = loop {
        let (reads, signatures) = read();
        if reads <= 3 || begin.elapsed() > PATIENCE {
            break (reads, signatures);
        }
        thread::sleep(Duration::from_millis(5));
    };
    assert_eq!(reads, 3, "one read for each range");
    for (page, signature) in signatures.iter().enumerate() {
        let Body::Content(expected) = content(page as u64) else { panic!("a content") };
        assert_eq!(signature.as_ref().map(|s| s.content()), (page < 60).then(|| expected.content()));
    }
    tier1.stop();
}

#[test]
fn a_flush_ends_at_its_limit_although_no_range_answers() {
    let store = Arc::new(Memory::default());
    // No thread runs before the start.
    let tier1 =
        Tier1::open_over_stores(vec![store as Arc<dyn Store>], &config(Retention::DEFAULT, 1)).unwrap();
    assert!(!tier1.flush(Duration::ZERO).unwrap());
}

#[test]
fn the_signature_of_a_winner_is_read_once_for_all_members() {
    // Background work reads, too, for a while. The least number of reads is what the updates need.
    let begin = Instant::now();
    let mut least = [usize::MAX; 2];
    while least != [3 + 1, 3] {
        assert!(begin.elapsed() < PATIENCE, "records of three ranges, and the winner once: {least:?}");
        let reads = reads_of_two_updates();
        least = [least[0].min(reads[0]), least[1].min(reads[1])];
    }
}

/// Numbers of reads for the hints of two successive updates of all members of a group.
fn reads_of_two_updates() -> [usize; 2] {
    let (tier1, peers) = start_between(false, usize::MAX);
    for page in 0..12 {
        submit(&tier1, page, 1, content(page));
    }
    assert!(tier1.flush(PATIENCE).unwrap());
    let update = |page: u64, at: i64, of: u64| Submission {
        url: url(page),
        fetched_at: Timestamp::from_millis(at),
        popularity: None,
        language: None,
        canonical: None,
        body: content(of),
    };
    let reads = |submissions: &[Submission]| {
        let before = peers.reads.load(Ordering::Relaxed);
        let hints = tier1.submissions.hints(submissions);
        assert!(hints.iter().all(|hint| hint.as_ref().is_some_and(|hint| hint.with.similar)));
        peers.reads.load(Ordering::Relaxed) - before
    };
    let members: Vec<u64> = (0..12)
        .filter(|page| {
            tier1.pages(&[url(*page).id()]).unwrap()[0].as_ref().unwrap().line.status != Status::Winner
        })
        .collect();
    assert_eq!(members.len(), 11);
    let updates = |round: u64| -> Vec<Submission> {
        members.iter().enumerate().map(|(turn, page)| update(*page, 2, round * 100 + turn as u64)).collect()
    };
    let read = [reads(&updates(1)), reads(&updates(2))];
    tier1.stop();
    read
}
