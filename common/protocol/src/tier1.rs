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

pub use api::{BATCH_MAX, LIST_MAX, LinesPage, SCAN_LINES_MAX, ScanPosition, Tier1Api, Tier1Reads};
pub use backup::{BACKUP_PIECE_BYTES, BackupError, BackupPiece, BackupStream, BackupSummary};
pub use decision_times::{CLASS_BOUNDS_MS, DecisionTimes};
pub use error::Tier1Error;
pub use group_view::{GroupFilter, GroupPosition, GroupState, GroupSummary, GroupView, MemberView};
pub use line::{Change, Changes, Line};
pub use page_view::{Compared, PageView};
pub use question::{AGE_MAX, Aged, LEASE, Moments, OWNERS_LAG, Question, TooOld, Whom, too_old};
pub use repair::{
    NoRepairId, NoRepairPosition, REPAIR_URLS_KEPT, RepairDetails, RepairEntry, RepairId, RepairPosition,
    RepairReport, RepairTrail, within,
};
pub use scan::Scan;
pub use submission::{Body, Submission};
pub use totals::{ShardTotals, Totals};
