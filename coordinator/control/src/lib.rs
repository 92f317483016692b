//! The control plane of a cluster: its description in the META stream, the placement of replicas, the
//! settings and monitors of its log, and the status of all its nodes.
//!
//! The control plane plans and watches. It never stores a page and never answers a client.
#![forbid(unsafe_code)]

pub mod cluster;
pub mod connection;
pub mod description;
pub mod layout;
pub mod log;
pub mod meta;
pub mod node_directory;
pub mod startup_wait;
pub mod status;
pub mod watch;
