//! The seam between tier 2's router and its nodes.
//!
//! A node has partitions and searches them; it knows the boxes it is told to host and no plan. Every call gives and takes
//! owned data within bounds, is made under a plan version and for one incarnation of the node, and can fail. After a
//! failure nobody knows whether it was carried out, so the same call is made again: all calls may be repeated.

use std::sync::Arc;

use doppel_model::signature::Signature;
use doppel_model::{
    ContentHash, Epoch, Incarnation, InsertSeq, NodeId, PageId, PartitionId, PlanVersion, RangeId,
};
use doppel_partitioning::{Bounds, LengthVector, Lexicon};
use serde::{Deserialize, Serialize};

use super::content_source::{PageRange, Repeat};
use super::index::Pair;
pub use super::node_load::{HostedLoad, NodeLoad, SampleRequest, Sampled, VECTORS_MAX};

/// Orders or searches of one call, at most.
pub const BATCH_MAX: usize = 8_192;

/// Entries or signatures of one call, at most.
pub const ENTRIES_MAX: usize = 1_024;

/// Bytes of the signatures of one call, about, at most.
pub const BATCH_BYTES_MAX: usize = 64 << 20;

/// What a call is made under.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallContext {
    /// The plan that the caller follows.
    pub plan: PlanVersion,
    /// The life of the node that the caller means.
    pub incarnation: Incarnation,
}

/// Why a node does not do what it is asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum NodeError {
    /// The caller follows a plan that is not the node's.
    #[error("the plan is version {present}")]
    StalePlan {
        /// The node's.
        present: PlanVersion,
    },
    /// The node was started anew, and has forgotten what the caller believes it knows.
    #[error("the node is in its incarnation {present}")]
    WrongIncarnation {
        /// The present one.
        present: Incarnation,
    },
    /// A range has not told the node yet what it is to have.
    #[error("range {0} has not fed the node yet")]
    NotFed(RangeId),
    /// The range has another owner by now.
    #[error("the range is in epoch {present}")]
    StaleEpoch {
        /// The present one.
        present: Epoch,
    },
    /// Orders before these are missing.
    #[error("orders after {applied} are missing")]
    Gap {
        /// The last one that was applied.
        applied: u64,
    },
    /// The node has no such partition.
    #[error("the node does not have partition {0}")]
    NoPartition(PartitionId),
    /// It is more than a call may bring or ask for.
    #[error("{given} are more than the {most} of a call")]
    TooMuch {
        /// How many there were.
        given: usize,
        /// The bound.
        most: usize,
    },
    /// The node cannot be reached, is stopping, or lacks what it needs; later it can.
    #[error("the node cannot answer now: {0}")]
    Unavailable(String),
    /// The node's files cannot be used.
    #[error("the node's files are damaged: {0}")]
    Damaged(String),
}

/// A partition that a node has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostedPartition {
    /// Its name.
    pub id: PartitionId,
    /// Its box.
    pub bounds: Bounds,
}

/// Everything a node has to know of a plan. What it has beyond that is to be dropped.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Hosting {
    /// The plan's version. A later one takes the place of the present one, an earlier one is refused.
    pub version: PlanVersion,
    /// Words to sub-dictionaries of the serving partitions.
    pub lexicon: Arc<Lexicon>,
    /// Partitions that are searched.
    pub serving: Vec<HostedPartition>,
    /// Dimensions of the lexicon that the incoming partitions are filled under.
    pub incoming_dimensions: usize,
    /// Partitions that are being filled for the next plan.
    pub incoming: Vec<HostedPartition>,
    /// All ranges. The node answers once each of them has fed it.
    pub ranges: Vec<PageRange>,
}

/// How far a node has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Applied {
    /// Its present life.
    pub incarnation: Incarnation,
    /// The version and index of the last order applied; none until the range has fed it.
    pub position: Option<(Epoch, u64)>,
    /// Contents of its serving partitions.
    pub contents: u64,
}

/// Where a content is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Home {
    /// The partition.
    pub partition: PartitionId,
    /// Its length vector.
    pub lengths: LengthVector,
}

/// A change of what is stored. Those of one range are applied in their order: a removal that overtakes the page's return
/// would lose it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum NodeOrder {
    /// A page has a content.
    Put {
        /// The page.
        page: PageId,
        /// The content's signature.
        signature: Arc<Signature>,
        /// Where it goes.
        home: Home,
    },
    /// A page no longer has a content. Every node is told, for nobody else knows which one has it.
    Remove {
        /// The page.
        page: PageId,
        /// The content it had.
        content: ContentHash,
    },
}

/// Orders of a range for one node: puts and removals.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct OrderBatch {
    /// The range.
    pub range: RangeId,
    /// Number of its ownership.
    pub epoch: Epoch,
    /// The index that must be applied already: nothing is missing between it and the first order.
    pub after: u64,
    /// The node's position afterwards. Orders for other nodes are counted, too.
    pub through: u64,
    /// The orders with their indexes, ascending. Those that are applied already are skipped.
    pub orders: Vec<(u64, NodeOrder)>,
}

/// A comparison by one node.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum NodeSearch {
    /// Of a page that is stored on this node, in the node's partitions that its bounding space meets. The searches of one
    /// call know of each other.
    Own {
        /// The page.
        page: PageId,
        /// The content it is believed to have.
        content: ContentHash,
        /// Its signature, where the caller has it.
        signature: Option<Arc<Signature>>,
    },
    /// Of a content that is stored elsewhere, or nowhere.
    Foreign {
        /// Its signature.
        signature: Arc<Signature>,
        /// Its length vector.
        lengths: LengthVector,
    },
}

/// Comparisons that belong together.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SearchBatch {
    /// Whether they belong to a pass: then they are counted, and the node learns from them.
    pub pass: bool,
    /// The searches.
    pub searches: Vec<NodeSearch>,
}

/// What one search found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Searched {
    /// The page does not have the content here.
    Absent,
    /// The content is stored already, under another page that is compared for all of them: the pair with that page.
    Copy(Pair),
    /// It was compared.
    Compared {
        /// Its partners on this node.
        pairs: Vec<Pair>,
        /// Partitions it was compared in.
        probed: u32,
        /// Of an own search: what another node needs to compare it, too.
        subject: Option<(Arc<Signature>, LengthVector)>,
    },
}

/// Where to go on among the entries that leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum EntriesFrom {
    /// At the beginning. From now on changes are noted; asked for again, none that was noted is forgotten.
    Start,
    /// After this entry.
    After(InsertSeq),
    /// With those that have changed since they were handed out, and were not part of an answer up to this number. The
    /// first answer has number 1.
    Changes(u64),
}

/// Asks for entries of partitions that go elsewhere, or are cut anew.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EntriesRequest {
    /// The partitions, the same in all calls.
    pub partitions: Vec<PartitionId>,
    /// Where to go on.
    pub from: EntriesFrom,
    /// Entries at most, and never more than [`ENTRIES_MAX`].
    pub limit: usize,
}

/// The partner through which an entry was linked to its cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum EntryCenter {
    /// The entry was not searched for yet.
    Unknown,
    /// It was, and has no older partner.
    Nobody,
    /// An older entry of the same node.
    Entry {
        /// Which one.
        seq: InsertSeq,
        /// At least the Jaccard distance to it, in 255ths.
        distance: u8,
    },
}

/// An entry as it is handed from one partition to another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MovedEntry {
    /// Its name at the node it comes from.
    pub origin: (NodeId, InsertSeq),
    /// Its content.
    pub signature: Arc<Signature>,
    /// Its pages; the first is the one that is named in answers.
    pub pages: Vec<PageId>,
    /// Its center.
    pub center: EntryCenter,
    /// Whether it is a center.
    pub is_center: bool,
    /// Whether it was searched for.
    pub searched: bool,
}

/// Some of the entries that leave.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct EntriesPage {
    /// The entries, oldest first.
    pub entries: Vec<MovedEntry>,
    /// Contents that have changed: their earlier copies are void. Those that are still there are among the entries.
    pub changed: Vec<ContentHash>,
    /// What is left of this kind: entries, or changed contents.
    pub left: u64,
    /// Where to go on; none where there is nothing more of this kind.
    pub next: Option<EntriesFrom>,
}

/// What a node is to take in.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum IngestBatch {
    /// Pages and their contents: taken where the node's own file has the signature, and the home is here.
    Claims(Vec<(PageId, ContentHash)>),
    /// Pages with their signatures: those that no node has, or has lost.
    Contents(Vec<(PageId, Arc<Signature>, Home)>),
    /// The range has told everything up to this index. Once all ranges have, what nobody claimed goes.
    Fed {
        /// The range.
        range: RangeId,
        /// Number of its ownership.
        epoch: Epoch,
        /// The index.
        index: u64,
    },
    /// Entries for incoming partitions.
    Entries {
        /// Contents whose earlier copies in incoming partitions go first.
        replaced: Vec<ContentHash>,
        /// The entries with their homes under the next plan.
        entries: Vec<(MovedEntry, Home)>,
    },
}

/// What became of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ingested {
    /// Positions of the claims that were not taken.
    pub missing: Vec<u32>,
    /// Contents of the serving partitions.
    pub contents: u64,
}

/// A node of tier 2 as the router sees it.
///
/// Every call fails with [`NodeError`].
#[expect(clippy::missing_errors_doc, reason = "said once for all")]
pub trait IndexNode: Send + Sync {
    /// Tells the node what it has under a plan. The answer names its present life, for all other calls.
    fn host(&self, hosting: Hosting) -> Result<Incarnation, NodeError>;

    /// How far it has come with the orders of a range.
    fn applied(&self, range: RangeId) -> Result<Applied, NodeError>;

    /// Puts and removes. When it returns the orders are acknowledged.
    fn apply(&self, call: CallContext, batch: OrderBatch) -> Result<Applied, NodeError>;

    /// Searches; an answer for each, in their order.
    fn search(&self, call: CallContext, batch: SearchBatch) -> Result<Vec<Searched>, NodeError>;

    /// Entries of partitions that go.
    fn entries(&self, call: CallContext, request: EntriesRequest) -> Result<EntriesPage, NodeError>;

    /// Takes contents in.
    fn ingest(&self, call: CallContext, batch: IngestBatch) -> Result<Ingested, NodeError>;

    /// Drops up to `limit` entries of what no plan says that the node has; whether there may be more.
    fn drop_partition(&self, call: CallContext, limit: usize) -> Result<bool, NodeError>;

    /// Its load.
    fn load(&self, call: CallContext) -> Result<NodeLoad, NodeError>;

    /// Some of what it has.
    fn sample(&self, call: CallContext, request: SampleRequest) -> Result<Sampled, NodeError>;

    /// Pages of a range that are to be searched for again, unasked, after a number, at most [`ENTRIES_MAX`].
    fn repeats(&self, call: CallContext, range: RangeId, after: u64) -> Result<Vec<Repeat>, NodeError>;

    /// The range has taken them up to this number: the node forgets them.
    fn acknowledge_repeats(&self, call: CallContext, range: RangeId, through: u64) -> Result<(), NodeError>;
}
