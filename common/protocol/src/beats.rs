//! Which node owns which range at present, derived from the beats of the tier-1 nodes. Each node sends a beat
//! several times per second, and any beat may be lost.
//!
//! This module does not decide who may write to a range; the log of the range does. [`ClusterMembership`] tells
//! a caller which node to ask, which nodes are silent, and how far each replica has copied the log.
//!
//! Invariant: the owner depends only on the last beat of each node and on the greatest epoch ever claimed.
//! The order in which beats of different nodes arrive does not matter. This requires that no two nodes claim
//! a range under the same epoch.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use doppel_model::{Epoch, RangeId};
use serde::{Deserialize, Serialize};

/// Maximum number of nodes that are tracked. Beats of further nodes are ignored.
pub const NODES_MAX: usize = 256;

/// Maximum number of claims in a beat. Further claims are ignored.
pub const CLAIMS_MAX: usize = 1_024;

/// Maximum length of a node's name in bytes; beats with a longer name are ignored. A replica's trouble is
/// truncated to this length.
pub const TEXT_BYTES_MAX: usize = 512;

/// Time without a beat after which a node counts as dead. Another node then takes over its ranges, and
/// questions about them go to replicas.
pub const DEAD_AFTER: Duration = Duration::from_millis(1_500);

/// Status that a tier-1 node sends to all other nodes about three times per second.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Beat {
    /// Name of the node.
    pub node: String,
    /// A number that identifies this run of the node's process.
    pub incarnation: u64,
    /// The ranges of which the node has a replica.
    pub ranges: Vec<RangeClaim>,
}

/// State of a node's replica of a range.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RangeClaim {
    /// Number of the range.
    pub range: RangeId,
    /// The newest epoch of the range that the node knows.
    pub epoch: Epoch,
    /// Whether the node owns the range under this epoch. Also true for an owner that was deposed and has not
    /// noticed.
    pub owns: bool,
    /// Number of records of the range's log that the node has copied.
    pub index: u64,
    /// Whether `index` is read from the node's files. Before the files are open, the node does not know its
    /// index.
    pub known: bool,
    /// Sequence number of the last copied record in the range's log, if the disk of the node has all records
    /// up to it. 0 if the node has copied no record, or cannot tell that its records belong to this log.
    pub sequence: u64,
    /// Sequence number in the log after which the node will continue to read.
    pub needs: u64,
    /// Why the replica does not follow the log or, on the owner, why its writes wait. `None` if nothing is
    /// wrong.
    pub trouble: Option<String>,
}

/// A replica of a range, as its node last reported it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportedReplica {
    /// The node that has the replica.
    pub node: String,
    /// State of the replica.
    pub claim: RangeClaim,
    /// Time since the node reported this state.
    pub age: Duration,
}

/// A node from which a beat has arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeardNode {
    /// Name of the node.
    pub node: String,
    /// Incarnation in the last beat; see [`Beat::incarnation`].
    pub incarnation: u64,
    /// Time since the last beat of the node.
    pub silence: Duration,
}

/// State of the cluster according to the beats so far. It has no clock: the caller passes the current time.
#[derive(Debug, Default)]
pub struct ClusterMembership(Mutex<MembershipState>);

#[derive(Debug, Default)]
struct MembershipState {
    nodes: BTreeMap<String, LastBeat>,
    ranges: BTreeMap<RangeId, NewestClaim>,
    /// Number of beats so far. It orders beats that arrive at the same instant.
    beats: u64,
}

/// The last beat of a node.
#[derive(Debug)]
struct LastBeat {
    incarnation: u64,
    claims: BTreeMap<RangeId, RangeClaim>,
    at: Instant,
    /// Value of [`MembershipState::beats`] when this beat arrived.
    beat: u64,
}

/// The greatest epoch under which any node ever claimed to own a range. It stays when the claim ends, so that
/// an earlier owner does not become the owner again.
#[derive(Debug)]
struct NewestClaim {
    epoch: Epoch,
    /// Time of the last claim under this epoch.
    at: Instant,
}

impl ClusterMembership {
    /// Creates a membership that has received no beat.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Records the beat of a node. It replaces the previous beat of the node, also if the node was restarted
    /// in between.
    pub fn take(&self, beat: Beat, now: Instant) {
        if beat.node.len() <= TEXT_BYTES_MAX {
            self.lock().take(beat, now);
        }
    }

    /// Returns the epoch and the owner of a range; `None` if no owner is known. The owner may be silent: see
    /// [`owner_silence`](Self::owner_silence).
    #[must_use]
    pub fn owner(&self, range: RangeId) -> Option<(Epoch, String)> {
        let state = self.lock();
        let epoch = state.ranges.get(&range)?.epoch;
        let owners = state.claims(range).filter(|(_, _, claim)| claim.owns && claim.epoch == epoch);
        let (name, ..) = owners.max_by_key(|(_, node, _)| node.beat)?;
        Some((epoch, name.to_owned()))
    }

    /// Returns the greatest epoch under which any node ever claimed to own the range.
    #[must_use]
    pub fn epoch(&self, range: RangeId) -> Option<Epoch> {
        Some(self.lock().ranges.get(&range)?.epoch)
    }

    /// Returns the owner of a range, unless beats of other nodes arrived long after its last beat. `own` is
    /// the name of the calling node, if the caller is one. Its own beats do not count as beats of others.
    /// Beats arrive through the log, so if no beats arrive at all, the state of the owner is unknown.
    #[must_use]
    pub fn present_owner(&self, range: RangeId, own: Option<&str>) -> Option<String> {
        let (_, owner) = self.owner(range)?;
        self.lock().is_present(&owner, own).then_some(owner)
    }

    /// Returns the nodes that may have a replica of a range as of its last owner, the most likely to answer
    /// first. Nodes that count as dead are left out: beats of other nodes arrived long after theirs.
    #[must_use]
    pub fn answering(&self, range: RangeId, own: Option<&str>) -> Vec<String> {
        let state = self.lock();
        let last = state.ranges.get(&range).map(|newest| newest.epoch);
        let knows = |claim: &RangeClaim| last.is_none_or(|last| claim.epoch >= last);
        let mut candidates: Vec<_> = state
            .claims(range)
            .filter(|(name, _, claim)| state.is_present(name, own) && knows(claim))
            .map(|(name, _, claim)| (claim.owns, claim.trouble.is_some(), u64::MAX - claim.index, name))
            .collect();
        candidates.sort_unstable();
        candidates.into_iter().map(|(.., name)| name.to_owned()).collect()
    }

    /// Returns the time since the last beat of a node; `None` if no beat ever arrived.
    #[must_use]
    pub fn silence(&self, node: &str, now: Instant) -> Option<Duration> {
        Some(now.saturating_duration_since(self.lock().nodes.get(node)?.at))
    }

    /// Returns the time since a node last claimed to own the range under the greatest epoch; `None` if no
    /// node ever did.
    #[must_use]
    pub fn owner_silence(&self, range: RangeId, now: Instant) -> Option<Duration> {
        Some(now.saturating_duration_since(self.lock().ranges.get(&range)?.at))
    }

    /// Returns the replicas of a range as their nodes last reported them, sorted by node name.
    #[must_use]
    pub fn replicas(&self, range: RangeId, now: Instant) -> Vec<ReportedReplica> {
        let replica = |(name, node, claim): (&str, &LastBeat, &RangeClaim)| ReportedReplica {
            node: name.to_owned(),
            claim: claim.clone(),
            age: now.saturating_duration_since(node.at),
        };
        self.lock().claims(range).map(replica).collect()
    }

    /// Returns all nodes from which a beat ever arrived, sorted by name.
    #[must_use]
    pub fn nodes(&self, now: Instant) -> Vec<HeardNode> {
        let heard_node = |(name, node): (&String, &LastBeat)| HeardNode {
            node: name.clone(),
            incarnation: node.incarnation,
            silence: now.saturating_duration_since(node.at),
        };
        self.lock().nodes.iter().map(heard_node).collect()
    }

    fn lock(&self) -> MutexGuard<'_, MembershipState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl MembershipState {
    fn take(&mut self, beat: Beat, now: Instant) {
        let Beat { node, incarnation, ranges } = beat;
        if self.nodes.len() >= NODES_MAX && !self.nodes.contains_key(&node) {
            return;
        }
        let mut claims = BTreeMap::new();
        for mut claim in ranges.into_iter().take(CLAIMS_MAX) {
            claim.trouble = claim.trouble.map(truncate_text);
            if claim.owns {
                self.record_claim(&claim, now);
            }
            claims.insert(claim.range, claim);
        }
        self.beats += 1;
        self.nodes.insert(node, LastBeat { incarnation, claims, at: now, beat: self.beats });
    }

    /// Whether a node counts as alive: no beat of another node came [`DEAD_AFTER`] or longer after its last
    /// beat.
    fn is_present(&self, name: &str, own: Option<&str>) -> bool {
        let others = self.nodes.iter().filter(|(other, _)| Some(&***other) != own);
        let newest = others.map(|(_, node)| node.at).max();
        let node = self.nodes.get(name).zip(newest);
        node.is_some_and(|(node, newest)| newest.saturating_duration_since(node.at) < DEAD_AFTER)
    }

    /// Records that a node claims to own a range.
    fn record_claim(&mut self, claim: &RangeClaim, now: Instant) {
        let newest = self.ranges.entry(claim.range).or_insert(NewestClaim { epoch: claim.epoch, at: now });
        if claim.epoch >= newest.epoch {
            *newest = NewestClaim { epoch: claim.epoch, at: now };
        }
    }

    /// Returns the last claims of all nodes about a range.
    fn claims(&self, range: RangeId) -> impl Iterator<Item = (&str, &LastBeat, &RangeClaim)> {
        self.nodes.iter().filter_map(move |(name, node)| Some((&**name, node, node.claims.get(&range)?)))
    }
}

/// Truncates a text to [`TEXT_BYTES_MAX`] bytes, at a character boundary.
fn truncate_text(mut text: String) -> String {
    let ends = text.char_indices().map(|(at, character)| at + character.len_utf8());
    let end = ends.take_while(|end| *end <= TEXT_BYTES_MAX).last().unwrap_or(0);
    text.truncate(end);
    text
}
