//! The log that a cluster is replicated through: its servers, its streams, and which nodes have a replica of what it says.

use std::time::Duration;

use doppel_model::RangeId;
use doppel_shared_log::StreamSettings;
use doppel_tier1::Settlement;
use doppel_wire::NodeName;
use reqwest::Url;
use serde::{Deserialize, Serialize};

use super::{Cluster, Tier1Node};

/// The scheme of a server's URL.
const SCHEME: &str = "nats://";

const SERVERS_MAX: usize = 16;

/// Of each range's stream, unless the file says otherwise: days of writing, between which replicas catch up and it is trimmed.
pub(crate) const MAX_BYTES: u64 = 8 << 30;

/// The least that a stream may have: some entries of the longest kind.
pub(crate) const MAX_BYTES_LEAST: u64 = 16 << 20;

const REPLICAS: u16 = 3;

/// Unless the file says otherwise: longer than a machine takes to be started anew.
pub(crate) const WINDOW_MINUTES: u16 = 60;

/// A day: what was purged is to leave the streams.
pub(crate) const WINDOW_MINUTES_MAX: u16 = 24 * 60;

/// Digits of a cluster's id in the names of its streams: enough to tell clusters apart that share servers.
const ID_DIGITS: usize = 12;

/// The log of a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LogSettings {
    /// URLs of the servers, such as `nats://10.0.0.1:4222`.
    pub(crate) servers: Vec<String>,
    /// Servers that have a copy of a stream.
    #[serde(default = "replicas")]
    pub(crate) replicas: u16,
    /// When a commit is settled.
    #[serde(default)]
    pub(crate) settlement: Settlement,
    /// Bytes past which the stream of a range refuses appends.
    #[serde(default = "max_bytes")]
    pub(crate) max_bytes: u64,
    /// Minutes for which a stream keeps what all replicas have.
    #[serde(default = "window_minutes")]
    pub(crate) window_minutes: u16,
}

fn replicas() -> u16 {
    REPLICAS
}

fn max_bytes() -> u64 {
    MAX_BYTES
}

fn window_minutes() -> u16 {
    WINDOW_MINUTES
}

impl LogSettings {
    /// How the stream of a range is made.
    pub(crate) fn stream_settings(&self) -> StreamSettings {
        StreamSettings { replicas: usize::from(self.replicas), max_bytes: self.max_bytes }
    }

    /// How long a stream keeps what all replicas have, while there is room.
    pub(crate) fn window(&self) -> Duration {
        Duration::from_secs(u64::from(self.window_minutes) * 60)
    }

    /// Whether its parts can be used.
    ///
    /// # Errors
    /// When they cannot; with the reason.
    pub(super) fn check(&self) -> Result<(), String> {
        if !(1..=SERVERS_MAX).contains(&self.servers.len()) {
            return Err(format!("log: servers: 1 to {SERVERS_MAX} URLs are expected"));
        }
        for (at, server) in self.servers.iter().enumerate() {
            // What may be a password is not repeated.
            check_server(server).map_err(|reason| format!("log: servers: URL {}: {reason}", at + 1))?;
            if self.servers[..at].contains(server) {
                return Err(format!("log: servers: {server} is there twice"));
            }
        }
        if ![1, 3, 5].contains(&self.replicas) {
            return Err(format!("log: replicas: 1, 3 or 5 is expected, and not {}", self.replicas));
        }
        if !(MAX_BYTES_LEAST..=i64::MAX as u64).contains(&self.max_bytes) {
            return Err(format!("log: max_bytes: at least {MAX_BYTES_LEAST} is expected"));
        }
        if self.window_minutes > WINDOW_MINUTES_MAX {
            return Err(format!("log: window_minutes: at most {WINDOW_MINUTES_MAX} is expected"));
        }
        Ok(())
    }
}

/// Whether a text is the URL of a server, and nothing more.
pub(crate) fn check_server(text: &str) -> Result<(), String> {
    let expected = || format!("a URL such as {SCHEME}10.0.0.1:4222 is expected");
    if !text.starts_with(SCHEME) {
        return Err(expected());
    }
    let url = Url::parse(text).map_err(|_| expected())?;
    if !url.username().is_empty() || url.password().is_some() || text.contains('@') {
        return Err(format!(
            "credentials are not taken, for every process reads the file; {SCHEME}HOST:PORT is expected"
        ));
    }
    let has_host = url.host_str().is_some_and(|host| !host.is_empty());
    let has_more = !matches!(url.path(), "" | "/") || url.query().is_some() || url.fragment().is_some();
    if !has_host || has_more || url.port() == Some(0) {
        return Err(expected());
    }
    Ok(())
}

/// The start of all names that a cluster has at the servers.
fn prefix(cluster: &str) -> String {
    format!("doppel-{}", cluster.get(..ID_DIGITS).unwrap_or(cluster))
}

/// The stream of a range.
pub(super) fn stream(cluster: &str, range: RangeId) -> String {
    format!("{}-range-{range}", prefix(cluster))
}

impl Cluster {
    /// The log; without one nothing is replicated.
    pub(crate) fn log(&self) -> Option<&LogSettings> {
        self.log.as_ref()
    }

    /// The stream that is the log of a range.
    pub(crate) fn stream(&self, range: RangeId) -> String {
        stream(&self.id, range)
    }

    /// The streams of all ranges, by their numbers.
    pub(crate) fn streams(&self) -> Vec<String> {
        self.map.ranges().map(|range| self.stream(range)).collect()
    }

    /// The subject of news between the nodes.
    pub(crate) fn beats(&self) -> String {
        format!("{}.beats", prefix(&self.id))
    }

    /// All nodes of tier 1, in the order of the file.
    pub(crate) fn tier1_names(&self) -> Vec<NodeName> {
        self.tier1.iter().map(|node| node.name.clone()).collect()
    }

    /// The nodes that have a replica of a range: first the one that owns it unless something happens, then the others in
    /// the order of the file from that one on, so that the ranges of a node that is lost come to different nodes.
    pub(crate) fn replicas_of(&self, range: RangeId) -> Vec<NodeName> {
        let owner = self.tier1.iter().position(|node| node.ranges.contains(&range));
        let Some(owner) = owner else { return Vec::new() };
        let (before, from) = self.tier1.split_at(owner);
        let has = |node: &&Tier1Node| node.ranges.contains(&range) || node.standby.contains(&range);
        from.iter().chain(before).filter(has).map(|node| node.name.clone()).collect()
    }

    /// All ranges that a node has a replica of, by their numbers.
    pub(crate) fn ranges_of(&self, name: &NodeName) -> Vec<RangeId> {
        let node = self.tier1.iter().find(|node| node.name == *name);
        let mut ranges: Vec<RangeId> =
            node.into_iter().flat_map(|node| node.ranges.iter().chain(&node.standby)).copied().collect();
        ranges.sort_unstable();
        ranges
    }
}
