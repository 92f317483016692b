//! The log through which a cluster is replicated: the URLs of its servers, its settings, and the names of its
//! streams.

pub mod monitored;
pub mod monitors;
pub mod streams;

use std::time::Duration;

use doppel_model::RangeId;
use doppel_protocol::Settlement;
use doppel_shared_log::StreamSettings;
use reqwest::Url;
use serde::{Deserialize, Serialize};

/// Scheme of the URL of a log server.
const SCHEME: &str = "nats://";
/// Scheme of the URL of a log server's monitor.
const MONITOR_SCHEME: &str = "http://";

const SERVERS_MAX: usize = 16;

/// Default size limit of the stream of a range, in bytes. The limit is enough for days of writing, in which
/// replicas catch up and the stream is trimmed.
pub const MAX_BYTES: u64 = 8 << 30;

/// Smallest allowed size limit of a stream, in bytes: a few of the longest entries.
pub const MAX_BYTES_LEAST: u64 = 16 << 20;

const REPLICAS: u16 = 3;

/// Default of [`LogSettings::window_minutes`]: longer than a machine takes to restart.
pub const WINDOW_MINUTES: u16 = 60;

/// Largest allowed [`LogSettings::window_minutes`]: a day, because purged data must leave the streams.
pub const WINDOW_MINUTES_MAX: u16 = 24 * 60;

/// Number of digits of a cluster's id in the names of its streams: enough to distinguish clusters that share
/// servers.
const ID_DIGITS: usize = 12;

/// Settings of the log of a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogSettings {
    /// URLs of the monitors of the log servers, such as `http://10.0.0.1:8222`; one for each server, or none
    /// at all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub monitors: Vec<String>,
    /// Number of servers that store a copy of each stream: 1, 3 or 5.
    #[serde(default = "replicas")]
    pub replicas: u16,
    /// When a commit is settled.
    pub settlement: Settlement,
    /// Size of the stream of a range above which it refuses appends, in bytes.
    #[serde(default = "max_bytes")]
    pub max_bytes: u64,
    /// Minutes for which a stream keeps entries that all replicas have copied.
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
    /// Settings with which the stream of a range is created.
    pub(crate) fn stream_settings(&self) -> StreamSettings {
        StreamSettings { replicas: usize::from(self.replicas), max_bytes: self.max_bytes }
    }

    /// Time for which a stream keeps entries that all replicas have copied, as long as it has room.
    pub fn window(&self) -> Duration {
        Duration::from_secs(60 * u64::from(self.window_minutes))
    }

    /// Checks that the settings are consistent and in range.
    pub(super) fn check(&self) -> Result<(), String> {
        if self.monitors.len() > SERVERS_MAX {
            return Err(format!("log: monitors: {SERVERS_MAX} URLs at most are expected"));
        }
        for (at, monitor) in self.monitors.iter().enumerate() {
            check_monitor(monitor).map_err(|reason| format!("log: monitors: URL {}: {reason}", at + 1))?;
            if self.monitors[..at].contains(monitor) {
                return Err(format!("log: monitors: {monitor} is listed twice"));
            }
        }
        if self.settlement == Settlement::Log && self.monitors.is_empty() {
            return Err(
                "log: monitors: with settlement `log` one URL for each log server is expected, because only \
                        the monitors can confirm that the servers sync what they acknowledge"
                    .to_owned(),
            );
        }
        if ![1, 3, 5].contains(&self.replicas) {
            return Err(format!("log: replicas: 1, 3 or 5 is expected, and not {}", self.replicas));
        }
        if self.settlement == Settlement::Log && self.monitors.len() >= 3 && self.replicas < 3 {
            return Err(
                "log: replicas: with settlement `log` and three log servers or more, at least 3 copies are \
                        expected: otherwise the only durable copy of a write is on a single server"
                    .to_owned(),
            );
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

/// Checks that texts are the URLs of 1 to [`SERVERS_MAX`] different log servers.
pub(super) fn check_servers(servers: &[String]) -> Result<(), String> {
    if !(1..=SERVERS_MAX).contains(&servers.len()) {
        return Err(format!("log: servers: 1 to {SERVERS_MAX} URLs are expected"));
    }
    for (at, server) in servers.iter().enumerate() {
        // The URL may contain a password, so the message does not repeat it.
        check_server(server).map_err(|reason| format!("log: servers: URL {}: {reason}", at + 1))?;
        if servers[..at].contains(server) {
            return Err(format!("log: servers: {server} is listed twice"));
        }
    }
    Ok(())
}

/// Checks that a text is the URL of a log server, without credentials, path or query.
pub fn check_server(text: &str) -> Result<(), String> {
    let expected = || format!("a URL such as {SCHEME}10.0.0.1:4222 is expected");
    if !text.starts_with(SCHEME) {
        return Err(expected());
    }
    let url = Url::parse(text).map_err(|_| expected())?;
    if !url.username().is_empty() || url.password().is_some() || text.contains('@') {
        return Err(format!(
            "credentials are not taken, because every process reads the file; {SCHEME}HOST:PORT is expected"
        ));
    }
    let has_host = url.host_str().is_some_and(|host| !host.is_empty());
    let has_more = !matches!(url.path(), "" | "/") || url.query().is_some() || url.fragment().is_some();
    if !has_host || has_more || url.port() == Some(0) {
        return Err(expected());
    }
    Ok(())
}

/// Checks that a text is the URL of a log server's monitor, without credentials, path or query.
pub fn check_monitor(text: &str) -> Result<(), String> {
    let address = text.strip_prefix(MONITOR_SCHEME).unwrap_or_default();
    let is_one = is_url(MONITOR_SCHEME, address.strip_suffix('/').unwrap_or(address));
    if is_one { Ok(()) } else { Err(format!("a URL such as {MONITOR_SCHEME}10.0.0.1:8222 is expected")) }
}

/// Whether a text is a host and a port, in the spelling of a URL with this scheme.
pub(super) fn is_url(scheme: &str, text: &str) -> bool {
    let written = format!("{scheme}{text}/");
    let url = Url::parse(&written).ok().filter(|url| url.as_str() == written);
    // A URL parser drops the default port 80, so the port is compared with the text.
    let port = text.rsplit_once(':').and_then(|(_, port)| port.parse::<u16>().ok());
    port.is_some_and(|port| port > 0)
        && url.is_some_and(|url| url.port() == port && url.username().is_empty() && url.password().is_none())
}

/// Prefix of the names of all streams and subjects of a cluster.
pub fn prefix(cluster: &str) -> String {
    format!("doppel-{}", cluster.get(..ID_DIGITS).unwrap_or(cluster))
}

/// Name of the stream of a range.
pub fn stream(cluster: &str, range: RangeId) -> String {
    format!("{}-range-{range}", prefix(cluster))
}

/// Names of the streams of all ranges, in the order of the ranges.
pub fn streams(cluster: &str, ranges: u16) -> Vec<String> {
    (0..ranges).map(|range| stream(cluster, RangeId(range))).collect()
}

/// Names of all streams of a cluster: the streams of its ranges, then META.
pub fn all_streams(cluster: &str, ranges: u16) -> Vec<String> {
    let mut all = streams(cluster, ranges);
    all.push(meta(cluster));
    all
}

/// Name of META, the stream that stores the description of the cluster.
pub fn meta(cluster: &str) -> String {
    format!("{}-meta", prefix(cluster))
}

/// Subject on which the nodes of tier 1 publish their beats.
pub fn beats(cluster: &str) -> String {
    format!("{}.beats", prefix(cluster))
}

/// Subject on which all processes publish the version of the description that they run with.
pub fn processes(cluster: &str) -> String {
    format!("{}.processes", prefix(cluster))
}
