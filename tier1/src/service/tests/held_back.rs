//! A range whose messages do not leave: submissions wait, and results of tier 2 do not.

use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Instant;

use doppel_model::ClientId;
use doppel_protocol::Repeat;

use super::*;
use crate::peers::{PeerError, Peers, Post, PostAnswer};
use crate::range::UNFINISHED_MAX;
use crate::service::submissions::arrivals::Arriving;
use doppel_protocol::range_owner::EncodedRow;

/// Peers that refuse all posts while `is_silent` is set.
struct SilentPeers {
    peers: Arc<dyn Peers>,
    is_silent: AtomicBool,
}

impl Peers for SilentPeers {
    fn post(&self, post: Post) -> Result<PostAnswer, PeerError> {
        if self.is_silent.load(Ordering::Relaxed) {
            return Err(PeerError::unreachable(post.to, "it is silent"));
        }
        self.peers.post(post)
    }

    fn rows(&self, range: RangeId, keys: &[Vec<u8>]) -> Result<Vec<Option<Vec<u8>>>, PeerError> {
        self.peers.rows(range, keys)
    }

    fn scan(
        &self,
        range: RangeId,
        from: &[u8],
        to: &[u8],
        limit: usize,
    ) -> Result<Vec<EncodedRow>, PeerError> {
        self.peers.scan(range, from, to, limit)
    }
}

fn redirect(url: PageUrl, to: PageUrl) -> Submission {
    Submission {
        url,
        fetched_at: Timestamp::from_millis(1),
        popularity: None,
        language: None,
        canonical: None,
        body: Body::Redirect(to),
    }
}

#[test]
fn results_of_tier_2_are_applied_while_submissions_are_held_back() {
    let stores = (0..3).map(|_| Arc::new(Memory::default()) as Arc<dyn Store>).collect();
    let mut peers = None;
    let between = |direct| {
        let silent = Arc::new(SilentPeers { peers: direct, is_silent: AtomicBool::new(true) });
        peers = Some(Arc::clone(&silent));
        silent as Arc<dyn Peers>
    };
    let tier1 = Tier1::over_stores(stores, &config(Retention::DEFAULT, 3), between).unwrap();
    let tier2 = Arc::new(LinkingIndex::naming(usize::MAX));
    assert!(tier2.answer.set(Arc::clone(&tier1) as Arc<dyn ContentSource>).is_ok());
    tier1.start(tier2 as Arc<dyn IndexOrders>).unwrap();

    // Each redirect from a page of one range to a page of another sends two messages.
    let map = tier1.collection.map;
    let of = |range| (0..).map(url).filter(move |url| map.of_page(url.id()) == RangeId(range));
    let (mut from, to) = (of(0), of(1).next().unwrap());
    let mut batch = || -> Vec<_> { from.by_ref().take(1_000).map(|url| redirect(url, to.clone())).collect() };
    for _ in 0..UNFINISHED_MAX / 2 / 1_000 {
        tier1.submit(batch()).unwrap();
    }
    let owner = tier1.answering_owner(RangeId(0)).unwrap();
    let submissions = batch().into_iter().map(|submission| (submission, None)).collect();
    let held_back = owner.submit(submissions, Arriving::count(&Arc::default(), ClientId::NONE, 0).0).unwrap();
    let began = Instant::now();
    while owner.totals().1.messages <= UNFINISHED_MAX {
        assert!(began.elapsed() < PATIENCE, "{} messages", owner.totals().1.messages);
        thread::sleep(Duration::from_millis(5));
    }

    let (source, page) = (Arc::clone(&tier1), of(0).next().unwrap().id());
    let repeat = Repeat { number: 1, page, content: ContentHash([1; 16]) };
    let repeated = thread::spawn(move || source.repeat(RangeId(0), vec![repeat]));
    let deadline = Instant::now() + Duration::from_secs(60);
    while !repeated.is_finished() && Instant::now() < deadline {
        thread::sleep(Duration::from_millis(5));
    }
    let in_time = repeated.is_finished();

    peers.unwrap().is_silent.store(false, Ordering::Relaxed);
    repeated.join().unwrap().unwrap();
    assert!(in_time, "the results of tier 2 waited for messages to leave");
    assert_eq!(held_back.wait().flatten().unwrap().len(), 1_000);
    assert!(tier1.flush(PATIENCE).unwrap());
    tier1.stop();
}
