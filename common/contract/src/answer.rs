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

pub use advice::{Advice, Probed, StatusAnswer, StatusAnswers};
pub use explanation::{Content, Criterion, Examples, Explanation, KeptBefore, Measures, Shingles, Side};
pub use feed::{ChangeLine, ChangesAnswer, ExportLine};
pub use form::{GroupIdForm, MarketForm, PageUrlForm, RepairIdForm, SimilarityForm, TimeForm};
pub use group::{Group, GroupList, GroupPage, GroupSizes, Member, SizeClass};
pub use intake::{LineAnswer, LineCode, LineError, NotTaken, Purged, Taken};
pub use load::{
    LoadBalance, LoadHistory, LoadPoint, LoadSample, NodeLoad, PartitionSample, Present, ShardAssignment,
    WhatIfs,
};
pub use main_content::{LeftOut, MainContent};
pub use operation::{
    Attention, ClusterNode, ClusterRange, ClusterStatus, DecisionClass, Decisions, EngineServer,
    EngineStatus, EngineStream, Flushed, NodeRole, Quality, Standby,
};
pub use problem::Problem;
pub use repair::{AppliedRepair, AppliedRepairUrls, Repair, Repairs, Trail};
pub use savings::{Mirror, Saving, Savings};
pub use winners::Winners;
