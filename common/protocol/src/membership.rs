//! Who owns which range at present, as the nodes of tier 1 say it themselves: in a beat that each of them sends often, and of
//! which any may be lost.
//!
//! Nothing here decides who may write: that is in the log of the range. This tells whom to ask, who is silent, and how far the
//! replicas are.
//!
//! Invariant: while no two nodes claim a range under one epoch, the owner depends on the last beat of each node and on the
//! greatest epoch that was ever claimed, not on the order in which the beats of different nodes came.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use doppel_model::{Epoch, RangeId};
use serde::{Deserialize, Serialize};

/// Nodes that are listened to. Beats of others are ignored.
pub const NODES_MAX: usize = 256;

/// Claims of a beat that are read. Those after them are ignored.
pub const CLAIMS_MAX: usize = 1_024;

/// The longest name of a node in bytes; beats with a longer one are ignored. What troubles a replica is cut to so many.
pub const TEXT_BYTES_MAX: usize = 512;

/// A node that nobody has heard of for so long is taken for dead: another takes its ranges over, and questions about them go to
/// their replicas.
pub const SILENCE: Duration = Duration::from_millis(1_500);

/// What a node of tier 1 tells all others, about three times a second.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Beat {
    /// Its name.
    pub node: String,
    /// A number that no other life of the node has.
    pub incarnation: u64,
    /// The ranges that it has a replica of.
    pub ranges: Vec<Claim>,
}

/// What a node has of a range.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// The range.
    pub range: RangeId,
    /// The epoch that the node knows the range to be in.
    pub epoch: Epoch,
    /// Whether the node owns the range under this epoch.
    pub owns: bool,
    /// How many records of the range's log it has copied.
    pub index: u64,
    /// Whether `index` is what its files say: before they are open a node does not know.
    pub known: bool,
    /// Where the last of them is in that log, as long as the node has them all on its disk; 0 where it has none, or does not
    /// know that they are those of the log.
    pub sequence: u64,
    /// Behind which place it will read the log.
    pub needs: u64,
    /// Why the replica does not follow the log; none when it does.
    pub trouble: Option<String>,
}

/// A replica of a range, as its node has last told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replica {
    /// The node that has it.
    pub node: String,
    /// See [`Claim::epoch`].
    pub epoch: Epoch,
    /// See [`Claim::owns`]. Also true of one that was deposed and has not noticed.
    pub owns: bool,
    /// See [`Claim::index`].
    pub index: u64,
    /// See [`Claim::known`].
    pub known: bool,
    /// See [`Claim::sequence`].
    pub sequence: u64,
    /// See [`Claim::needs`].
    pub needs: u64,
    /// See [`Claim::trouble`].
    pub trouble: Option<String>,
    /// The time since the node told this.
    pub age: Duration,
}

/// A node that was heard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeardNode {
    /// Its name.
    pub node: String,
    /// See [`Beat::incarnation`].
    pub incarnation: u64,
    /// The time since its last beat.
    pub silence: Duration,
}

/// What the beats so far have told. It has no clock: whoever gives it a beat or asks for a time says what time it is.
#[derive(Debug, Default)]
pub struct Membership(Mutex<Heard>);

#[derive(Debug, Default)]
struct Heard {
    nodes: BTreeMap<String, Node>,
    ranges: BTreeMap<RangeId, Owned>,
    /// The number of beats so far: two of them may come at the same instant.
    beats: u64,
}

/// The last beat of a node.
#[derive(Debug)]
struct Node {
    incarnation: u64,
    claims: BTreeMap<RangeId, Claim>,
    at: Instant,
    /// Its number.
    beat: u64,
}

/// The greatest epoch under which anybody ever claimed to own a range. It stays when that claim ends: the owner before
/// does not come back.
#[derive(Debug)]
struct Owned {
    epoch: Epoch,
    /// When that was last claimed.
    at: Instant,
}

impl Membership {
    /// Nothing was heard yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes note of a beat, which replaces the one before of the same node, also of an earlier life of it.
    pub fn take(&self, beat: Beat, now: Instant) {
        if beat.node.len() <= TEXT_BYTES_MAX {
            self.lock().take(beat, now);
        }
    }

    /// Who owns a range, and under which epoch; none when nobody is known to. The owner may be silent: see
    /// [`owner_silence`](Self::owner_silence).
    #[must_use]
    pub fn owner(&self, range: RangeId) -> Option<(Epoch, String)> {
        let heard = self.lock();
        let epoch = heard.ranges.get(&range)?.epoch;
        let owners = heard.claims(range).filter(|(_, _, claim)| claim.owns && claim.epoch == epoch);
        let (name, ..) = owners.max_by_key(|(_, node, _)| node.beat)?;
        Some((epoch, name.to_owned()))
    }

    /// The greatest epoch under which anybody ever claimed to own the range.
    #[must_use]
    pub fn epoch(&self, range: RangeId) -> Option<Epoch> {
        Some(self.lock().ranges.get(&range)?.epoch)
    }

    /// The owner of a range, unless others were heard long after it. `own` is the asker, if it is a node itself: what it says is no
    /// news to it. Beats come by way of the log, so where nobody is heard any more it is not known who is there.
    #[must_use]
    pub fn present_owner(&self, range: RangeId, own: Option<&str>) -> Option<String> {
        let (_, owner) = self.owner(range)?;
        self.lock().is_present(&owner, own).then_some(owner)
    }

    /// The nodes that may have a replica of a range as of its last owner, those first that are likely to answer for it. Those
    /// that others were heard long after are left out.
    #[must_use]
    pub fn answering(&self, range: RangeId, own: Option<&str>) -> Vec<String> {
        let heard = self.lock();
        let last = heard.ranges.get(&range).map(|owned| owned.epoch);
        let knows = |claim: &Claim| last.is_none_or(|last| claim.epoch >= last);
        let mut found: Vec<_> = heard
            .claims(range)
            .filter(|(name, _, claim)| heard.is_present(name, own) && knows(claim))
            .map(|(name, _, claim)| (claim.owns, claim.trouble.is_some(), u64::MAX - claim.index, name))
            .collect();
        found.sort_unstable();
        found.into_iter().map(|(.., name)| name.to_owned()).collect()
    }

    /// The time since the last beat of a node; none when it was never heard.
    #[must_use]
    pub fn silence(&self, node: &str, now: Instant) -> Option<Duration> {
        Some(now.saturating_duration_since(self.lock().nodes.get(node)?.at))
    }

    /// The time since somebody last claimed to own the range under the greatest epoch; none when nobody ever did.
    #[must_use]
    pub fn owner_silence(&self, range: RangeId, now: Instant) -> Option<Duration> {
        Some(now.saturating_duration_since(self.lock().ranges.get(&range)?.at))
    }

    /// The replicas of a range, by the names of their nodes, as these have last told.
    #[must_use]
    pub fn replicas(&self, range: RangeId, now: Instant) -> Vec<Replica> {
        let replica = |(name, node, claim): (&str, &Node, &Claim)| Replica {
            node: name.to_owned(),
            epoch: claim.epoch,
            owns: claim.owns,
            index: claim.index,
            known: claim.known,
            sequence: claim.sequence,
            needs: claim.needs,
            trouble: claim.trouble.clone(),
            age: now.saturating_duration_since(node.at),
        };
        self.lock().claims(range).map(replica).collect()
    }

    /// All nodes that were ever heard, by name.
    #[must_use]
    pub fn nodes(&self, now: Instant) -> Vec<HeardNode> {
        let heard = |(name, node): (&String, &Node)| HeardNode {
            node: name.clone(),
            incarnation: node.incarnation,
            silence: now.saturating_duration_since(node.at),
        };
        self.lock().nodes.iter().map(heard).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Heard> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Heard {
    fn take(&mut self, beat: Beat, now: Instant) {
        let Beat { node, incarnation, ranges } = beat;
        if self.nodes.len() >= NODES_MAX && !self.nodes.contains_key(&node) {
            return;
        }
        let mut claims = BTreeMap::new();
        for mut claim in ranges.into_iter().take(CLAIMS_MAX) {
            claim.trouble = claim.trouble.map(cut);
            if claim.owns {
                self.owned(&claim, now);
            }
            claims.insert(claim.range, claim);
        }
        self.beats += 1;
        self.nodes.insert(node, Node { incarnation, claims, at: now, beat: self.beats });
    }

    /// Whether nobody was heard so long after a node that it is taken for dead.
    fn is_present(&self, name: &str, own: Option<&str>) -> bool {
        let others = self.nodes.iter().filter(|(other, _)| Some(&***other) != own);
        let newest = others.map(|(_, node)| node.at).max();
        let node = self.nodes.get(name).zip(newest);
        node.is_some_and(|(node, newest)| newest.saturating_duration_since(node.at) < SILENCE)
    }

    /// Takes note that somebody claims to own a range.
    fn owned(&mut self, claim: &Claim, now: Instant) {
        let owned = self.ranges.entry(claim.range).or_insert(Owned { epoch: claim.epoch, at: now });
        if claim.epoch >= owned.epoch {
            *owned = Owned { epoch: claim.epoch, at: now };
        }
    }

    /// What the nodes have last told of a range.
    fn claims(&self, range: RangeId) -> impl Iterator<Item = (&str, &Node, &Claim)> {
        self.nodes.iter().filter_map(move |(name, node)| Some((&**name, node, node.claims.get(&range)?)))
    }
}

/// The beginning of a text.
fn cut(mut text: String) -> String {
    let ends = text.char_indices().map(|(at, character)| at + character.len_utf8());
    let end = ends.take_while(|end| *end <= TEXT_BYTES_MAX).last().unwrap_or(0);
    text.truncate(end);
    text
}
