//! What log servers and streams are and what they report: which servers answer, and what each stream contains.

use std::time::Duration;

/// Time without contact after which the leader of a stream counts as cut off from a server. A leader hears
/// from each server once per second, and the other servers elect another leader after four seconds at the
/// earliest.
pub const LED: Duration = Duration::from_secs(3);

/// Settings of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamSettings {
    /// Number of servers with a copy: an odd number from 1 to 5.
    pub replicas: usize,
    /// Size in bytes above which appends are refused.
    pub max_bytes: u64,
}

/// A log server, as it describes itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// Name of the server.
    pub name: String,
    /// Version of the server, such as 2.15.1.
    pub version: (u32, u32, u32),
    /// Maximum length of a message that the server accepts, in bytes.
    pub message_bytes_max: usize,
}

/// State of the log servers and of the streams.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineState {
    /// Servers, in the order of the request.
    pub servers: Vec<ServerState>,
    /// Streams, in the order of the request.
    pub streams: Vec<StreamState>,
}

/// Bytes that a connection to the log servers has transferred since its creation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogTraffic {
    /// All bytes that the connection has received.
    pub received: u64,
    /// Bytes of the entries and news that the connection has sent.
    pub sent: u64,
}

/// State of a server, queried at its address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerState {
    /// Address of the server.
    pub url: String,
    /// Name and version of the server, or why it does not answer.
    pub greeting: Result<Greeting, String>,
}

/// What a server reports about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Greeting {
    /// Name of the server.
    pub name: String,
    /// Version of the server.
    pub version: String,
    /// Whether the server can store streams. A server that can no longer write to its disk stops doing so.
    pub has_jetstream: bool,
}

/// State of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamState {
    /// Name of the stream.
    pub stream: String,
    /// What the stream contains, or why its leader does not answer.
    pub contents: Result<StreamContents, String>,
}

/// What a stream contains.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamContents {
    /// Size of the entries and of the log's own data, in bytes.
    pub bytes: u64,
    /// Size in bytes above which appends are refused.
    pub bytes_max: Option<u64>,
    /// Sequence number of the first entry. In an empty stream it is one more than `last`.
    pub first: u64,
    /// Sequence number of the last entry.
    pub last: u64,
    /// Number of servers that should have a copy.
    pub replicas: usize,
    /// Whether the server that stores the stream belongs to no cluster. It then has the only copy, and
    /// reports no leader.
    pub is_standalone: bool,
    /// The server of a cluster that orders the entries. `None` while the stream has no leader.
    pub leader: Option<String>,
    /// Other servers that have a copy.
    pub followers: Vec<Follower>,
}

/// A copy of a stream on a server that is not the leader.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Follower {
    /// Name of the server.
    pub server: String,
    /// Whether the copy is online and complete except for the newest entries.
    pub is_current: bool,
    /// Number of entries that the copy still lacks.
    pub lag: u64,
}

impl StreamContents {
    /// Returns the number of copies that are online and complete except for the newest entries, including the
    /// copy of the leader. Returns 0 while a stream in a cluster has no leader.
    #[must_use]
    pub fn current_copies(&self) -> usize {
        if self.is_standalone {
            return 1;
        }
        if self.leader.is_none() {
            return 0;
        }
        1 + self.followers.iter().filter(|follower| follower.is_current).count()
    }
}
