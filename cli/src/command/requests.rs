//! Commands that send requests to a running server over HTTP.

pub(crate) mod changes;
pub(crate) mod delete;
pub(crate) mod export;
pub(crate) mod group;
pub(crate) mod load;
pub(crate) mod probe;
pub(crate) mod purge;
pub(crate) mod ready;
pub(crate) mod rebalance;
pub(crate) mod repair;
pub(crate) mod repairs;
pub(crate) mod report;
pub(crate) mod status;
