//! The records of a data set: pages with signatures read from inputs, the counts of kept and removed records,
//! and the files of results.
//!
//! Every record is counted once. Annotations name, for every removed duplicate, the record that stands for
//! it.
#![forbid(unsafe_code)]

pub mod accounts;
pub mod extracted;
pub mod extraction_log;
pub mod results;
pub mod weights;
