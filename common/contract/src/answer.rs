//! The JSON answers of the public HTTP contract. The server that writes an answer and the programs that read
//! it share one type.
//!
//! Tests pin the JSON text of every answer, so nobody renames or reorders a field unnoticed. A reader ignores
//! unknown fields and therefore understands the answers of a newer server. A field that may be absent is an
//! `Option` or has a default.

mod advice;
mod explanation;
mod feed;
mod form;
mod group;
mod intake;
mod load;
mod main_content;
mod operation;
mod problem;
mod repair;
mod savings;
#[cfg(test)]
mod tests;
mod winners;

pub use advice::{Advice, ProbeAnswer, StatusAnswer, StatusAnswers};
pub use explanation::{
    ComparisonMeasures, ContentDetails, CriterionResult, ExplainedPage, Explanation, PrecedingKeptPage,
    ShingleComparison, ShingleExamples,
};
pub use feed::{ChangeLine, ChangesAnswer, ExportLine};
pub use form::{GroupIdForm, MarketForm, PageUrlForm, RepairIdForm, SimilarityForm, TimeForm};
pub use group::{GroupList, GroupOverview, GroupPage, GroupSizes, ListedMember, SizeClass};
pub use intake::{AcceptedPage, LineAnswer, LineCode, LineError, PurgeResult, RejectedLine};
pub use load::{
    LoadBalance, LoadHistory, LoadPoint, LoadSample, NodeLoad, PartitionSample, PresentMapping,
    ShardAssignment, WhatIfReport,
};
pub use main_content::{MainContentAnswer, OmittedPart};
pub use operation::{
    Attention, ClusterNode, ClusterRange, ClusterStatus, DecisionClass, DecisionWaits, EngineServer,
    EngineStatus, EngineStream, FlushResult, NodeRole, Quality, Standby,
};
pub use problem::ProblemDetails;
pub use repair::{AppliedRepair, AppliedRepairUrls, RepairResult, RepairResults, Trail};
pub use savings::{HostMirror, RemovableShare, Savings};
pub use winners::WinnerRules;
