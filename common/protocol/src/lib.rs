//! The interfaces between the roles: traits and messages.
//!
//! The three roles (tier 1, tier 2, coordinator) never name each other. The coordinator calls tier 1 and tier
//! 2 through the traits in this crate, and tier 1 calls tier 2 through them as well. The code that assembles
//! a process passes the implementations in. Types that clients of the HTTP service also see are in
//! `doppel_contract`, which does not know this crate.
#![forbid(unsafe_code)]

pub mod beats;
mod cluster;
mod content_source;
mod index;
pub mod index_node;
mod range_map;
pub mod range_owner;
mod settlement;
mod stored_signatures;
mod tier1;
mod version_order;
mod winner_order;

pub use cluster::{CallTraffic, ClusterApi, NodeTraffic, TakeOverError};
pub use content_source::{
    CONTENTS_MAX, ContentSource, ContentsPage, LogPosition, Moment, PageRange, Repeat, SIGNATURES_MAX,
    SignatureSource, SourceError,
};
pub use index::{
    INDEX_STATE_BYTES_MAX, IndexCommand, IndexError, IndexOrders, IndexState, IndexStateError,
    IndexStateItem, MappingApi, Orders, PartitionLookup, RebalanceError, RefusedOrders, Search, SearchResult,
    Tier2Api, VerifiedPartner,
};
pub use range_map::{RangeMap, RangeMapError};
pub use settlement::Settlement;
pub use stored_signatures::{EachSignature, SignaturePlace, StoredSignatures};
pub use tier1::{
    AGE_MAX, AgeError, AnswerTimes, BACKUP_PIECE_BYTES, BATCH_PAGES_MAX, BackupError, BackupPiece,
    BackupStream, BackupSummary, Body, CLASS_BOUNDS_MS, ComparedPage, DatedAnswer, DecisionTimes, FeedBatch,
    FeedEvent, GroupFilter, GroupPosition, GroupState, GroupSummary, GroupView, InvalidRepairId,
    InvalidRepairPosition, LEASE, LIST_MAX, Line, LinesPage, MemberView, OWNERS_LAG, PageScan, PageView,
    Question, REPAIR_URLS_KEPT, ReadTarget, RepairDetails, RepairEntry, RepairId, RepairPosition,
    RepairReport, RepairTrail, SCAN_LINES_MAX, ScanPosition, ShardTotals, Submission, Tier1Api, Tier1Error,
    Tier1Reads, Totals, explain_age, limit_urls,
};
pub use version_order::{DatedPopularity, FetchResult, VersionDetails, VersionPlace};
pub use winner_order::{OrderError, Rank, WinnerOrder};
