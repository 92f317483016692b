//! Storage of a range: the log that makes a commit durable, the rows, the signatures, and the files that hold them.

pub(crate) mod database;
pub(crate) mod files;
pub(crate) mod log;
pub(crate) mod progress;
pub(crate) mod range_files;
pub(crate) mod signatures;
pub(crate) mod store;
