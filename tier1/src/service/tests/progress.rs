//! The mark that says how far a collection has come, as the store sees it.

use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use doppel_model::ShardId;

use super::*;
use crate::rows::record::Meta;
use crate::rows::txn::read;
use crate::storage::progress;
use crate::storage::store::{Intercept, Intercepted, StoreError, Write};

/// Reads the mark inside each commit, before a row of the commit is written.
struct MarkWatch {
    dir: PathBuf,
    commits: AtomicUsize,
    /// Number of the commit that fails.
    fails_at: usize,
    /// Number of commits that saw a mark.
    marked: AtomicUsize,
    /// Commits at which the mark was ahead of the rows.
    ahead: Mutex<Vec<usize>>,
}

type WatchedStore = Intercepted<MarkWatch>;

impl MarkWatch {
    fn store(dir: PathBuf, fails_at: usize) -> WatchedStore {
        let (commits, marked) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Intercepted::new(Self { dir, commits, fails_at, marked, ahead: Mutex::default() })
    }

    /// Verifies the mark as a start from these rows would.
    fn verify(&self, rows: &Memory) -> Result<(), StoreError> {
        let metas: Vec<Meta> =
            (0..3).filter_map(|shard| read(rows, &key::meta(ShardId(shard))).unwrap()).collect();
        progress::verify(&self.dir, progress::of(&metas))
    }
}

impl Intercept for MarkWatch {
    fn commit(&self, rows: &Memory, writes: Vec<Write>) -> Result<(), StoreError> {
        let number = self.commits.fetch_add(1, Ordering::Relaxed) + 1;
        self.marked.fetch_add(usize::from(self.dir.join("progress").exists()), Ordering::Relaxed);
        if self.verify(rows).is_err() {
            self.ahead.lock().unwrap().push(number);
        }
        if number == self.fails_at {
            return Err(StoreError::Engine("it fails".to_owned()));
        }
        rows.commit(writes)
    }
}

fn start_watched(store: &Arc<WatchedStore>) -> Arc<Tier1> {
    let config = config(Retention::DEFAULT, 1);
    let tier1 =
        Tier1::over_noting(Arc::clone(store) as Arc<dyn Store>, store.by.dir.clone(), &config).unwrap();
    let tier2 = Arc::new(LinkingIndex::naming(usize::MAX));
    assert!(tier2.answer.set(Arc::clone(&tier1) as Arc<dyn ContentSource>).is_ok());
    tier1.start(tier2 as Arc<dyn IndexOrders>).unwrap();
    tier1
}

#[test]
fn progress_is_never_ahead_of_the_store() {
    let dir = tempfile::tempdir().unwrap();
    let store = Arc::new(MarkWatch::store(dir.path().to_owned(), usize::MAX));
    let tier1 = start_watched(&store);
    for page in 0..20 {
        submit(&tier1, page, 1, content(page));
    }
    assert!(tier1.flush(PATIENCE).unwrap());
    tier1.stop();
    assert_eq!(*store.by.ahead.lock().unwrap(), [0_usize; 0], "commits that saw a mark ahead of the rows");
    assert!(store.by.marked.load(Ordering::Relaxed) > 0, "no commit saw a mark");
    store.by.verify(&store.rows).unwrap();
}

/// The rows of a failed commit may be lost, although the shards in memory have them.
#[test]
fn a_failed_commit_leaves_no_mark() {
    for fails_at in [1, 2, 5] {
        let dir = tempfile::tempdir().unwrap();
        let store = Arc::new(MarkWatch::store(dir.path().to_owned(), fails_at));
        let tier1 = start_watched(&store);
        let submission = |page| Submission {
            url: url(page),
            fetched_at: Timestamp::from_millis(1),
            popularity: None,
            language: None,
            canonical: None,
            body: content(page),
        };
        let refused = (0..1_000).find_map(|page| tier1.submit(vec![submission(page)]).err());
        assert!(refused.is_some(), "the store did not fail");
        tier1.stop();
        assert_eq!(store.by.commits.load(Ordering::Relaxed), fails_at, "commits after the one that failed");
        assert_eq!(*store.by.ahead.lock().unwrap(), [0_usize; 0]);
        store.by.verify(&store.rows).unwrap();
    }
}
