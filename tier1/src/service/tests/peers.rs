//! Ranges that do not answer: messages go again until they are confirmed, and nothing is applied twice.

use crossbeam::channel::bounded;
use doppel_model::RangeId;

use super::*;
use crate::peers::{PeerError, Peers, Post, PostAnswer};
use crate::txn::Row;

/// Peers of which some posts are lost on the way, and some answers.
struct Unreliable {
    peers: Arc<dyn Peers>,
    posts: AtomicUsize,
}

impl Peers for Unreliable {
    fn post(&self, post: Post) -> Result<PostAnswer, PeerError> {
        match self.posts.fetch_add(1, Ordering::Relaxed) % 4 {
            0 => Err(PeerError::Unreachable(post.to)),
            // It arrives and is applied, and nobody hears of it.
            1 => {
                drop(self.peers.post(post)?);
                Ok(bounded(1).1)
            }
            _ => self.peers.post(post),
        }
    }

    fn rows(&self, range: RangeId, keys: &[Vec<u8>]) -> Result<Vec<Option<Vec<u8>>>, PeerError> {
        // An answer may have no more than one row.
        self.peers.rows(range, keys.get(..1).unwrap_or_default())
    }

    fn scan(&self, range: RangeId, from: &[u8], to: &[u8], limit: usize) -> Result<Vec<Row>, PeerError> {
        self.peers.scan(range, from, to, limit.min(1))
    }
}

#[test]
fn messages_go_again_until_they_are_confirmed_and_short_answers_are_read_on() {
    let store = Arc::new(Memory::default());
    let config = config(Retention::DEFAULT, 3);
    let stores = (0..3).map(|_| Arc::clone(&store) as Arc<dyn Store>).collect();
    let between = |peers| Arc::new(Unreliable { peers, posts: AtomicUsize::new(0) }) as Arc<dyn Peers>;
    let tier1 = Tier1::over_stores(stores, &config, between).unwrap();
    let tier2 = Arc::new(Everybody::naming(usize::MAX));
    assert!(tier2.answer.set(Arc::clone(&tier1) as Arc<dyn ContentSource>).is_ok());
    tier1.start(Arc::clone(&tier2) as Arc<dyn Tier2Api>).unwrap();
    for page in 0..12 {
        submit(&tier1, page, 1, content(page));
    }
    for page in 20..30 {
        submit(&tier1, page, 1, Body::Redirect(url(page % 12)));
    }
    assert!(tier1.flush(PATIENCE * 3).unwrap());
    let pages: Vec<PageId> = (0..12).chain(20..30).map(|page| url(page).id()).collect();
    let views = tier1.pages(&pages).unwrap();
    let groups: std::collections::HashSet<_> = views.iter().flatten().map(|view| view.line.group).collect();
    assert_eq!((views.iter().flatten().count(), groups.len()), (22, 1), "{groups:?}");
    let group = groups.into_iter().next().flatten().unwrap();
    let view = tier1.group(group, None, 100, true).unwrap().unwrap();
    assert_eq!((view.summary.members, view.members.len()), (12, 22));
    assert_eq!(tier1.counters().submissions, 22);
    tier1.stop();
}
