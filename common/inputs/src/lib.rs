//! The inputs of a command: which files, objects and directories the inputs name, which fields their records have, how the records are read,
//! and how bad records are counted and written out. The crate does not know what becomes of a record.
//!
//! | module | responsibility |
//! |---|---|
//! | [`arguments`] | the inputs as arguments of a command |
//! | [`sources`], [`objects`], [`spool`] | files, directories, patterns, standard input, and stores of objects |
//! | [`records`] | names and fields of records; bad records |
//! | [`reading`] | records in order, in batches, as hashed lines |
//! | [`ingested`], [`version`] | files that an earlier run has read |
//! | [`tally`] | counts of what was read |
//! | [`processor`] | number of processors, and processor time |
#![forbid(unsafe_code)]

pub mod arguments;
pub mod ingested;
pub mod objects;
pub mod processor;
pub mod reading;
pub mod records;
pub mod sources;
pub mod spool;
pub mod tally;
pub mod version;
