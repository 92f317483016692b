//! The interfaces between the roles, and the public HTTP contract of the service.
//!
//! The three roles (tier 1, tier 2, coordinator) never name each other. The coordinator calls tier 1 and tier
//! 2 through the traits in this crate, and tier 1 calls tier 2 through them as well. The code that assembles
//! a process passes the implementations in.
#![forbid(unsafe_code)]

pub mod answer;
mod backup;
mod call_limits;
#[cfg(feature = "client")]
pub mod client;
mod cluster;
mod content_source;
mod decision_times;
mod group_view;
mod index;
mod index_error;
pub mod index_node;
mod index_state;
mod mapping;
mod market;
pub mod membership;
mod node_load;
mod node_search;
pub mod page;
mod page_view;
mod question;
mod question_reads;
mod range_map;
pub mod range_owner;
mod rank;
mod record;
mod repair;
mod report;
mod scan;
mod settlement;
mod status;
mod stored_signatures;
mod submission;
mod tier1_error;
mod totals;
mod version_order;
mod winner_order;
pub mod words;

pub use backup::{BACKUP_PIECE_BYTES, BackupError, BackupPiece, BackupStream, BackupSummary};
pub use cluster::{CallTraffic, ClusterApi, NodeTraffic, TakeOverError};
pub use content_source::{
    CONTENTS_MAX, ContentSource, ContentsPage, LogPosition, Moment, PageRange, Repeat, SIGNATURES_MAX,
    SignatureSource, SourceError,
};
pub use decision_times::{CLASS_BOUNDS_MS, DecisionTimes};
pub use group_view::{GroupFilter, GroupPosition, GroupState, GroupSummary, GroupView, MemberView};
pub use index::{
    IndexCommand, IndexOrders, Orders, Pair, PartitionLookup, RefusedOrders, Search, SearchResult, Tier2Api,
};
pub use index_error::IndexError;
pub use index_state::{INDEX_STATE_BYTES_MAX, IndexState, IndexStateError, IndexStateItem};
pub use mapping::{
    MappingApi, PartitionMove, RebalanceError, RebalanceOutcome, RebalancePlan, RebalanceProgress,
    RebalanceRequest,
};
pub use market::{HostSuffix, Market, MarketError, Markets};
pub use page_view::{Compared, PageView};
pub use question::{AGE_MAX, Aged, LEASE, Moments, OWNERS_LAG, Question, TooOld, Whom, too_old};
pub use range_map::{RangeMap, RangeMapError};
pub use rank::{Rank, Rule};
pub use record::{
    BATCH_MAX, Change, Changes, LIST_MAX, LinesPage, SCAN_LINES_MAX, ScanPosition, Tier1Api, Tier1Reads,
};
pub use repair::{
    NoRepairId, NoRepairPosition, REPAIR_URLS_KEPT, RepairDetails, RepairEntry, RepairId, RepairPosition,
    RepairReport, RepairTrail, TrailEvent, within,
};
pub use report::{LengthBox, LoadReport, PartitionLoad};
pub use scan::Scan;
pub use settlement::Settlement;
pub use status::{Line, Status, Unresolved};
pub use stored_signatures::{EachSignature, SignaturePlace, StoredSignatures};
pub use submission::{Body, Outcome, Submission};
pub use tier1_error::Tier1Error;
pub use totals::{Backlog, CROWDED_REDIRECTS, Counters, ShardTotals, Totals};
pub use version_order::{DatedPopularity, FetchResult, VersionDetails, VersionPlace};
pub use winner_order::{OrderError, WinnerOrder};
