//! How the engine is: which servers answer, and what each stream has. It is asked for people and for monitoring, and decides
//! nothing.
//!
//! A server is asked by opening a connection to it: it greets whoever connects with its name and version. A stream is described
//! by its leader, so one without a leader is not described.

use std::sync::atomic::Ordering;
use std::time::Duration;

use async_nats::ServerInfo;
use async_nats::jetstream::stream::{Info, PeerInfo};
use futures_util::future::{join, join_all};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::Engine;

/// What every greeting begins with, and the longest that is read, in bytes.
const GREETING: &str = "INFO ";
const GREETING_BYTES_MAX: u64 = 64 << 10;

/// Where servers listen whose address names no port.
const PORT: u16 = 4222;

/// Entries that a copy may be behind: the slower ones always are while much is written.
const LAG: u64 = 100;

/// A copy that its leader has not heard of for so long is away, as the engine sees it, too.
const SILENCE: Duration = Duration::from_secs(10);

/// The servers and streams of an engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineState {
    /// In the order in which they were named.
    pub servers: Vec<ServerState>,
    /// In the order in which they were named.
    pub streams: Vec<StreamState>,
}

/// A server, asked at its address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerState {
    /// The address.
    pub url: String,
    /// Its name and version, or why it does not answer.
    pub greeting: Result<Greeting, String>,
}

/// What a server says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Greeting {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Whether it can keep streams. One that cannot write to its disk any more ends that.
    pub has_jetstream: bool,
}

/// A stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamState {
    /// Its name.
    pub stream: String,
    /// What it has, or why its leader does not say.
    pub contents: Result<StreamContents, String>,
}

/// What a stream has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamContents {
    /// Bytes of all entries.
    pub bytes: u64,
    /// Bytes past which appends are refused.
    pub bytes_max: Option<u64>,
    /// The sequences of the first entry and of the last; the first is one more than the last where there is none.
    pub first: u64,
    /// See [`first`](Self::first).
    pub last: u64,
    /// Servers that are to have a copy.
    pub replicas: usize,
    /// The server that orders the entries; none in an engine of one server, which says nothing of copies.
    pub leader: Option<String>,
    /// The other servers that have a copy.
    pub followers: Vec<Follower>,
}

/// A copy of a stream that is not its leader's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Follower {
    /// The server that has it.
    pub server: String,
    /// Whether it is there and has all but the newest entries.
    pub is_current: bool,
    /// Entries that it still has to take.
    pub lag: u64,
}

impl StreamContents {
    /// Copies that have what was acknowledged; without a leader none is known to.
    #[must_use]
    pub fn current_copies(&self) -> usize {
        if self.leader.is_none() {
            return 0;
        }
        1 + self.followers.iter().filter(|follower| follower.is_current).count()
    }
}

impl Engine {
    /// How servers and streams are, as far as they say so within `limit`. All are asked at once.
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

    /// Bytes that this connection has received since it was made, and bytes of the entries and news that it has sent.
    #[must_use]
    pub fn traffic(&self) -> (u64, u64) {
        let received = self.context().client().statistics().in_bytes.load(Ordering::Relaxed);
        (received, self.sent().bytes())
    }
}

/// Connects to a server and reads what it says first.
async fn greeting(url: &str) -> Result<Greeting, String> {
    let place = url.split_once("://").map_or(url, |(_, place)| place).trim_end_matches('/');
    let has_port = place.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    let address = if has_port { place.to_owned() } else { format!("{place}:{PORT}") };
    let connection = TcpStream::connect(address).await.map_err(|error| error.to_string())?;
    let mut line = String::new();
    let mut reader = BufReader::new(connection.take(GREETING_BYTES_MAX));
    reader.read_line(&mut line).await.map_err(|error| error.to_string())?;
    read(&line)
}

fn read(line: &str) -> Result<Greeting, String> {
    let no_server = || "what answers there is no log server".to_owned();
    let info = line.strip_prefix(GREETING).ok_or_else(no_server)?;
    let info: ServerInfo = serde_json::from_str(info.trim()).map_err(|_| no_server())?;
    Ok(Greeting { name: info.server_name, version: info.version, has_jetstream: info.jetstream })
}

fn contents(info: &Info) -> StreamContents {
    let cluster = info.cluster.as_ref();
    StreamContents {
        bytes: info.state.bytes,
        bytes_max: u64::try_from(info.config.max_bytes).ok().filter(|max| *max > 0),
        // An empty stream says 0 until its first entry.
        first: info.state.first_sequence.max(1),
        last: info.state.last_sequence,
        replicas: info.config.num_replicas,
        leader: cluster.and_then(|cluster| cluster.leader.clone()).filter(|leader| !leader.is_empty()),
        followers: cluster.into_iter().flat_map(|cluster| &cluster.replicas).map(follower).collect(),
    }
}

fn follower(peer: &PeerInfo) -> Follower {
    let lag = peer.lag.unwrap_or(0);
    // A copy that is some entries behind for a moment is not called current by the engine.
    let is_current = has_been_heard(peer, SILENCE) && (peer.current || lag <= LAG);
    Follower { server: peer.name.clone(), is_current, lag }
}

/// Whether the leader has heard of a follower lately. One that it has not heard of at all since it was elected is as long ago as
/// one that it hears just now: 0, and it is not said to be offline (nats-server 2.15.1).
pub(super) fn has_been_heard(peer: &PeerInfo, within: Duration) -> bool {
    !peer.offline && !peer.active.is_zero() && peer.active < within
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_greeting_is_read() {
        let said =
            r#"INFO {"server_name":"log-1","version":"2.9.10","jetstream":true,"max_payload":1048576} "#;
        let greeting =
            Greeting { name: "log-1".to_owned(), version: "2.9.10".to_owned(), has_jetstream: true };
        assert_eq!(read(&format!("{said}\r\n")), Ok(greeting));
        for other in ["", "HTTP/1.1 400 Bad Request\r\n", "INFO nonsense\r\n"] {
            assert!(read(other).unwrap_err().contains("no log server"), "{other}");
        }
    }

    #[test]
    fn a_copy_is_current_while_it_is_there_and_hardly_behind() {
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
            // Never heard of by a leader that was elected without it.
            (peer(false, 0.0, false, Some(3)), false),
        ] {
            assert_eq!(follower(&peer).is_current, expected, "{peer:?}");
        }
    }
}
