//! The log that replicates the ranges of a cluster: its servers and the stream of each range. This is part of
//! the answer of `GET /v1/cluster`.

use doppel_model::RangeId;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// State of the log that replicates the ranges.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EngineStatus {
    /// Servers of the log, in the order of the cluster file.
    pub servers: Vec<EngineServer>,
    /// The stream of every range, in ascending order of ranges.
    pub streams: Vec<EngineStream>,
}

/// A server of the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EngineServer {
    /// Name that the server reports; null if the server does not answer.
    pub name: Option<String>,
    /// Address of the server.
    pub address: String,
    /// Version of the server; null if the server does not answer.
    pub version: Option<String>,
    /// Whether the server answered within three seconds.
    pub answers: bool,
    /// Why the server did not answer.
    pub reason: Option<String>,
}

/// The stream of a range. A field is null if the leader of the stream did not report it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EngineStream {
    /// Number of the range.
    #[schema(value_type = u16)]
    pub range: RangeId,
    /// Name of the stream on the log servers.
    pub stream: String,
    /// Size of the stream in bytes.
    pub bytes: Option<u64>,
    /// Size limit in bytes; a full stream refuses entries. Also null if the stream has no limit.
    pub limit: Option<u64>,
    /// Sequence number of the first entry. For an empty stream, one more than the number of the last entry.
    pub first: Option<u64>,
    /// Sequence number of the last entry.
    pub last: Option<u64>,
    /// The server that orders the entries. Also null for a log with a single server.
    pub leader: Option<String>,
    /// Number of copies that the stream should have.
    pub copies: u64,
    /// Number of copies that are online and complete except for the newest entries.
    pub current_copies: Option<u64>,
    /// Servers whose copies are offline or incomplete.
    pub behind: Vec<String>,
    /// Why the leader of the stream did not report.
    pub reason: Option<String>,
}
