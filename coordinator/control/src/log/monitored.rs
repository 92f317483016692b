//! Checks that the named monitors cover all servers of the log.
//!
//! With settlement `log`, a single server that does not sync can lose a write, and a server without a monitor
//! may be such a server. A monitor must therefore have answered for every server of the log: the server
//! behind each URL of the file, and each server with a copy of a stream. The leader of a stream knows the
//! names of the latter.

use std::collections::{BTreeMap, BTreeSet};
use std::thread;
use std::time::{Duration, Instant};

use doppel_protocol::Settlement;
use doppel_shared_log::{EngineState, LogEngine};

use crate::log::LogSettings;
use crate::log::monitors::{LogServer, Objections, PAUSE, look, objections};

/// Time limit for the answers of servers and streams.
const ANSWER: Duration = Duration::from_secs(3);

/// The log to check: its client, its servers and its streams.
pub struct LogTarget<'p> {
    /// The client of the log.
    pub engine: &'p LogEngine,
    /// The URLs of the file.
    pub servers: &'p [String],
    /// Names of all streams of the cluster; empty before they are created.
    pub streams: &'p [String],
}

/// Finds reasons against using a log with some settings.
///
/// The reasons are wrong settings of servers and, with settlement `log`, servers for which no monitor
/// answers. If something does not answer, the question is repeated until `until`.
pub fn find_objections(settings: &LogSettings, place: &LogTarget<'_>, until: Instant) -> Objections {
    let LogSettings { settlement, monitors, .. } = settings;
    let LogTarget { engine, servers, streams } = place;
    loop {
        let found = look(monitors);
        let mut all = objections(*settlement, &found);
        if *settlement == Settlement::Log {
            let Objections { wrong, silent } = uncovered(&engine.state(servers, streams, ANSWER), &found);
            all.wrong.extend(wrong);
            all.silent.extend(silent);
        }
        if !all.wrong.is_empty() || all.silent.is_empty() || Instant::now() >= until {
            return all;
        }
        thread::sleep(PAUSE);
    }
}

/// Finds the servers of a log for which no monitor has answered.
///
/// If at least as many monitors as such servers are silent, every such server may have a silent monitor. The
/// servers then count as silent, otherwise as wrong.
fn uncovered(state: &EngineState, found: &[LogServer]) -> Objections {
    let mut all = Objections::default();
    // Where each server was found, by its name.
    let mut keepers: BTreeMap<&str, String> = BTreeMap::new();
    for server in &state.servers {
        match &server.greeting {
            Ok(greeting) => {
                keepers.entry(&greeting.name).or_insert_with(|| format!("at {}", server.url));
            }
            Err(reason) => {
                all.silent.push(format!("the log server at {} does not answer: {reason}", server.url));
            }
        }
    }
    for stream in &state.streams {
        match &stream.contents {
            Ok(has) => {
                let followers = has.followers.iter().map(|follower| &follower.server);
                for name in has.leader.iter().chain(followers) {
                    keepers.entry(name).or_insert_with(|| format!("which keeps {}", stream.stream));
                }
            }
            Err(reason) => all.silent.push(format!(
                "it is not known which servers keep the stream {}, because its leader does not answer: {reason}",
                stream.stream
            )),
        }
    }
    let confirmed: BTreeSet<&str> =
        found.iter().filter_map(|server| Some(server.report.as_ref().ok()?.name.as_str())).collect();
    keepers.retain(|name, _| !confirmed.contains(name));
    let away = found.iter().filter(|server| server.report.is_err()).count();
    let without = keepers.iter().map(|(name, is)| {
        let confirmed = confirmed.iter().copied().collect::<Vec<_>>().join(", ");
        format!(
            "the log server {name} {is} is none of those whose monitors answer, which are {confirmed}; name its \
             monitor too, with --log-monitor"
        )
    });
    if keepers.len() > away {
        all.wrong.extend(without);
    } else {
        all.silent.extend(without);
    }
    all
}

#[cfg(test)]
mod tests {
    use doppel_shared_log::{Follower, Greeting, ServerState, StreamContents, StreamState};

    use super::*;
    use crate::log::monitors::ServerReport;

    fn server(n: u16) -> ServerState {
        let greeting =
            Greeting { name: format!("log-{n}"), version: "2.12.0".to_owned(), has_jetstream: true };
        ServerState { url: format!("nats://10.0.0.{n}:4222"), greeting: Ok(greeting) }
    }

    fn stream(name: &str, leader: u16, followers: &[u16]) -> StreamState {
        let follower = |n: &u16| Follower { server: format!("log-{n}"), is_current: true, lag: 0 };
        let contents = StreamContents {
            bytes: 0,
            bytes_max: None,
            first: 1,
            last: 0,
            replicas: 3,
            is_standalone: false,
            leader: Some(format!("log-{leader}")),
            followers: followers.iter().map(follower).collect(),
        };
        StreamState { stream: name.to_owned(), contents: Ok(contents) }
    }

    fn monitor(n: u16) -> LogServer {
        let report = ServerReport {
            id: format!("id-{n}"),
            name: format!("log-{n}"),
            version: "2.12.0".to_owned(),
            has_jetstream: true,
            syncs: true,
        };
        LogServer { monitor: format!("http://10.0.0.{n}:8222"), report: Ok(report) }
    }

    #[test]
    fn every_server_that_keeps_the_log_has_a_monitor() {
        let mut state =
            EngineState { servers: vec![server(1), server(2)], streams: vec![stream("range-0", 2, &[1, 3])] };
        let all = [monitor(1), monitor(2), monitor(3)];
        assert_eq!(uncovered(&state, &all), Objections::default());
        // One good monitor does not cover three servers, and a server without a URL counts if it has a copy.
        let Objections { wrong, silent } = uncovered(&state, &all[..1]);
        assert_eq!((wrong.len(), silent.len()), (2, 0), "{wrong:?}");
        assert!(wrong[0].starts_with("the log server log-2 at nats://10.0.0.2:4222 is none"), "{wrong:?}");
        assert!(wrong[1].starts_with("the log server log-3 which keeps range-0 is none"), "{wrong:?}");
        // One silent monitor may belong to one uncovered server, but not to two.
        let away = LogServer { report: Err("refused".to_owned()), ..monitor(3) };
        let some = [monitor(1), monitor(2), away.clone()];
        let Objections { wrong, silent } = uncovered(&state, &some);
        assert_eq!((wrong.len(), silent.len()), (0, 1), "{wrong:?}");
        assert_eq!(uncovered(&state, &[monitor(1), away]).wrong.len(), 2);
        // A server or stream that does not answer is silent, not wrong.
        state.servers[0].greeting = Err("refused".to_owned());
        state.streams[0].contents = Err("no leader".to_owned());
        let Objections { wrong, silent } = uncovered(&state, &all);
        assert_eq!((wrong.len(), silent.len()), (0, 2), "{silent:?}");
    }
}
