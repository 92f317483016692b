//! The data directory of a collection: its manifest, the files beside the tiers, and how a directory is made as a whole.

pub mod manifest;
pub mod named_by;
pub mod new_directory;
pub mod policy_tables;
pub mod served;
