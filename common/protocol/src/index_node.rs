//! The interface between tier 2's router and its nodes.
//!
//! A node stores partitions and searches them. It knows the boxes of the partitions that it hosts, but not
//! the plan. Every call passes owned, bounded data and can fail. It states a plan version and the incarnation
//! of the node.
//!
//! After a failure, the router does not know whether the node carried out the call. It then makes the same
//! call again. Therefore every call must be idempotent.

mod limits;
mod load;
mod search;

use std::sync::Arc;

use doppel_model::signature::Signature;
use doppel_model::{
    ContentHash, Epoch, Incarnation, InsertSeq, NodeId, PageId, PartitionId, PlanVersion, RangeId,
};
use doppel_partitioning::{Bounds, LengthVector, Lexicon};
use serde::{Deserialize, Serialize};

use super::content_source::{LogPosition, PageRange, Repeat};
pub use limits::{BATCH_BYTES_MAX, BATCH_ORDERS_MAX, ENTRIES_MAX, fitting_count};
pub use load::{HostedLoad, NodeLoadReport, SampleAnswer, SampleRequest, VECTORS_MAX};
pub use search::{COMPARISON_COST, NodeSearch, SearchBatch, SearchLimits, SearchOutcome};

/// The plan version and the incarnation that a call assumes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallContext {
    /// Version of the plan that the caller follows.
    pub plan: PlanVersion,
    /// Incarnation of the node that the caller knows.
    pub incarnation: Incarnation,
}

/// Why a node does not carry out a call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum NodeError {
    /// The caller and the node follow different plans.
    #[error("the call has another plan version than the node, which has version {present}")]
    StalePlan {
        /// Plan version of the node.
        present: PlanVersion,
    },
    /// The node was restarted and has lost the state that the caller assumes.
    #[error("the call is for another incarnation of the node, which is in incarnation {present}")]
    WrongIncarnation {
        /// Present incarnation of the node.
        present: Incarnation,
    },
    /// A range has not yet told the node which contents the node has to store.
    #[error("range {0} has not fed the node yet")]
    NotFed(RangeId),
    /// The range has a newer owner.
    #[error("the call has an old epoch; the range is in epoch {present}")]
    StaleEpoch {
        /// Epoch of the present owner.
        present: Epoch,
    },
    /// Orders before the given orders are missing.
    #[error("orders after {applied} are missing")]
    Gap {
        /// Index of the last applied order.
        applied: u64,
    },
    /// The node does not have the partition.
    #[error("the node does not have partition {0}")]
    NoPartition(PartitionId),
    /// The call brings or requests more than the limit.
    #[error("the call has {given} items; the limit is {most}")]
    TooMuch {
        /// Number of items in the call.
        given: usize,
        /// Maximum number of items.
        most: usize,
    },
    /// The node cannot be reached, is stopping, or lacks data that it needs. The call may succeed later.
    #[error("the node cannot answer now: {0}")]
    Unavailable(String),
    /// The files of the node are damaged.
    #[error("the node's files are damaged: {0}")]
    Damaged(String),
}

/// A partition that a node hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostedPartition {
    /// Id of the partition.
    pub id: PartitionId,
    /// Box of the partition.
    pub bounds: Bounds,
}

/// Everything that a node has to know about a plan. The node drops all other partitions and ranges.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HostingPlan {
    /// Random id of the router's session, unique among all routers. A node in a process of its own forgets
    /// everything that another session told it, as if it were restarted.
    pub session: u64,
    /// Whether the router begins to feed the node. The node then starts a new incarnation, so that it refuses
    /// calls that are still under way.
    pub renews: bool,
    /// Version of the plan. A later version replaces the present version; the node refuses an earlier
    /// version.
    pub version: PlanVersion,
    /// Assigns words to the sub-dictionaries of the serving partitions.
    pub lexicon: Arc<Lexicon>,
    /// The partitions that are searched.
    pub serving: Vec<HostedPartition>,
    /// Number of dimensions of the next plan, under which the incoming partitions are filled.
    pub incoming_dimensions: usize,
    /// The partitions that are being filled for the next plan.
    pub incoming: Vec<HostedPartition>,
    /// All ranges of tier 1. The node answers searches after every range has fed it.
    pub ranges: Vec<PageRange>,
}

/// Position of a node in the orders of a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct AppliedState {
    /// Present incarnation of the node.
    pub incarnation: Incarnation,
    /// Epoch and index of the last applied order; `None` until the range has fed the node.
    pub position: Option<(Epoch, u64)>,
    /// Number of contents in the serving partitions of the node.
    pub contents: u64,
    /// State of the range from which the node resumed after reading its snapshot; `None` after the range has
    /// fed the node.
    pub resumed: Option<LogPosition>,
    /// State of the range in the last snapshot on disk.
    pub saved: Option<LogPosition>,
    /// Whether the node has pages, of any range, that have to be [searched for again](IndexNode::repeats).
    pub has_repeats: bool,
}

/// The place where a content is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct HomePartition {
    /// Id of the partition.
    pub partition: PartitionId,
    /// Length vector of the content.
    pub lengths: LengthVector,
}

/// A change of the stored contents. A node applies the orders of a range in sequence. Otherwise a late
/// removal could delete a page that has returned in the meantime.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum NodeOrder {
    /// A page now has this content.
    Put {
        /// The page that changed.
        page: PageId,
        /// Signature of the content.
        signature: Arc<Signature>,
        /// Where the node stores the content.
        home: HomePartition,
        /// Whether a search for the page follows. Earlier searches of other contents then skip the pair,
        /// because the search for this page finds it.
        owes_search: bool,
    },
    /// A page no longer has this content. The router sends this order to every node, because only the node
    /// itself knows whether it stores the content.
    Remove {
        /// The page that changed.
        page: PageId,
        /// The content that the page had before.
        content: ContentHash,
    },
}

/// Orders of a range for one node.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct OrderBatch {
    /// Number of the range.
    pub range: RangeId,
    /// Epoch of the range's present owner.
    pub epoch: Epoch,
    /// Index up to which the node must already have applied all orders. Between this index and the first
    /// order, no order concerns this node.
    pub after: u64,
    /// Position of the node after this batch. It also counts orders for other nodes.
    pub through: u64,
    /// The orders with their indexes, in ascending order. The node skips orders that it has already applied.
    pub orders: Vec<(u64, NodeOrder)>,
}

/// Where to continue in the entries of partitions that leave the node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum EntriesFrom {
    /// Starts at the beginning. From now on the node notes changes. If the call is repeated, the node keeps
    /// the changes noted so far.
    Start,
    /// Continues after this entry.
    After(InsertSeq),
    /// Returns contents that changed after the node handed them out, except the changes in the answers up to
    /// this number. The first answer with changes has number 1.
    Changes(u64),
}

/// A request for entries of partitions that move to another node or are cut anew.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EntriesRequest {
    /// The partitions, which must be the same in all calls.
    pub partitions: Vec<PartitionId>,
    /// Position from which to continue.
    pub from: EntriesFrom,
    /// Maximum number of entries, at most [`ENTRIES_MAX`].
    pub limit: usize,
}

/// The partner that linked an entry to its cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum EntryCenter {
    /// The entry was not searched for yet.
    Unknown,
    /// The entry was searched for and has no older partner.
    Nobody,
    /// The partner is an older entry of the same node.
    Entry {
        /// Insertion sequence of the older entry.
        seq: InsertSeq,
        /// Upper bound of the Jaccard distance to the older entry, in units of 1/255.
        distance: u8,
    },
}

/// An entry that is handed from one partition to another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MovedEntry {
    /// The node that the entry comes from, and its insertion sequence there.
    pub origin: (NodeId, InsertSeq),
    /// Signature of the entry's content.
    pub signature: Arc<Signature>,
    /// Pages with the content. Answers name the first page.
    pub pages: Vec<PageId>,
    /// The partner that linked the entry to its cluster.
    pub center: EntryCenter,
    /// Whether the entry is a center.
    pub is_center: bool,
    /// Whether the entry has been searched for.
    pub searched: bool,
}

/// A batch of the entries that leave a node.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct EntriesPage {
    /// The entries, oldest first.
    pub entries: Vec<MovedEntry>,
    /// Contents that have changed, so that their earlier copies are void. The entries include the changed
    /// contents that still exist.
    pub changed: Vec<ContentHash>,
    /// Number of remaining entries or changed contents, depending on the request.
    pub left: u64,
    /// Where to continue; `None` if no more entries remain.
    pub next: Option<EntriesFrom>,
}

/// A page with its content, for the node that stores the content.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PageContent {
    /// The page that has the content.
    pub page: PageId,
    /// Signature of the content.
    pub signature: Arc<Signature>,
    /// Where the node stores the content.
    pub home: HomePartition,
}

/// Contents that a node has to store.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum IngestBatch {
    /// The range begins to feed the node and will list all its contents. Until [`Fed`](Self::Fed), the node
    /// has no position of the range.
    Begin {
        /// Number of the range.
        range: RangeId,
        /// Epoch of the range's owner. A node refuses an epoch older than the newest that it knows.
        epoch: Epoch,
        /// Whether the range lists only the contents of pages that have [`Changed`](Self::Changed) since the
        /// node's snapshot.
        changes: bool,
    },
    /// Pages of a range that lists only changes. The node removes the contents of these pages unless the
    /// range lists them.
    Changed {
        /// Number of the range.
        range: RangeId,
        /// The pages, at most [`BATCH_ORDERS_MAX`].
        pages: Vec<PageId>,
    },
    /// Pages and their contents. The node accepts a content if its own file contains the signature and the
    /// home of the content is on this node.
    Claims(Vec<(PageId, ContentHash)>),
    /// Pages with their signatures, for contents that no node stores.
    Contents(Vec<PageContent>),
    /// The range has fed the node with everything up to this index. The node removes pages of the range (or
    /// only the changed pages) that the range has not listed. After the last range, the node drops contents
    /// that no range has claimed.
    Fed {
        /// Number of the range.
        range: RangeId,
        /// Epoch of the range's present owner.
        epoch: Epoch,
        /// Index up to which the node is complete.
        index: u64,
    },
    /// Entries for incoming partitions.
    Entries {
        /// Contents whose earlier copies in the incoming partitions the node deletes first.
        replaced: Vec<ContentHash>,
        /// The entries with their homes under the next plan.
        entries: Vec<(MovedEntry, HomePartition)>,
    },
}

/// The result of an [`IngestBatch`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IngestAnswer {
    /// Indexes of the claims that the node did not accept.
    pub missing: Vec<u32>,
    /// Number of contents in the serving partitions.
    pub contents: u64,
}

/// A node of tier 2 as the router sees it.
///
/// Every call fails with [`NodeError`].
#[expect(clippy::missing_errors_doc, reason = "said once for all")]
pub trait IndexNode: Send + Sync {
    /// Tells the node which partitions it hosts under a plan. Returns its present incarnation, which all
    /// other calls need.
    fn host(&self, hosting: HostingPlan) -> Result<Incarnation, NodeError>;

    /// Returns the position of the node in the orders of a range.
    fn applied(&self, range: RangeId) -> Result<AppliedState, NodeError>;

    /// Puts and removes contents. When the call returns, the orders are acknowledged.
    fn apply(&self, call: CallContext, batch: OrderBatch) -> Result<AppliedState, NodeError>;

    /// Carries out searches. Returns one answer for each search, in order.
    fn search(&self, call: CallContext, batch: SearchBatch) -> Result<Vec<SearchOutcome>, NodeError>;

    /// Returns entries of partitions that leave the node.
    fn entries(&self, call: CallContext, request: EntriesRequest) -> Result<EntriesPage, NodeError>;

    /// Stores contents in the node.
    fn ingest(&self, call: CallContext, batch: IngestBatch) -> Result<IngestAnswer, NodeError>;

    /// Drops up to `limit` entries that the node no longer has to host. Returns whether more may remain.
    fn drop_partition(&self, call: CallContext, limit: usize) -> Result<bool, NodeError>;

    /// Writes a snapshot from which the next incarnation of the node starts. For each range, the caller names
    /// a state up to which the node has applied all orders. The snapshot counts as [`saved`](Applied::saved)
    /// when it is on disk, which may be after the call. A node that cannot write a snapshot now refuses.
    fn save(&self, call: CallContext, moments: Vec<(RangeId, LogPosition)>) -> Result<(), NodeError>;

    /// Returns the load of the node.
    fn load(&self, call: CallContext) -> Result<NodeLoadReport, NodeError>;

    /// Returns a sample of the node's contents.
    fn sample(&self, call: CallContext, request: SampleRequest) -> Result<SampleAnswer, NodeError>;

    /// Returns at most [`ENTRIES_MAX`] pages of a range that have to be searched for again, with numbers
    /// above `after`.
    fn repeats(&self, call: CallContext, range: RangeId, after: u64) -> Result<Vec<Repeat>, NodeError>;

    /// Tells the node that the range has accepted the repeats up to `through`. The node forgets them.
    fn acknowledge_repeats(&self, call: CallContext, range: RangeId, through: u64) -> Result<(), NodeError>;
}
