//! Reads between ranges that fail now and then or for a while, and answers that are short.

use std::collections::BTreeSet;
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
    /// Ranges that nobody answers for.
    away: BTreeSet<RangeId>,
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
        Self {
            peers,
            faults: Mutex::new(Faults { one_in: 0, random: Random::new(0), away: BTreeSet::new() }),
        }
    }

    pub(super) fn fail(&self, one_in: u64, seed: u64) {
        let mut faults = self.lock();
        (faults.one_in, faults.random) = (one_in, Random::new(seed));
    }

    /// Nobody answers for a range, or somebody does again.
    pub(super) fn set_away(&self, range: RangeId, is_away: bool) {
        let away = &mut self.lock().away;
        if is_away {
            away.insert(range)
        } else {
            away.remove(&range)
        };
    }

    /// Whether reads may fail at present.
    pub(super) fn may_fail(&self) -> bool {
        let faults = self.lock();
        faults.one_in > 0 || !faults.away.is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, Faults> {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fate(&self, range: RangeId) -> Fate {
        let Faults { one_in, random, away } = &mut *self.lock();
        match one_in {
            _ if away.contains(&range) => Fate::Lost,
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
        match self.fate(range) {
            Fate::Whole => self.peers.rows(range, keys),
            Fate::Short => self.peers.rows(range, &keys[..keys.len().min(1)]),
            Fate::Lost => Err(PeerError::unreachable(range, "the read is lost")),
        }
    }

    fn scan(&self, range: RangeId, from: &[u8], to: &[u8], limit: usize) -> Result<Vec<Row>, PeerError> {
        match self.fate(range) {
            Fate::Whole => self.peers.scan(range, from, to, limit),
            Fate::Short => self.peers.scan(range, from, to, limit.min(1)),
            Fate::Lost => Err(PeerError::unreachable(range, "the read is lost")),
        }
    }
}
