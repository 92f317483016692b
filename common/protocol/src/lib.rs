//! The contract between the roles, and with the world outside.
//!
//! The three roles never name each other. The coordinator calls tier 1 and tier 2 through the traits
//! here, tier 1 calls tier 2 through them, and whoever wires a process together passes the objects in.
#![forbid(unsafe_code)]

mod backup;
mod content_source;
mod index;
pub mod index_node;
mod mapping;
mod market;
mod node_load;
pub mod page;
mod rank;
mod record;
mod repair;
mod report;
mod status;
mod winner_order;

pub use backup::{BackupError, BackupSummary};
pub use content_source::{
    CONTENTS_MAX, ContentSource, ContentsPage, PageRange, Repeat, SIGNATURES_MAX, SourceError,
};
pub use index::{IndexCommand, IndexError, Orders, Pair, PartitionLookup, Search, SearchResult, Tier2Api};
pub use mapping::{
    MappingApi, PartitionMove, RebalanceError, RebalanceOutcome, RebalancePlan, RebalanceProgress,
    RebalanceRequest,
};
pub use market::{HostSuffix, Market, MarketError, Markets};
pub use rank::{Rank, Rule};
pub use record::{
    Backlog, Body, Change, Changes, Counters, GroupFilter, GroupPosition, GroupState, GroupSummary,
    GroupView, MemberView, Outcome, PageView, Submission, Tier1Api, Tier1Error, WinnerView,
};
pub use repair::{
    NoRepairId, NoRepairPosition, REPAIR_URLS_KEPT, RepairDetails, RepairEntry, RepairId, RepairPosition,
    RepairReport, RepairTrail, within,
};
pub use report::{LengthBox, LoadReport, PartitionLoad};
pub use status::{Line, Status, Unresolved};
pub use winner_order::{OrderError, WinnerOrder};
