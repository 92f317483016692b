//! The interface of tier 1, the system of record: its trait for the coordinator, and the types in its calls.

mod api;
mod backup;
mod decision_times;
mod error;
mod group_view;
mod line;
mod page_view;
mod question;
mod question_reads;
mod repair;
mod scan;
mod submission;
mod totals;

pub use api::{BATCH_PAGES_MAX, LIST_MAX, LinesPage, SCAN_LINES_MAX, ScanPosition, Tier1Api, Tier1Reads};
pub use backup::{BACKUP_PIECE_BYTES, BackupError, BackupPiece, BackupStream, BackupSummary};
pub use decision_times::{CLASS_BOUNDS_MS, DecisionTimes};
pub use error::Tier1Error;
pub use group_view::{GroupFilter, GroupPosition, GroupState, GroupSummary, GroupView, MemberView};
pub use line::{FeedBatch, FeedEvent, Line};
pub use page_view::{ComparedPage, PageView};
pub use question::{
    AGE_MAX, AgeError, AnswerTimes, DatedAnswer, LEASE, OWNERS_LAG, Question, ReadTarget, explain_age,
};
pub use repair::{
    InvalidRepairId, InvalidRepairPosition, REPAIR_URLS_KEPT, RepairDetails, RepairEntry, RepairId,
    RepairPosition, RepairReport, RepairTrail, limit_urls,
};
pub use scan::PageScan;
pub use submission::{Body, Submission};
pub use totals::{ShardTotals, Totals};
