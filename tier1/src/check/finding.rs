//! What does not hold: each finding names its row, and the report is bounded.

use std::collections::BTreeMap;

use serde::Serialize;

/// Findings of one kind that are kept with their rows; all are counted.
pub const EXAMPLES_MAX: usize = 20;

/// What must hold of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Invariant {
    /// The engine reads its own files.
    Engine,
    /// A row has its checksum and shape.
    Damage,
    /// A row is of this program's version.
    Version,
    /// A key is of a known kind and shard.
    Key,
    /// A row is in the shard that owns it.
    Ownership,
    /// A page's row is under the hash of its URL.
    Identity,
    /// A page's record agrees with itself.
    Record,
    /// A page with a content has its signature, and no other page has one.
    Signature,
    /// A page's public state is what its record gives.
    Published,
    /// Every page has one event in the feed, and every event its page.
    Feed,
    /// A page and its group's row of it say the same.
    Membership,
    /// The comparison of a member with its winner is what their contents give.
    Verdict,
    /// Of the members that differ from the winner those are kept that the winner order and their contents give, and the
    /// others are duplicates of the first that they are near.
    Cover,
    /// A group's counts are those of its members.
    Counts,
    /// A group's winner is the best of its members.
    Winner,
    /// A merged group leads to a smaller id, has no members and counts the memberships that pass.
    Merged,
    /// The message that goes on with unfinished work is under way.
    Work,
    /// Both ends of a redirect know of it.
    Edge,
    /// A redirect's end is where its chain ends.
    Resolution,
    /// Messages under way are numbered without a gap.
    Outbox,
    /// A shard's totals are those of its rows.
    Totals,
    /// Repairs are written down without a gap.
    Audit,
}

impl Invariant {
    /// What must hold, in words.
    #[must_use]
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Engine => "the engine reads its own files",
            Self::Damage => "a row has its checksum and its shape",
            Self::Version => "a row is of this program's version",
            Self::Key => "a key is of a known kind and shard",
            Self::Ownership => "a row is in the shard that owns it",
            Self::Identity => "a page's row is under the hash of its URL",
            Self::Record => "a page's record agrees with itself",
            Self::Signature => "a page with a content has its signature, and no other page has one",
            Self::Published => "a page's public state is what its record gives",
            Self::Feed => "every page has one event in the feed, and every event its page",
            Self::Membership => "a page and its group say the same of it",
            Self::Verdict => "the comparison of a member with its winner is what their contents give",
            Self::Cover => {
                "of the members that differ from the winner each is kept, or the duplicate of the first that is"
            }
            Self::Counts => "a group's counts are those of its members",
            Self::Winner => "a group's winner is the best of its members",
            Self::Merged => "a merged group leads to a smaller id and counts the memberships that pass",
            Self::Work => "the message that goes on with unfinished work is under way",
            Self::Edge => "both ends of a redirect know of it",
            Self::Resolution => "a redirect's end is where its chain ends",
            Self::Outbox => "messages under way are numbered without a gap",
            Self::Totals => "a shard's totals are those of its rows",
            Self::Audit => "repairs are written down without a gap",
        }
    }
}

/// Something that does not hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What should hold.
    pub invariant: Invariant,
    /// What it is about: a URL, a group, a shard.
    pub row: String,
    /// How it is instead.
    pub detail: String,
}

/// All that does not hold, counted; the first few of each kind in full.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Findings {
    /// How many there are of each kind.
    pub counts: BTreeMap<Invariant, u64>,
    /// The first [`EXAMPLES_MAX`] of each kind.
    pub examples: Vec<Finding>,
}

impl Findings {
    /// Adds one.
    pub fn add(&mut self, finding: Finding) {
        let count = self.counts.entry(finding.invariant).or_default();
        *count += 1;
        if *count <= EXAMPLES_MAX as u64 {
            self.examples.push(finding);
        }
    }

    /// Whether everything holds.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }
}
