//! Commands on data sets in files. They need neither a server nor a collection.

pub(crate) mod dedup;
pub(crate) mod explain;
pub(crate) mod overlap;
pub(crate) mod pilot;
pub(crate) mod plan;
pub(crate) mod policy_tables;
pub(crate) mod winners;
