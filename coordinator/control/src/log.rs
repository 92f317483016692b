//! The log that a cluster is replicated through: where its servers are, how it is kept, and what its streams are called.

pub mod monitored;
pub mod monitors;
pub mod streams;

use std::time::Duration;

use doppel_model::RangeId;
use doppel_protocol::Settlement;
use doppel_shared_log::StreamSettings;
use reqwest::Url;
use serde::{Deserialize, Serialize};

/// The scheme of a server's URL, and that of its monitor.
const SCHEME: &str = "nats://";
const MONITOR_SCHEME: &str = "http://";

const SERVERS_MAX: usize = 16;

/// Of each range's stream, unless the description says otherwise: days of writing, between which replicas catch up and it is
/// trimmed.
pub const MAX_BYTES: u64 = 8 << 30;

/// The least that a stream may have: some entries of the longest kind.
pub const MAX_BYTES_LEAST: u64 = 16 << 20;

const REPLICAS: u16 = 3;

/// Unless the description says otherwise: longer than a machine takes to be started anew.
pub const WINDOW_MINUTES: u16 = 60;

/// A day: what was purged is to leave the streams.
pub const WINDOW_MINUTES_MAX: u16 = 24 * 60;

/// Digits of a cluster's id in the names of its streams: enough to tell clusters apart that share servers.
const ID_DIGITS: usize = 12;

/// How the log of a cluster is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogSettings {
    /// URLs at which the servers say how they are set, such as `http://10.0.0.1:8222`; one for each, or none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub monitors: Vec<String>,
    /// Servers that have a copy of a stream.
    #[serde(default = "replicas")]
    pub replicas: u16,
    /// When a commit is settled.
    pub settlement: Settlement,
    /// Bytes past which the stream of a range refuses appends.
    #[serde(default = "max_bytes")]
    pub max_bytes: u64,
    /// Minutes for which a stream keeps what all replicas have.
    #[serde(default = "window_minutes")]
    pub window_minutes: u16,
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
    pub fn window(&self) -> Duration {
        Duration::from_secs(60 * u64::from(self.window_minutes))
    }

    /// Whether its parts go together.
    pub(super) fn check(&self) -> Result<(), String> {
        if self.monitors.len() > SERVERS_MAX {
            return Err(format!("log: monitors: {SERVERS_MAX} URLs at most are expected"));
        }
        for (at, monitor) in self.monitors.iter().enumerate() {
            check_monitor(monitor).map_err(|reason| format!("log: monitors: URL {}: {reason}", at + 1))?;
            if self.monitors[..at].contains(monitor) {
                return Err(format!("log: monitors: {monitor} is there twice"));
            }
        }
        if self.settlement == Settlement::Log && self.monitors.is_empty() {
            return Err("log: monitors: with settlement `log` one URL for each log server is expected, for only they can say \
                        that they sync what they acknowledge"
                .to_owned());
        }
        if ![1, 3, 5].contains(&self.replicas) {
            return Err(format!("log: replicas: 1, 3 or 5 is expected, and not {}", self.replicas));
        }
        if self.settlement == Settlement::Log && self.monitors.len() >= 3 && self.replicas < 3 {
            return Err("log: replicas: with settlement `log` and three log servers or more, 3 copies at least are expected: \
                        otherwise the only durable one of a write is on one server of several"
                .to_owned());
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

/// Whether these are the URLs of servers.
pub(super) fn check_servers(servers: &[String]) -> Result<(), String> {
    if !(1..=SERVERS_MAX).contains(&servers.len()) {
        return Err(format!("log: servers: 1 to {SERVERS_MAX} URLs are expected"));
    }
    for (at, server) in servers.iter().enumerate() {
        // What may be a password is not repeated.
        check_server(server).map_err(|reason| format!("log: servers: URL {}: {reason}", at + 1))?;
        if servers[..at].contains(server) {
            return Err(format!("log: servers: {server} is there twice"));
        }
    }
    Ok(())
}

/// Whether a text is the URL of a server, and nothing more.
pub fn check_server(text: &str) -> Result<(), String> {
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

/// Whether a text is the URL of a server's monitor, and nothing more.
pub fn check_monitor(text: &str) -> Result<(), String> {
    let address = text.strip_prefix(MONITOR_SCHEME).unwrap_or_default();
    let is_one = is_url(MONITOR_SCHEME, address.strip_suffix('/').unwrap_or(address));
    if is_one { Ok(()) } else { Err(format!("a URL such as {MONITOR_SCHEME}10.0.0.1:8222 is expected")) }
}

/// Whether a text is a host and a port, as they are in a URL of this scheme.
pub(super) fn is_url(scheme: &str, text: &str) -> bool {
    let written = format!("{scheme}{text}/");
    let url = Url::parse(&written).ok().filter(|url| url.as_str() == written);
    // Port 80 is not written in a URL.
    let port = text.rsplit_once(':').and_then(|(_, port)| port.parse::<u16>().ok());
    port.is_some_and(|port| port > 0)
        && url.is_some_and(|url| url.port() == port && url.username().is_empty() && url.password().is_none())
}

/// The start of all names that a cluster has at the servers.
pub fn prefix(cluster: &str) -> String {
    format!("doppel-{}", cluster.get(..ID_DIGITS).unwrap_or(cluster))
}

/// The stream of a range.
pub fn stream(cluster: &str, range: RangeId) -> String {
    format!("{}-range-{range}", prefix(cluster))
}

/// The streams of all ranges, by their numbers.
pub fn streams(cluster: &str, ranges: u16) -> Vec<String> {
    (0..ranges).map(|range| stream(cluster, RangeId(range))).collect()
}

/// All streams of a cluster: those of its ranges, and META.
pub fn all_streams(cluster: &str, ranges: u16) -> Vec<String> {
    let mut all = streams(cluster, ranges);
    all.push(meta(cluster));
    all
}

/// The stream that has the description of the cluster.
pub fn meta(cluster: &str) -> String {
    format!("{}-meta", prefix(cluster))
}

/// The subject of news between the nodes.
pub fn beats(cluster: &str) -> String {
    format!("{}.beats", prefix(cluster))
}

/// The subject on which all processes say which description they run with.
pub fn processes(cluster: &str) -> String {
    format!("{}.processes", prefix(cluster))
}
