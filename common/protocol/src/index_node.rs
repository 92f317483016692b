//! The interface between tier 2's router and its nodes.
//!
//! A node has partitions and searches them. It knows the boxes that it is told to host, but not the plan. Every call
//! passes owned, bounded data, is made under a plan version and for one incarnation of the node, and can fail. After a
//! failure the router does not know whether the call was carried out, so it makes the same call again: every call may
//! be repeated.

use std::sync::Arc;

use doppel_model::signature::Signature;
use doppel_model::{
    ContentHash, Epoch, Incarnation, InsertSeq, NodeId, PageId, PartitionId, PlanVersion, RangeId,
};
use doppel_partitioning::{Bounds, LengthVector, Lexicon};
use serde::{Deserialize, Serialize};

pub use super::call_limits::{BATCH_BYTES_MAX, BATCH_MAX, ENTRIES_MAX, fitting};
use super::content_source::{LogPosition, PageRange, Repeat};
pub use super::node_load::{HostedLoad, NodeLoad, SampleRequest, Sampled, VECTORS_MAX};
pub use super::node_search::{COMPARISON_COST, NodeSearch, SearchBatch, SearchLimits, SearchOutcome};

/// The plan and the incarnation that a call assumes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallContext {
    /// The plan that the caller follows.
    pub plan: PlanVersion,
    /// The incarnation of the node that the caller knows.
    pub incarnation: Incarnation,
}

/// Why a node does not carry out a call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum NodeError {
    /// The caller follows another plan than the node.
    #[error("the plan is version {present}")]
    StalePlan {
        /// The plan version of the node.
        present: PlanVersion,
    },
    /// The node was restarted and has lost what the caller assumes it knows.
    #[error("the node is in its incarnation {present}")]
    WrongIncarnation {
        /// The present incarnation.
        present: Incarnation,
    },
    /// A range has not yet told the node which contents it has to store.
    #[error("range {0} has not fed the node yet")]
    NotFed(RangeId),
    /// The range has a newer owner.
    #[error("the range is in epoch {present}")]
    StaleEpoch {
        /// The present epoch.
        present: Epoch,
    },
    /// Orders before the given ones are missing.
    #[error("orders after {applied} are missing")]
    Gap {
        /// The index of the last applied order.
        applied: u64,
    },
    /// The node has no such partition.
    #[error("the node does not have partition {0}")]
    NoPartition(PartitionId),
    /// The call brings or requests more than the limit.
    #[error("{given} are more than the {most} of a call")]
    TooMuch {
        /// The number in the call.
        given: usize,
        /// The limit.
        most: usize,
    },
    /// The node cannot be reached, is stopping or lacks what it needs. The call may succeed later.
    #[error("the node cannot answer now: {0}")]
    Unavailable(String),
    /// The files of the node are damaged.
    #[error("the node's files are damaged: {0}")]
    Damaged(String),
}

/// A partition that a node has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostedPartition {
    /// The id of the partition.
    pub id: PartitionId,
    /// Its box.
    pub bounds: Bounds,
}

/// Everything that a node has to know about a plan. It drops whatever else it has.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Hosting {
    /// The router that tells it: a number that no other router has. What a node in a process of its own has been told by
    /// another router it forgets, as if it were started anew.
    pub session: u64,
    /// Whether the router begins to feed the node. It is in a new incarnation then, so that what is still on its way from
    /// before is refused.
    pub renews: bool,
    /// The version of the plan. A later version replaces the present one; an earlier one is refused.
    pub version: PlanVersion,
    /// Assigns words to the sub-dictionaries of the serving partitions.
    pub lexicon: Arc<Lexicon>,
    /// The partitions that are searched.
    pub serving: Vec<HostedPartition>,
    /// The number of dimensions of the next plan, under which the incoming partitions are filled.
    pub incoming_dimensions: usize,
    /// The partitions that are being filled for the next plan.
    pub incoming: Vec<HostedPartition>,
    /// All ranges. The node answers searches once each of them has fed it.
    pub ranges: Vec<PageRange>,
}

/// The position of a node in the orders of a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Applied {
    /// The present incarnation of the node.
    pub incarnation: Incarnation,
    /// The epoch and index of the last applied order; none until the range has fed the node.
    pub position: Option<(Epoch, u64)>,
    /// The number of contents in its serving partitions.
    pub contents: u64,
    /// The moment of the range that the node has taken up from its snapshot; none once the range has fed the node.
    pub resumed: Option<LogPosition>,
    /// The moment of the range in the last snapshot that is on disk.
    pub saved: Option<LogPosition>,
    /// Whether the node has pages, of any range, that have to be [searched for again](IndexNode::repeats).
    pub has_repeats: bool,
}

/// The place where a content is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Home {
    /// The partition.
    pub partition: PartitionId,
    /// The length vector of the content.
    pub lengths: LengthVector,
}

/// A change of the stored contents. The orders of one range are applied in sequence: otherwise a removal that arrives
/// late could delete a page that has returned meanwhile.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum NodeOrder {
    /// A page now has this content.
    Put {
        /// The page.
        page: PageId,
        /// The signature of the content.
        signature: Arc<Signature>,
        /// The place where it is to be stored.
        home: Home,
        /// Whether a search for the page follows. Searches of other contents that come first leave the pair to that search.
        owes_search: bool,
    },
    /// A page no longer has this content. Every node gets this order, because only the node itself knows whether it has
    /// the content.
    Remove {
        /// The page.
        page: PageId,
        /// The content it had.
        content: ContentHash,
    },
}

/// Orders of a range for one node.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct OrderBatch {
    /// The range.
    pub range: RangeId,
    /// The epoch of the range's present owner.
    pub epoch: Epoch,
    /// The index that must be applied already. Between it and the first order there is none for this node.
    pub after: u64,
    /// The position of the node afterwards. It also counts orders for other nodes.
    pub through: u64,
    /// The orders with their indexes, in ascending order. Orders that are applied already are skipped.
    pub orders: Vec<(u64, NodeOrder)>,
}

/// Where to continue among the entries that leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum EntriesFrom {
    /// At the beginning. From now on the node notes changes. If the call is repeated, it keeps the changes noted so
    /// far.
    Start,
    /// After this entry.
    After(InsertSeq),
    /// At the contents that changed after they were handed out, without those in the answers up to this number. The
    /// first answer has number 1.
    Changes(u64),
}

/// Requests entries of partitions that move to another node or are cut anew.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EntriesRequest {
    /// The partitions, the same in all calls.
    pub partitions: Vec<PartitionId>,
    /// Where to continue.
    pub from: EntriesFrom,
    /// The maximum number of entries, at most [`ENTRIES_MAX`].
    pub limit: usize,
}

/// The partner that linked an entry to its cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum EntryCenter {
    /// The entry was not yet searched for.
    Unknown,
    /// The entry was searched for and has no older partner.
    Nobody,
    /// An older entry of the same node.
    Entry {
        /// The older entry.
        seq: InsertSeq,
        /// An upper bound of the Jaccard distance to it, in 255ths.
        distance: u8,
    },
}

/// An entry as it is handed from one partition to another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MovedEntry {
    /// The node that it comes from, and its number there.
    pub origin: (NodeId, InsertSeq),
    /// The signature of its content.
    pub signature: Arc<Signature>,
    /// Its pages. Answers name the first one.
    pub pages: Vec<PageId>,
    /// Its center.
    pub center: EntryCenter,
    /// Whether it is a center.
    pub is_center: bool,
    /// Whether it has been searched for.
    pub searched: bool,
}

/// Some of the entries that leave.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct EntriesPage {
    /// The entries, oldest first.
    pub entries: Vec<MovedEntry>,
    /// Contents that have changed, so that earlier copies of them are void. Those that still exist are among the
    /// entries.
    pub changed: Vec<ContentHash>,
    /// The number of entries or changed contents that are left, whichever was requested.
    pub left: u64,
    /// Where to continue; none if nothing is left.
    pub next: Option<EntriesFrom>,
}

/// Contents that a node has to take in.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum IngestBatch {
    /// The range begins to name everything it has. Until [`Fed`](Self::Fed) the node has no position of the range.
    Begin {
        /// The range.
        range: RangeId,
        /// Number of its ownership. A node refuses one that is older than it knows.
        epoch: Epoch,
        /// Whether it names only what it has of pages that have [`Changed`](Self::Changed) since the node's snapshot.
        changes: bool,
    },
    /// Pages of the range that has begun to name changes. Of these, the node removes what is not named.
    Changed {
        /// The range.
        range: RangeId,
        /// The pages, at most [`BATCH_MAX`].
        pages: Vec<PageId>,
    },
    /// Pages and their contents. The node takes those whose signature is in its own file and whose home is on the node.
    Claims(Vec<(PageId, ContentHash)>),
    /// Pages with their signatures, for contents that no node has.
    Contents(Vec<(PageId, Arc<Signature>, Home)>),
    /// The range has fed the node with everything up to this index. The node removes pages of the range, or of the changed
    /// ones, that were not named since it began. After the last range the node drops the contents that no range has claimed.
    Fed {
        /// The range.
        range: RangeId,
        /// The epoch of the range's present owner.
        epoch: Epoch,
        /// The index.
        index: u64,
    },
    /// Entries for incoming partitions.
    Entries {
        /// Contents whose earlier copies in the incoming partitions are deleted first.
        replaced: Vec<ContentHash>,
        /// The entries with their homes under the next plan.
        entries: Vec<(MovedEntry, Home)>,
    },
}

/// The result of an [`IngestBatch`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ingested {
    /// The positions of the claims that were not taken.
    pub missing: Vec<u32>,
    /// The number of contents in the serving partitions.
    pub contents: u64,
}

/// A node of tier 2 as the router sees it.
///
/// Every call fails with [`NodeError`].
#[expect(clippy::missing_errors_doc, reason = "said once for all")]
pub trait IndexNode: Send + Sync {
    /// Tells the node what it hosts under a plan. Returns its present incarnation, which all other calls need.
    fn host(&self, hosting: Hosting) -> Result<Incarnation, NodeError>;

    /// The position of the node in the orders of a range.
    fn applied(&self, range: RangeId) -> Result<Applied, NodeError>;

    /// Puts and removes contents. On return the orders are acknowledged.
    fn apply(&self, call: CallContext, batch: OrderBatch) -> Result<Applied, NodeError>;

    /// Carries out searches. Returns one answer for each, in their order.
    fn search(&self, call: CallContext, batch: SearchBatch) -> Result<Vec<SearchOutcome>, NodeError>;

    /// Returns entries of partitions that leave.
    fn entries(&self, call: CallContext, request: EntriesRequest) -> Result<EntriesPage, NodeError>;

    /// Takes in contents.
    fn ingest(&self, call: CallContext, batch: IngestBatch) -> Result<Ingested, NodeError>;

    /// Drops up to `limit` entries that the node no longer has to host. Returns whether there may be more.
    fn drop_partition(&self, call: CallContext, limit: usize) -> Result<bool, NodeError>;

    /// Writes a snapshot of what the node has, from which its next incarnation begins. For each range the caller names a
    /// moment up to which the node has applied all orders. The snapshot counts as
    /// [`saved`](Applied::saved) when it is on disk, which may be later. A node that cannot write one now refuses.
    fn save(&self, call: CallContext, moments: Vec<(RangeId, LogPosition)>) -> Result<(), NodeError>;

    /// The load of the node.
    fn load(&self, call: CallContext) -> Result<NodeLoad, NodeError>;

    /// A sample of its contents.
    fn sample(&self, call: CallContext, request: SampleRequest) -> Result<Sampled, NodeError>;

    /// At most [`ENTRIES_MAX`] pages of a range that have to be searched for again, with numbers above `after`.
    fn repeats(&self, call: CallContext, range: RangeId, after: u64) -> Result<Vec<Repeat>, NodeError>;

    /// Tells the node that the range has taken these pages up to a number. The node forgets them.
    fn acknowledge_repeats(&self, call: CallContext, range: RangeId, through: u64) -> Result<(), NodeError>;
}
