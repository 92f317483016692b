//! The public contract of the HTTP service: what a client sees.
//!
//! The crate contains the answers, the form of a submitted page, the vocabulary of both (statuses, outcomes,
//! rules, markets), and a client. The server and the programs that call it share these types. The crate does
//! not know how the roles of the service talk to each other; that is in `doppel_protocol`.
#![forbid(unsafe_code)]

pub mod answer;
#[cfg(feature = "client")]
pub mod client;
mod counters;
mod load_report;
mod market;
mod outcome;
pub mod page;
mod rebalance;
mod status;
mod trail_event;
mod winner_rule;
pub mod words;

pub use counters::{Backlog, CROWDED_REDIRECTS, Counters};
pub use load_report::{LengthBox, LoadReport, PartitionLoad};
pub use market::{HostSuffix, Market, MarketError, Markets};
pub use outcome::SubmissionOutcome;
pub use rebalance::{PartitionMove, RebalanceOutcome, RebalancePlan, RebalanceProgress, RebalanceRequest};
pub use status::{REDIRECT_HOPS_MAX, Status, UnresolvedReason};
pub use trail_event::TrailEvent;
pub use winner_rule::WinnerRule;
