//! The data directory of a collection: its manifest, the files beside the tiers, and the creation of a
//! directory with all its contents by one command.

pub mod manifest;
pub mod named_by;
pub mod new_directory;
pub mod policy_tables;
pub mod served;
