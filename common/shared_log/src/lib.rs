//! A log that several processes share. A writer names the last entry that it has seen. If two writers name
//! the same entry, only one append succeeds.
//!
//! | module | responsibility |
//! |---|---|
//! | `log` | the interface of a log |
//! | `jetstream` | the log as a stream of NATS JetStream, which replicates the log and orders the appends |
//! | `engine_state`, `engine_error` | what log servers report, and why they cannot be used |
//! | `without_nats` | takes the place of `jetstream` without the feature `nats`, and refuses log servers |
//! | `announced` | entries that writers announced to readers |
//! | `reports` | progress that readers reported to writers |
//! | `memory` | the log in memory, with the faults of a real log, for tests |
//! | `conformance` | the guarantees of every log, as a test suite |
//!
//! Invariants of every log:
//! - Entries have consecutive sequence numbers. An entry that was read never changes.
//! - A reader that reads far enough reads every acknowledged append.
//! - An append that names a wrong last entry adds nothing, then or later.
//! - An entry is announced only after it was acknowledged. An announcement may be lost, late, or repeated,
//!   so it does not prove the end of the log.
//! - A report comes from the reader itself. It may be lost, late, or repeated.
//! - An append without an answer adds the entry once or not at all, even if the writer repeats it at the
//!   same position.

#[cfg(any(test, feature = "conformance", feature = "nats"))]
mod announced;
#[cfg(any(test, feature = "conformance"))]
pub mod conformance;
mod engine_error;
mod engine_state;
#[cfg(feature = "nats")]
mod jetstream;
mod log;
#[cfg(any(test, feature = "conformance"))]
pub mod memory;
#[cfg(any(test, feature = "conformance", feature = "nats"))]
mod reports;
#[cfg(not(feature = "nats"))]
mod without_nats;

pub use engine_error::EngineError;
pub use engine_state::{
    EngineState, Follower, Greeting, LED, LogTraffic, Server, ServerState, StreamContents, StreamSettings,
    StreamState,
};
#[cfg(feature = "nats")]
pub use jetstream::{JetStreamLog, LogEngine, NewsChannel, NewsSubscription};
pub use log::{AppendError, Extent, LogEntry, LogError, Sequence, SharedLog, append_surely};
#[cfg(not(feature = "nats"))]
pub use without_nats::{JetStreamLog, LogEngine, NewsChannel, NewsSubscription};
