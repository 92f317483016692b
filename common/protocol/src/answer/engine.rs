//! The log that ranges are replicated through: its servers, and the stream of each range. A part of the answer of
//! `GET /v1/cluster`.

use doppel_model::RangeId;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The log of a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EngineStatus {
    /// The servers that the file of the cluster names, in its order.
    pub servers: Vec<EngineServer>,
    /// The stream of every range, in order.
    pub streams: Vec<EngineStream>,
}

/// A server of the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EngineServer {
    /// The name that it gives itself; null when it does not answer.
    pub name: Option<String>,
    /// Where it is reached.
    pub address: String,
    /// Its version; null when it does not answer.
    pub version: Option<String>,
    /// Whether it has answered, within three seconds.
    pub answers: bool,
    /// Why not.
    pub reason: Option<String>,
}

/// The stream of a range. What its leader has not said is null.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EngineStream {
    /// The range.
    #[schema(value_type = u16)]
    pub range: RangeId,
    /// Its name at the servers.
    pub stream: String,
    /// Bytes in it.
    pub bytes: Option<u64>,
    /// Bytes past which it takes nothing; null also where there is no limit.
    pub limit: Option<u64>,
    /// The sequence of its first entry; one more than that of the last where it is empty.
    pub first: Option<u64>,
    /// The sequence of its last entry.
    pub last: Option<u64>,
    /// The server that orders its entries; null also in a log of a single server.
    pub leader: Option<String>,
    /// Copies that are to be there.
    pub copies: u64,
    /// Copies that are there and have all but the newest entries.
    pub current_copies: Option<u64>,
    /// The servers whose copies do not.
    pub behind: Vec<String>,
    /// Why its leader says nothing.
    pub reason: Option<String>,
}
