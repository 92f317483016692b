//! Findings of a check. Each finding names its row, and the number of listed findings is bounded.

use std::collections::BTreeMap;

use serde::Serialize;

/// Number of findings of one kind that are listed with their rows. All findings are counted.
pub const EXAMPLES_MAX: usize = 20;

/// An invariant of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Invariant {
    /// The storage engine can read its own files.
    Engine,
    /// A row has the right checksum and shape.
    Damage,
    /// A row has this program's version.
    Version,
    /// A key has a known kind and an existing shard.
    Key,
    /// A row is in the shard that owns it.
    Ownership,
    /// A page's row has the hash of its URL as its key.
    Identity,
    /// A page's record is consistent in itself.
    Record,
    /// A page has a signature row if and only if it has a content.
    Signature,
    /// A page's public state follows from its record.
    Published,
    /// Every page has one event in the feed, and every event has its page.
    Feed,
    /// A page and its member row in the group agree.
    Membership,
    /// The comparison of a member with its winner follows from their contents.
    Verdict,
    /// The covers of the members that differ from the winner follow from the winner order and their contents.
    /// Each such member is kept, or is a duplicate of the first kept member that it is similar to.
    Cover,
    /// A group's counts match its members.
    Counts,
    /// A group's winner is the first of its members in the winner order.
    Winner,
    /// A merged group leads to a smaller id, has no members, and counts its forwarding entries.
    Merged,
    /// Unfinished work has a message under way that continues it.
    Work,
    /// Both ends of a redirect have a row for it.
    Edge,
    /// A redirect's recorded end is the end of its chain.
    Resolution,
    /// Messages under way are numbered without a gap.
    Outbox,
    /// A shard's totals match its rows.
    Totals,
    /// Entries of the audit trail are numbered without a gap.
    Audit,
}

impl Invariant {
    /// Describes the invariant for an operator.
    #[must_use]
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Engine => "the storage engine can read its own files",
            Self::Damage => "a row has the right checksum and shape",
            Self::Version => "a row has this program's version",
            Self::Key => "a key has a known kind and an existing shard",
            Self::Ownership => "a row is in the shard that owns it",
            Self::Identity => "a page's row has the hash of its URL as its key",
            Self::Record => "a page's record is consistent in itself",
            Self::Signature => "a page has a signature if and only if it has a content",
            Self::Published => "a page's public state follows from its record",
            Self::Feed => "every page has one event in the feed, and every event has its page",
            Self::Membership => "a page and its group agree about the page's membership",
            Self::Verdict => "the comparison of a member with its winner follows from their contents",
            Self::Cover => {
                "a member that differs from the winner is kept, or is a duplicate of the first kept member \
                 that it is similar to"
            }
            Self::Counts => "a group's counts match its members",
            Self::Winner => "a group's winner is the first of its members in the winner order",
            Self::Merged => "a merged group leads to a smaller id and counts its forwarding entries",
            Self::Work => "unfinished work has a message under way that continues it",
            Self::Edge => "both ends of a redirect have a row for it",
            Self::Resolution => "a redirect's recorded end is the end of its chain",
            Self::Outbox => "messages under way are numbered without a gap",
            Self::Totals => "a shard's totals match its rows",
            Self::Audit => "entries of the audit trail are numbered without a gap",
        }
    }
}

/// A violation of an invariant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The invariant that is violated.
    pub invariant: Invariant,
    /// Description of the row: a URL, a group, or a shard.
    pub row: String,
    /// The fault, as a predicate whose subject is `row`.
    pub detail: String,
}

/// Findings of a check: the number of each kind, and the first few in full.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Findings {
    /// Number of findings of each kind.
    pub counts: BTreeMap<Invariant, u64>,
    /// The first [`EXAMPLES_MAX`] findings of each kind.
    pub examples: Vec<Finding>,
}

impl Findings {
    /// Adds a finding to the report.
    pub fn add(&mut self, finding: Finding) {
        let count = self.counts.entry(finding.invariant).or_default();
        *count += 1;
        if *count <= EXAMPLES_MAX as u64 {
            self.examples.push(finding);
        }
    }

    /// Whether no invariant is violated.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }
}
