//! The status of the log of a cluster, as its servers and the leaders of its streams report it, and what
//! needs attention.

use std::collections::BTreeMap;
use std::time::Duration;

use doppel_contract::answer::{Attention, ClusterRange, EngineServer, EngineStatus, EngineStream, Standby};
use doppel_model::RangeId;
use doppel_shared_log::{EngineState, LogEngine, ServerState, StreamState};

/// Share of its size limit, in percent, from which a stream counts as nearly full. If two replicas or more
/// follow, the stream is trimmed from 50 % on, and without delay from 75 % on.
const NEARLY_FULL_PERCENT: u128 = 85;

/// Share of its size limit, in percent, from which a stream may have no room for a long entry.
const FULL_PERCENT: u128 = 99;

/// The log of a cluster and its client.
#[derive(Clone)]
pub struct LogAt {
    pub engine: LogEngine,
    /// The URLs of the servers.
    pub servers: Vec<String>,
    /// Names of the streams, in the order of their ranges.
    pub streams: Vec<String>,
    /// Name of META, the stream of the description of the cluster.
    pub meta: String,
    /// Number of copies that each stream should have.
    pub(crate) copies: u64,
}

/// The status of a log, with a warning about META.
pub(super) struct LogReport {
    pub(super) status: EngineStatus,
    /// Warning about META, if it is not as it should be.
    pub(super) meta: Option<Attention>,
}

impl LogAt {
    /// Asks all servers and streams, for `limit` at most.
    pub(super) fn ask(&self, limit: Duration) -> LogReport {
        let all = [&self.streams[..], std::slice::from_ref(&self.meta)].concat();
        let EngineState { servers, mut streams } = self.engine.state(&self.servers, &all, limit);
        let meta = streams.pop();
        let stream = |(range, state)| self.stream(RangeId(range), state);
        let status = EngineStatus {
            servers: servers.into_iter().map(server).collect(),
            streams: (0..).zip(streams).map(stream).collect(),
        };
        let meta = meta.and_then(|state| trouble_of_meta(&state, self.copies, &status));
        LogReport { status, meta }
    }

    /// The status if no server and no stream has answered.
    pub(super) fn unknown(&self, reason: &str) -> LogReport {
        let servers =
            self.servers.iter().map(|url| ServerState { url: url.clone(), greeting: Err(reason.to_owned()) });
        let streams = (0..).zip(&self.streams).map(|(range, stream)| {
            let state = StreamState { stream: stream.clone(), contents: Err(reason.to_owned()) };
            self.stream(RangeId(range), state)
        });
        let status = EngineStatus { servers: servers.map(server).collect(), streams: streams.collect() };
        LogReport { status, meta: None }
    }

    fn stream(&self, range: RangeId, StreamState { stream, contents }: StreamState) -> EngineStream {
        let (has, reason) = match contents {
            Ok(has) => (Some(has), None),
            Err(reason) => (None, Some(reason)),
        };
        let has = has.as_ref();
        let behind = has.into_iter().flat_map(|has| &has.followers).filter(|follower| !follower.is_current);
        EngineStream {
            range,
            stream,
            bytes: has.map(|has| has.bytes),
            limit: has.and_then(|has| has.bytes_max),
            first: has.map(|has| has.first),
            last: has.map(|has| has.last),
            leader: has.and_then(|has| has.leader.clone()),
            copies: self.copies,
            current_copies: has.map(|has| has.current_copies() as u64),
            behind: behind.map(|follower| follower.server.clone()).collect(),
            reason,
        }
    }
}

fn server(ServerState { url, greeting }: ServerState) -> EngineServer {
    let (name, version, reason) = match greeting {
        Ok(said) => {
            let reason =
                (!said.has_jetstream).then(|| "it keeps no streams: its JetStream has stopped".to_owned());
            (Some(said.name), Some(said.version), reason)
        }
        Err(reason) => (None, None, Some(reason)),
    };
    EngineServer { name, address: url, version, answers: reason.is_none(), reason }
}

/// Addresses of the log servers that do not answer or no longer keep streams.
pub(super) fn servers_away(log: &EngineStatus) -> Vec<&str> {
    log.servers.iter().filter(|server| !server.answers).map(|server| &*server.address).collect()
}

/// Whether a stream may have no room for another long entry.
pub(super) fn is_full(stream: &EngineStream) -> bool {
    percent(stream).is_some_and(|percent| percent >= FULL_PERCENT)
}

fn percent(EngineStream { bytes, limit, .. }: &EngineStream) -> Option<u128> {
    bytes.zip(*limit).map(|(bytes, limit)| u128::from(bytes) * 100 / u128::from(limit.max(1)))
}

/// Warnings about servers that are away, copies that are missing or behind, and streams that are nearly full
/// or silent.
pub(super) fn troubles(log: &EngineStatus, ranges: &[ClusterRange]) -> Vec<Attention> {
    let mut troubles = Vec::new();
    for EngineServer { name, address, reason, .. } in log.servers.iter().filter(|server| !server.answers) {
        let reason = reason.as_deref().unwrap_or("it does not say why");
        // Only a server that answers has a name here.
        let (state, remedy) = match name {
            Some(_) => ("takes no part", "check its disk, and start it again"),
            None => {
                ("does not answer", "start it with its configuration and its directory, if it does not run")
            }
        };
        troubles.push(Attention {
            what: format!("the log server at {address} {state}: {reason}"),
            remedy: format!(
                "{remedy}; a stream takes no writes unless more than half of its copies are available"
            ),
        });
    }
    let away = servers_away(log);
    for stream in &log.streams {
        let standbys = ranges.iter().find(|range| range.range == stream.range).map(|range| &*range.standbys);
        troubles.extend(trouble(stream, standbys.unwrap_or_default(), &away));
    }
    // One absent server has copies of many streams, so it is reported once for all of them.
    let mut behind: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for stream in &log.streams {
        for server in &stream.behind {
            behind.entry(server).or_default().push(stream.range.to_string());
        }
    }
    for (server, ranges) in behind {
        troubles.push(Attention {
            what: format!(
                "log server {server} is away or behind with its copies of the streams of ranges {}",
                ranges.join(", ")
            ),
            remedy: copies(&[server], log),
        });
    }
    troubles
}

/// The remedy for servers that are away or behind with their copies.
fn copies(behind: &[&str], log: &EngineStatus) -> String {
    let answers =
        |name: &str| log.servers.iter().any(|server| server.answers && server.name.as_deref() == Some(name));
    let away: Vec<&str> = behind.iter().filter(|name| !answers(name)).copied().collect();
    if away.is_empty() {
        return "wait: they run, and copy what they lack".to_owned();
    }
    format!("start {}, if they do not run; then they copy what they lack", away.join(", "))
}

/// The remedy for a stream that does not answer, which usually has no leader.
fn election(away: &[&str]) -> String {
    match away {
        // After all servers were killed and one was cut off, nats-server 2.9.10 lost sight of a stream that
        // it had.
        [] => "wait some seconds for an election; if that does not help, restart the log servers, one after the other".to_owned(),
        away => format!("start the log servers that are away: {}", away.join(", ")),
    }
}

fn trouble(stream: &EngineStream, standbys: &[Standby], away: &[&str]) -> Option<Attention> {
    let EngineStream { range, stream: name, copies, current_copies, behind, reason, .. } = stream;
    if let Some(reason) = reason {
        return Some(Attention {
            what: format!("{name}, the stream of range {range}, does not answer: {reason}"),
            remedy: format!(
                "{}; if the stream was deleted, treat that as an incident (docs/guides/grow-and-repair-a-cluster.md)",
                election(away)
            ),
        });
    }
    let there = current_copies.unwrap_or_default() + behind.len() as u64;
    if there < *copies {
        return Some(Attention {
            what: format!(
                "{name}, the stream of range {range}, has copies at {there} servers, and {copies} are wanted"
            ),
            remedy: format!("`nats stream edit {name} --replicas {copies}`"),
        });
    }
    let percent = percent(stream).filter(|percent| *percent >= NEARLY_FULL_PERCENT)?;
    let more = format!("give it more bytes: `nats stream edit {name} --max-bytes BYTES`");
    let lost: Vec<&str> =
        standbys.iter().filter(|standby| !standby.follows).map(|standby| &*standby.node).collect();
    Some(Attention {
        what: format!("{name}, the stream of range {range}, is {percent} % full"),
        remedy: match &*lost {
            [] => more,
            lost => format!(
                "check that {} follow the range, because entries that only one node has are not trimmed; or {more}",
                lost.join(", ")
            ),
        },
    })
}

/// A warning if META is not as it should be. Without META no process can start, and the cluster cannot be
/// changed.
fn trouble_of_meta(
    StreamState { stream, contents }: &StreamState,
    wanted: u64,
    log: &EngineStatus,
) -> Option<Attention> {
    let has = match contents {
        Ok(has) => has,
        Err(reason) => {
            return Some(Attention {
                what: format!(
                    "{stream}, the stream of the description of the cluster, does not answer: {reason}; running processes \
                     go on, and no process can start"
                ),
                remedy: format!(
                    "{}; if the stream was deleted, stop no process, and put the stream back with `nats stream restore` \
                     (docs/guides/grow-and-repair-a-cluster.md)",
                    election(&servers_away(log))
                ),
            });
        }
    };
    let there = 1 + has.followers.len() as u64;
    let behind = has.followers.iter().filter(|follower| !follower.is_current).map(|one| &*one.server);
    let behind: Vec<&str> = behind.collect();
    if there < wanted {
        return Some(Attention {
            what: format!(
                "{stream}, the stream of the description of the cluster, has copies at {there} servers, and {wanted} are wanted"
            ),
            remedy: format!("`nats stream edit {stream} --replicas {wanted}`"),
        });
    }
    (!behind.is_empty()).then(|| Attention {
        what: format!(
            "log servers are away or behind with their copies of {stream}, the stream of the description of the cluster: {}",
            behind.join(", ")
        ),
        remedy: copies(&behind, log),
    })
}

#[cfg(test)]
pub(super) mod tests {
    use doppel_shared_log::{Follower, StreamContents};

    use super::*;

    /// A healthy stream with `bytes` of at most 100 bytes.
    pub(in super::super) fn stream(range: u16, bytes: u64) -> EngineStream {
        EngineStream {
            range: RangeId(range),
            stream: format!("range-{range}"),
            bytes: Some(bytes),
            limit: Some(100),
            first: Some(1),
            last: Some(9),
            leader: Some("log-1".to_owned()),
            copies: 3,
            current_copies: Some(3),
            behind: Vec::new(),
            reason: None,
        }
    }

    fn log() -> EngineStatus {
        let server = |n: u16| EngineServer {
            name: Some(format!("log-{n}")),
            address: format!("nats://10.0.0.{n}:4222"),
            version: Some("2.9.10".to_owned()),
            answers: true,
            reason: None,
        };
        EngineStatus {
            servers: (1..=3).map(server).collect(),
            streams: (0..3).map(|range| stream(range, 50)).collect(),
        }
    }

    fn whats(log: &EngineStatus) -> Vec<String> {
        troubles(log, &[]).into_iter().map(|one| one.what).collect()
    }

    #[test]
    fn each_trouble_of_the_log_is_reported_once() {
        let mut log = log();
        assert_eq!(whats(&log), [""; 0]);
        log.servers[2].answers = false;
        log.servers[2].reason = Some("connection refused".to_owned());
        log.servers[2].name = None;
        for stream in &mut log.streams[..2] {
            (stream.current_copies, stream.behind) = (Some(2), vec!["log-3".to_owned()]);
        }
        assert_eq!(
            whats(&log),
            [
                "the log server at nats://10.0.0.3:4222 does not answer: connection refused",
                "log server log-3 is away or behind with its copies of the streams of ranges 0, 1"
            ]
        );
        let remedy = |log: &EngineStatus, at: usize| troubles(log, &[])[at].remedy.clone();
        assert!(remedy(&log, 0).starts_with("start it with its configuration"), "{}", remedy(&log, 0));
        assert!(remedy(&log, 1).starts_with("start log-3"), "{}", remedy(&log, 1));
        // The server answers, but its disk is gone.
        log.servers[2].name = Some("log-3".to_owned());
        assert!(
            whats(&log)[0].contains("takes no part: connection")
                && remedy(&log, 0).starts_with("check its disk")
        );
        // The server is back.
        log.servers[2].answers = true;
        assert_eq!(remedy(&log, 0), "wait: they run, and copy what they lack");
    }

    #[test]
    fn a_stream_that_is_silent_or_short_of_copies_or_nearly_full_is_reported() {
        let mut log = log();
        log.streams[0].bytes = Some(84);
        log.streams[1].bytes = Some(85);
        log.streams[2].current_copies = Some(1);
        assert_eq!(
            whats(&log),
            [
                "range-1, the stream of range 1, is 85 % full",
                "range-2, the stream of range 2, has copies at 1 servers, and 3 are wanted"
            ]
        );
        let range = |standbys| ClusterRange {
            range: RangeId(1),
            first_shard: 0,
            last_shard: 0,
            owner: None,
            served: true,
            epoch: None,
            standbys,
            replicas: 2,
            live_replicas: 1,
            live: None,
            pending: None,
        };
        let away = Standby { node: "record-2".to_owned(), follows: false, lag: None, reason: None };
        assert!(troubles(&log, &[range(Vec::new())])[0].remedy.starts_with("give it more bytes"));
        assert!(troubles(&log, &[range(vec![away])])[0].remedy.starts_with("check that record-2 follow"));
        log.streams[1].reason = Some("no leader".to_owned());
        assert!(troubles(&log, &[])[0].remedy.starts_with("wait some seconds for an election;"));
        assert_eq!(whats(&log)[0], "range-1, the stream of range 1, does not answer: no leader");
    }

    #[test]
    fn the_stream_of_the_description_is_looked_after_like_the_others() {
        let follower = |n: u16, is_current| Follower { server: format!("log-{n}"), is_current, lag: 0 };
        let state = |followers| {
            let contents = StreamContents {
                bytes: 50,
                bytes_max: None,
                first: 1,
                last: 2,
                replicas: 3,
                is_standalone: false,
                leader: Some("log-1".to_owned()),
                followers,
            };
            StreamState { stream: "meta".to_owned(), contents: Ok(contents) }
        };
        let what = |state: &StreamState| trouble_of_meta(state, 3, &log()).map(|trouble| trouble.what);
        assert_eq!(what(&state(vec![follower(2, true), follower(3, true)])), None);
        let behind = what(&state(vec![follower(2, true), follower(3, false)])).unwrap();
        assert!(behind.contains("copies of meta") && behind.ends_with(": log-3"), "{behind}");
        let few = what(&state(vec![follower(2, true)])).unwrap();
        assert!(few.ends_with("has copies at 2 servers, and 3 are wanted"), "{few}");
        let gone = StreamState { stream: "meta".to_owned(), contents: Err("stream not found".to_owned()) };
        assert!(what(&gone).unwrap().contains("does not answer: stream not found"));
    }
}
