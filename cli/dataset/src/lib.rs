//! The records of a data set: pages with signatures from inputs, the account of what became of each record, and the files of results.
//!
//! Every record is counted once, and every record that results leave out names the record that stands for it.
#![forbid(unsafe_code)]

pub mod accounts;
pub mod extracted;
pub mod extraction_log;
pub mod results;
pub mod weights;
