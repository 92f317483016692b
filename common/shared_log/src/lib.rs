//! A log that several processes share: whoever appends names the entry that it has seen last, and of two that name the same
//! one only one succeeds.
//!
//! | module | what |
//! |---|---|
//! | `log` | the log as its users see it |
//! | `jetstream` | the log as a stream of NATS JetStream, which replicates it and orders appends |
//! | `told` | entries that writers tell readers of |
//! | `reports` | what readers tell writers that they have |
//! | `memory` | the log in memory, with the faults that a real one has, for tests |
//! | `conformance` | what every log keeps, as a suite of tests |
//!
//! Invariants of every log:
//! - entries have consecutive sequences, and one that was read is never another one later;
//! - an append that was acknowledged is read by all that read as far;
//! - an append that expects another last entry than there is adds nothing, then or later;
//! - what is told of an entry is told after it was acknowledged; it may be lost, late, or repeated, so it shows no end;
//! - what a reader reports it has said itself; it may be lost, late, or repeated;
//! - an append without an answer adds the entry once or not at all, also when it is made again in the same place.

#[cfg(any(test, feature = "conformance"))]
pub mod conformance;
mod jetstream;
mod log;
#[cfg(any(test, feature = "conformance"))]
pub mod memory;
mod reports;
mod told;

pub use jetstream::{
    Bulletin, Engine, EngineError, EngineState, Follower, Greeting, JetStreamLog, LED, Listening, Server,
    ServerState, StreamContents, StreamSettings, StreamState,
};
pub use log::{AppendError, Entry, Extent, LogError, Sequence, SharedLog, append_surely};
