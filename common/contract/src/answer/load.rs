//! Answers about the distribution of the index: the load of partitions and nodes, the history of the load, and
//! the mapping of partitions to nodes with its alternatives.

mod balance;
mod history;
mod mapping;

pub use balance::{LoadBalance, LoadPoint, NodeLoad, ShardAssignment};
pub use history::{LoadHistory, LoadSample, PartitionSample};
pub use mapping::{PresentMapping, WhatIfReport};
