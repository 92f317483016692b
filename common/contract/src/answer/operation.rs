//! Answers for the operator of a service: the state of the cluster and its shared log, the quality of the
//! groups, and the remaining work.

mod cluster;
mod engine;
mod flush;
mod quality;

pub use cluster::{Attention, ClusterNode, ClusterRange, ClusterStatus, NodeRole, Standby};
pub use engine::{EngineServer, EngineStatus, EngineStream};
pub use flush::FlushResult;
pub use quality::{DecisionClass, DecisionWaits, Quality};
