//! Queries the state of the log servers. The state is for people and monitoring, and no decision depends on
//! it.
//!
//! To query a server, this module opens a connection, because a server greets each client with its name and
//! version. The leader of a stream describes it, so a stream without a leader has no description.

use std::sync::atomic::Ordering;
use std::time::Duration;

use async_nats::ServerInfo;
use async_nats::jetstream::stream::{Info, PeerInfo};
use futures_util::future::{join, join_all};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::LogEngine;
use crate::engine_state::{
    EngineState, Follower, Greeting, LogTraffic, ServerState, StreamContents, StreamState,
};

/// Prefix of every greeting.
const GREETING: &str = "INFO ";
/// Maximum length of a greeting in bytes.
const GREETING_BYTES_MAX: u64 = 64 << 10;

/// Default port of the servers.
const PORT: u16 = 4222;

/// Number of entries that a copy may lack and still count as current. While writers append many entries, a
/// copy on a slower server always lacks some.
const LAG: u64 = 100;

/// Time without contact after which a copy counts as offline. The log servers use an equal time.
const OFFLINE_AFTER: Duration = Duration::from_secs(10);

impl LogEngine {
    /// Queries all servers and streams in parallel. A server or stream that does not answer within `limit`
    /// has an error as its state.
    #[must_use]
    pub fn state(&self, servers: &[String], streams: &[String], limit: Duration) -> EngineState {
        let greet = servers.iter().map(|url| async move {
            let greeting = timeout(limit, greeting(url)).await;
            let late = || Err(format!("no answer in {} s", limit.as_secs_f32()));
            ServerState { url: url.clone(), greeting: greeting.unwrap_or_else(|_| late()) }
        });
        let describe = streams.iter().map(|stream| async move {
            let contents = match timeout(limit, self.context().get_stream(stream)).await {
                Ok(Ok(stream)) => Ok(contents(stream.cached_info())),
                Ok(Err(error)) => Err(error.to_string()),
                Err(_) => Err(format!("no answer in {} s", limit.as_secs_f32())),
            };
            StreamState { stream: stream.clone(), contents }
        });
        let (servers, streams) = self.handle().block_on(join(join_all(greet), join_all(describe)));
        EngineState { servers, streams }
    }

    /// Returns the traffic of this connection since its creation.
    #[must_use]
    pub fn traffic(&self) -> LogTraffic {
        let received = self.context().client().statistics().in_bytes.load(Ordering::Relaxed);
        LogTraffic { received, sent: self.sent().bytes() }
    }
}

/// Connects to a server and reads its greeting.
async fn greeting(url: &str) -> Result<Greeting, String> {
    let host = url.split_once("://").map_or(url, |(_, host)| host).trim_end_matches('/');
    let has_port = host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    let address = if has_port { host.to_owned() } else { format!("{host}:{PORT}") };
    let connection = TcpStream::connect(address).await.map_err(|error| error.to_string())?;
    let mut line = String::new();
    let mut reader = BufReader::new(connection.take(GREETING_BYTES_MAX));
    reader.read_line(&mut line).await.map_err(|error| error.to_string())?;
    parse_greeting(&line)
}

fn parse_greeting(line: &str) -> Result<Greeting, String> {
    let not_a_server = || "the server at this address is not a log server".to_owned();
    let info = line.strip_prefix(GREETING).ok_or_else(not_a_server)?;
    let info: ServerInfo = serde_json::from_str(info.trim()).map_err(|_| not_a_server())?;
    Ok(Greeting { name: info.server_name, version: info.version, has_jetstream: info.jetstream })
}

fn contents(info: &Info) -> StreamContents {
    let cluster = info.cluster.as_ref();
    StreamContents {
        bytes: info.state.bytes,
        bytes_max: u64::try_from(info.config.max_bytes).ok().filter(|max| *max > 0),
        // An empty stream has a first sequence of 0 until its first entry.
        first: info.state.first_sequence.max(1),
        last: info.state.last_sequence,
        replicas: info.config.num_replicas,
        is_standalone: cluster.is_none(),
        leader: cluster.and_then(|cluster| cluster.leader.clone()).filter(|leader| !leader.is_empty()),
        followers: cluster.into_iter().flat_map(|cluster| &cluster.replicas).map(follower).collect(),
    }
}

fn follower(peer: &PeerInfo) -> Follower {
    let lag = peer.lag.unwrap_or(0);
    // The servers do not count a copy as current if it briefly lags by a few entries.
    let is_current = has_been_heard(peer, OFFLINE_AFTER) && (peer.current || lag <= LAG);
    Follower { server: peer.name.clone(), is_current, lag }
}

/// Whether the leader has heard from a follower within the time `within`. If the leader has heard nothing
/// since its election, `active` is 0 and the follower is not marked offline (nats-server 2.15.1). Directly
/// after contact, `active` can also be 0. An `active` of 0 therefore counts as no contact.
pub(super) fn has_been_heard(peer: &PeerInfo, within: Duration) -> bool {
    !peer.offline && !peer.active.is_zero() && peer.active < within
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_greeting_is_parsed() {
        let line =
            r#"INFO {"server_name":"log-1","version":"2.9.10","jetstream":true,"max_payload":1048576} "#;
        let greeting =
            Greeting { name: "log-1".to_owned(), version: "2.9.10".to_owned(), has_jetstream: true };
        assert_eq!(parse_greeting(&format!("{line}\r\n")), Ok(greeting));
        for other in ["", "HTTP/1.1 400 Bad Request\r\n", "INFO nonsense\r\n"] {
            assert!(parse_greeting(other).unwrap_err().contains("not a log server"), "{other}");
        }
    }

    #[test]
    fn a_copy_is_current_while_it_is_online_and_hardly_behind() {
        let peer = |current, seconds, offline, lag| PeerInfo {
            name: "log-2".to_owned(),
            current,
            active: Duration::from_secs_f64(seconds),
            offline,
            lag,
        };
        for (peer, expected) in [
            (peer(true, 0.2, false, None), true),
            (peer(false, 0.2, false, Some(LAG)), true),
            (peer(false, 0.2, false, Some(LAG + 1)), false),
            (peer(true, 0.2, true, None), false),
            (peer(false, 10.0, false, None), false),
            // The leader has never heard from this follower since its election.
            (peer(false, 0.0, false, Some(3)), false),
        ] {
            assert_eq!(follower(&peer).is_current, expected, "{peer:?}");
        }
    }
}
