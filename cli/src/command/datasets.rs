//! Commands on data sets in files: they need no server and no collection.

pub(crate) mod dedup;
pub(crate) mod explain;
pub(crate) mod overlap;
pub(crate) mod pilot;
pub(crate) mod plan;
pub(crate) mod policy_tables;
pub(crate) mod winners;
