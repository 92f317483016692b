//! Commands that run server processes or describe them: a single process, or the nodes of a cluster.

pub(crate) mod cluster;
pub(crate) mod coordinator;
pub(crate) mod dev_cluster;
pub(crate) mod init;
pub(crate) mod serve;
pub(crate) mod tier1;
pub(crate) mod tier2;
pub(crate) mod token;
