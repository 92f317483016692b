//! Reads between ranges that fail now and then, or for a while, and answers that are too short.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use doppel_model::{Random, RangeId};

use crate::peers::{PeerError, Peers, Post, PostAnswer};
use doppel_protocol::range_owner::EncodedRow;

/// The ranges of a cluster with faults in reads. Posts pass through unchanged.
pub(super) struct FaultyReads {
    peers: Arc<dyn Peers>,
    faults: Mutex<ReadFaults>,
}

#[derive(Debug)]
struct ReadFaults {
    /// One of `one_in` reads fails, and one of `one_in` answers is short. With 0, no read fails.
    one_in: u64,
    random: Random,
    /// Ranges without an owner that answers.
    away: BTreeSet<RangeId>,
}

/// Outcome of a read.
enum ReadOutcome {
    /// The read is answered completely.
    Complete,
    /// The answer has at most one row.
    Short,
    /// The read fails.
    Lost,
}

impl FaultyReads {
    pub(super) fn new(peers: Arc<dyn Peers>) -> Self {
        Self {
            peers,
            faults: Mutex::new(ReadFaults { one_in: 0, random: Random::new(0), away: BTreeSet::new() }),
        }
    }

    /// Makes one of `one_in` reads fail, and one of `one_in` answers short; none with 0.
    pub(super) fn fail(&self, one_in: u64, seed: u64) {
        let mut faults = self.lock();
        (faults.one_in, faults.random) = (one_in, Random::new(seed));
    }

    /// Sets whether all reads of a range fail.
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

    fn lock(&self) -> MutexGuard<'_, ReadFaults> {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn draw_outcome(&self, range: RangeId) -> ReadOutcome {
        let ReadFaults { one_in, random, away } = &mut *self.lock();
        match one_in {
            _ if away.contains(&range) => ReadOutcome::Lost,
            0 => ReadOutcome::Complete,
            one_in => match random.below(*one_in) {
                0 => ReadOutcome::Lost,
                1 => ReadOutcome::Short,
                _ => ReadOutcome::Complete,
            },
        }
    }
}

impl Peers for FaultyReads {
    fn post(&self, post: Post) -> Result<PostAnswer, PeerError> {
        self.peers.post(post)
    }

    fn rows(&self, range: RangeId, keys: &[Vec<u8>]) -> Result<Vec<Option<Vec<u8>>>, PeerError> {
        match self.draw_outcome(range) {
            ReadOutcome::Complete => self.peers.rows(range, keys),
            ReadOutcome::Short => self.peers.rows(range, &keys[..keys.len().min(1)]),
            ReadOutcome::Lost => Err(PeerError::unreachable(range, "the read is lost")),
        }
    }

    fn scan(
        &self,
        range: RangeId,
        from: &[u8],
        to: &[u8],
        limit: usize,
    ) -> Result<Vec<EncodedRow>, PeerError> {
        match self.draw_outcome(range) {
            ReadOutcome::Complete => self.peers.scan(range, from, to, limit),
            ReadOutcome::Short => self.peers.scan(range, from, to, limit.min(1)),
            ReadOutcome::Lost => Err(PeerError::unreachable(range, "the read is lost")),
        }
    }
}
