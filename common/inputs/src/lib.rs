//! Reads the inputs of a command. The crate finds the files, objects and directories that the inputs name,
//! and the fields that their records have. It reads the records, and counts and writes bad ones. It does not
//! know what becomes of a record.
//!
//! | module | responsibility |
//! |---|---|
//! | [`arguments`] | the inputs as arguments of a command |
//! | [`sources`], [`objects`], [`spool`] | files, directories, patterns, standard input, object stores |
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
