//! Reads between ranges that fail now and then, and answers that are short.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use doppel_model::{Random, RangeId};

use crate::peers::{PeerError, Peers, Post, PostAnswer};
use crate::txn::Row;

/// The ranges of a cluster, to read. Nothing is posted here.
pub(super) struct FaultyReads {
    peers: Arc<dyn Peers>,
    faults: Mutex<Faults>,
}

#[derive(Debug)]
struct Faults {
    /// One in so many reads fails, and as many answers are short; 0 for none.
    one_in: u64,
    random: Random,
}

/// What becomes of a read.
enum Fate {
    Whole,
    /// The answer has one row.
    Short,
    Lost,
}

impl FaultyReads {
    pub(super) fn new(peers: Arc<dyn Peers>) -> Self {
        Self { peers, faults: Mutex::new(Faults { one_in: 0, random: Random::new(0) }) }
    }

    pub(super) fn fail(&self, one_in: u64, seed: u64) {
        *self.lock() = Faults { one_in, random: Random::new(seed) };
    }

    /// Whether reads may fail at present.
    pub(super) fn may_fail(&self) -> bool {
        self.lock().one_in > 0
    }

    fn lock(&self) -> MutexGuard<'_, Faults> {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fate(&self) -> Fate {
        let Faults { one_in, random } = &mut *self.lock();
        match one_in {
            0 => Fate::Whole,
            one_in => match random.below(*one_in) {
                0 => Fate::Lost,
                1 => Fate::Short,
                _ => Fate::Whole,
            },
        }
    }
}

impl Peers for FaultyReads {
    fn post(&self, post: Post) -> Result<PostAnswer, PeerError> {
        self.peers.post(post)
    }

    fn rows(&self, range: RangeId, keys: &[Vec<u8>]) -> Result<Vec<Option<Vec<u8>>>, PeerError> {
        match self.fate() {
            Fate::Whole => self.peers.rows(range, keys),
            Fate::Short => self.peers.rows(range, &keys[..keys.len().min(1)]),
            Fate::Lost => Err(PeerError::unreachable(range, "the read is lost")),
        }
    }

    fn scan(&self, range: RangeId, from: &[u8], to: &[u8], limit: usize) -> Result<Vec<Row>, PeerError> {
        match self.fate() {
            Fate::Whole => self.peers.scan(range, from, to, limit),
            Fate::Short => self.peers.scan(range, from, to, limit.min(1)),
            Fate::Lost => Err(PeerError::unreachable(range, "the read is lost")),
        }
    }
}
