//! The records of a data set: pages with signatures read from inputs, the counts of kept and removed records,
//! the files of results, and the summary and report of a run.
//!
//! Every record is counted once. Annotations name, for every removed duplicate, the record that stands for
//! it.
#![forbid(unsafe_code)]

pub mod accounts;
pub mod collection_groups;
pub mod extracted;
pub mod extraction_log;
pub mod learnt_tables;
pub mod reference;
pub mod report;
pub mod results;
pub mod summary;
pub mod weights;
