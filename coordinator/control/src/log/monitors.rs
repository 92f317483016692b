//! Reads the settings of the log servers from their monitoring ports, and decides whether they suffice for
//! the settlement of commits.
//!
//! With settlement `log`, a commit counts when the log has acknowledged it. That is safe only if each server
//! writes to its disk before it acknowledges. Servers can do so since version 2.12, with `sync_interval:
//! always`. Version 2.15.1 shows this setting as `sync_always` in `jetstream.config` of `/varz`; version
//! 2.9.10 does not show it.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::net::{TcpStream, ToSocketAddrs as _};
use std::thread;
use std::time::{Duration, Instant};

use doppel_contract::client::builder_without_tls;
use doppel_protocol::Settlement;
use reqwest::StatusCode;
use reqwest::redirect::Policy;
use serde::Deserialize;

/// Oldest supported version of a log server.
pub const OLDEST: ServerVersion = (2, 9, 10);

/// Oldest version of a log server that can sync what it acknowledges.
pub const SYNCS: ServerVersion = (2, 12, 0);

/// Time limit for the answer of a monitor.
const ANSWER: Duration = Duration::from_secs(2);

/// Longest answer that is read, in bytes. Usual answers have some thousands.
const ANSWER_BYTES_MAX: u64 = 1 << 20;

/// First bytes that a log server sends to each of its clients.
const GREETING: &[u8; 5] = b"INFO ";

/// Reason and remedy if a URL names the port for clients instead of the monitoring port.
const CLIENT_PORT: &str = "a log server answers there as it does on the port for its clients, and a monitor has \
                           a port of its own; name the port that is `http` or `http_port` in the configuration of \
                           that server, or -m on its command line, mostly 8222";

/// The pause before servers that do not answer are asked again.
pub(super) const PAUSE: Duration = Duration::from_millis(200);

/// Version of a server: the major, minor and patch number, as in 2.15.1.
pub type ServerVersion = (u32, u32, u32);

/// The answer of one monitor of a log server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogServer {
    /// The URL of the monitor.
    pub(crate) monitor: String,
    /// The report of the server, or the reason why there is none.
    pub(crate) report: Result<ServerReport, String>,
}

/// Settings of a log server, as its monitor reports them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerReport {
    /// Id that the server draws at each start.
    pub id: String,
    /// Name of the server in its own configuration.
    pub name: String,
    /// Version of the server, as the server writes it.
    pub version: String,
    pub(crate) has_jetstream: bool,
    /// Whether the server syncs an entry to its disk before it acknowledges the entry.
    pub(crate) syncs: bool,
}

/// Reasons against a mode of settlement.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Objections {
    /// Settings of servers that do not suffice.
    pub wrong: Vec<String>,
    /// Servers or streams that do not answer.
    pub silent: Vec<String>,
}

/// Reads the three numbers of a version. Returns `None` if the text does not begin with three numbers.
pub fn version(text: &str) -> Option<ServerVersion> {
    let numbers: Vec<u32> = text.split(['.', '-']).map_while(|part| part.parse().ok()).collect();
    let [major, minor, patch, ..] = *numbers else { return None };
    Some((major, minor, patch))
}

/// Asks all monitors at once, for two seconds at most.
pub(crate) fn look(monitors: &[String]) -> Vec<LogServer> {
    let asked = monitors.iter().map(|monitor| {
        let url = monitor.clone();
        let thread = thread::Builder::new().name("log-monitor".to_owned()).spawn(move || ask(&url));
        (monitor, thread)
    });
    let asked: Vec<_> = asked.collect();
    let answered = asked.into_iter().map(|(monitor, thread)| {
        let report = thread.map_err(|error| error.to_string());
        let report = report.and_then(|thread| thread.join().map_err(|_| "the question panicked".to_owned()));
        LogServer { monitor: monitor.clone(), report: report.and_then(|report| report) }
    });
    answered.collect()
}

/// Like [`look`], but repeats the question until all monitors answer or `until` is reached.
pub fn look_until(monitors: &[String], until: Instant) -> Vec<LogServer> {
    loop {
        let found = look(monitors);
        if found.iter().all(|server| server.report.is_ok()) || Instant::now() >= until {
            return found;
        }
        thread::sleep(PAUSE);
    }
}

fn ask(monitor: &str) -> Result<ServerReport, String> {
    let text = |error: reqwest::Error| {
        let mut cause: &dyn std::error::Error = &error;
        while let Some(source) = cause.source() {
            cause = source;
        }
        cause.to_string()
    };
    // A redirect would lead to the report of another server, so redirects are not followed.
    let http = builder_without_tls().timeout(ANSWER).redirect(Policy::none()).build().map_err(text)?;
    let answer = http.get(format!("{}/varz", monitor.trim_end_matches('/'))).send().map_err(|error| {
        // Something listens at the port, but does not speak HTTP.
        if !error.is_connect() && !error.is_timeout() && greets(monitor) {
            CLIENT_PORT.to_owned()
        } else {
            text(error)
        }
    })?;
    if answer.status() != StatusCode::OK {
        return Err(format!("it answers with status {}", answer.status().as_u16()));
    }
    let mut body = Vec::new();
    answer.take(ANSWER_BYTES_MAX + 1).read_to_end(&mut body).map_err(|error| error.to_string())?;
    if body.len() as u64 > ANSWER_BYTES_MAX {
        return Err(format!("it answers with more than {ANSWER_BYTES_MAX} bytes"));
    }
    let Varz { server_id, server_name, version, jetstream } =
        serde_json::from_slice(&body).map_err(|error| format!("its answer cannot be read: {error}"))?;
    let Config { store_dir, sync_always } = jetstream.config.unwrap_or_default();
    Ok(ServerReport {
        id: server_id,
        name: server_name,
        version,
        has_jetstream: !store_dir.is_empty(),
        syncs: sync_always,
    })
}

/// Whether a log server sends a greeting at once, as on the port for its clients. On its monitoring port, a
/// server waits for a request.
fn greets(monitor: &str) -> bool {
    let address = monitor.strip_prefix("http://").unwrap_or(monitor).trim_end_matches('/');
    let found = address.to_socket_addrs().ok().and_then(|mut found| found.next());
    let greeting = found.and_then(|address| {
        let mut connection = TcpStream::connect_timeout(&address, ANSWER).ok()?;
        connection.set_read_timeout(Some(ANSWER)).ok()?;
        let mut greeting = [0; GREETING.len()];
        connection.read_exact(&mut greeting).ok()?;
        Some(greeting)
    });
    greeting.as_ref().is_some_and(|greeting| greeting == GREETING)
}

#[derive(Deserialize)]
struct Varz {
    server_id: String,
    server_name: String,
    version: String,
    #[serde(default)]
    jetstream: JetStream,
}

#[derive(Default, Deserialize)]
struct JetStream {
    config: Option<Config>,
}

#[derive(Default, Deserialize)]
struct Config {
    #[serde(default)]
    store_dir: String,
    #[serde(default)]
    sync_always: bool,
}

/// Finds reasons against a mode of settlement in the answers of the monitors.
pub fn objections(settlement: Settlement, servers: &[LogServer]) -> Objections {
    let mut objections = Objections::default();
    let mut seen: BTreeMap<&str, &str> = BTreeMap::new();
    for LogServer { monitor, report } in servers {
        let report = match report {
            Ok(report) => report,
            Err(reason) => {
                objections.silent.push(format!("no monitor of a log server answers at {monitor}: {reason}"));
                continue;
            }
        };
        objections.wrong.extend(report.objection(settlement).map(|what| {
            format!("the log server {} at {monitor}, version {}, {what}", report.name, report.version)
        }));
        if let Some(other) = seen.insert(&report.id, monitor) {
            objections.wrong.push(format!(
                "{other} and {monitor} are one log server, {}: name the monitor of each",
                report.name
            ));
        }
    }
    objections
}

impl ServerReport {
    fn objection(&self, settlement: Settlement) -> Option<String> {
        let Self { version: written, has_jetstream, syncs, .. } = self;
        let numbers = version(written);
        if !has_jetstream {
            return Some("has no JetStream: put `jetstream {}` into its configuration".to_owned());
        }
        if numbers.is_none_or(|numbers| numbers < OLDEST) {
            return Some(format!("is too old: {} or newer is needed", shown(OLDEST)));
        }
        if settlement == Settlement::Standby {
            return None;
        }
        if numbers.is_none_or(|numbers| numbers < SYNCS) {
            return Some(format!(
                "cannot sync what it acknowledges: settlement `log` needs {} or newer, with the line `sync_interval: always` in \
                 jetstream {{}} of its configuration",
                shown(SYNCS)
            ));
        }
        (!syncs).then(|| {
            "acknowledges what is not on its disk: put the line `sync_interval: always` into jetstream {} of its configuration, \
             and start it again"
                .to_owned()
        })
    }
}

fn shown((major, minor, patch): ServerVersion) -> String {
    format!("{major}.{minor}.{patch}")
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::net::TcpListener;

    use super::*;

    fn server(at: u16, version: &str, syncs: bool) -> LogServer {
        let report = ServerReport {
            id: format!("id-{at}"),
            name: format!("log-{at}"),
            version: version.to_owned(),
            has_jetstream: true,
            syncs,
        };
        LogServer { monitor: format!("http://10.0.0.{at}:8222"), report: Ok(report) }
    }

    #[test]
    fn a_version_is_read() {
        assert_eq!(version("2.9.10"), Some((2, 9, 10)));
        assert_eq!(version("2.14.0-RC.1"), Some((2, 14, 0)));
        for other in ["", "2", "2.x.1"] {
            assert_eq!(version(other), None, "{other}");
        }
    }

    #[test]
    fn a_log_settles_only_where_every_server_syncs() {
        let good = [server(1, "2.12.0", true), server(2, "2.15.1", true)];
        assert_eq!(objections(Settlement::Log, &good), Objections::default());
        for (other, says) in [
            (server(3, "2.15.1", false), "log-3 at http://10.0.0.3:8222, version 2.15.1, acknowledges what"),
            (server(3, "2.11.9", true), "needs 2.12.0 or newer, with the line `sync_interval: always`"),
            (server(3, "2.9.9", false), "is too old: 2.9.10 or newer"),
            (server(3, "unknown", true), "is too old"),
            (LogServer { monitor: "http://b:1".to_owned(), ..good[0].clone() }, "are one log server, log-1"),
        ] {
            let found = objections(Settlement::Log, &[&good[..], &[other]].concat());
            assert!(found.wrong.len() == 1 && found.wrong[0].contains(says), "{found:?}");
        }
        let away = LogServer { monitor: "http://a:1".to_owned(), report: Err("refused".to_owned()) };
        let found = objections(Settlement::Log, &[&good[..], &[away]].concat());
        assert_eq!((found.wrong.len(), found.silent.len()), (0, 1));
    }

    #[test]
    fn a_standby_settles_with_any_server_that_keeps_streams() {
        assert_eq!(objections(Settlement::Standby, &[server(1, "2.9.10", false)]), Objections::default());
        assert_eq!(objections(Settlement::Standby, &[server(1, "2.8.0", false)]).wrong.len(), 1);
        let mut none = server(1, "2.15.1", true);
        none.report.as_mut().unwrap().has_jetstream = false;
        assert!(objections(Settlement::Standby, &[none]).wrong[0].contains("has no JetStream"));
    }

    #[test]
    fn a_monitor_that_does_not_answer_says_why() {
        let found = look(&["http://127.0.0.1:9".to_owned()]);
        assert!(found[0].report.is_err(), "{found:?}");
    }

    /// Starts a server that answers one request with this head and a body of `bytes` spaces. Returns its URL.
    fn answering(head: &'static str, bytes: usize) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || {
            let (mut connection, _) = listener.accept().unwrap();
            let mut request = [0; 4_096];
            let _ = connection.read(&mut request).unwrap();
            let head = format!("HTTP/1.1 {head}\r\nContent-Length: {bytes}\r\n\r\n");
            let _ = connection.write_all(head.as_bytes());
            let _ = connection.write_all(&vec![b' '; bytes]);
        });
        format!("http://{address}")
    }

    #[test]
    fn the_port_for_clients_is_distinguished_from_a_server_that_is_away() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let monitor = format!("http://{}", listener.local_addr().unwrap());
        thread::spawn(move || {
            for connection in listener.incoming() {
                let mut connection = connection.unwrap();
                let _ = connection.write_all(b"INFO {\"server_name\":\"log-1\"}\r\n");
                // Keep the connection open until the other side has read the greeting.
                let _ = connection.read(&mut [0; 4_096]);
            }
        });
        let found = look(std::slice::from_ref(&monitor));
        let said = objections(Settlement::Log, &found).silent.pop().unwrap();
        assert!(
            said.starts_with(&format!("no monitor of a log server answers at {monitor}: a log")),
            "{said}"
        );
        assert!(said.contains("`http_port`") && said.contains("-m on its command line"), "{said}");
        let other = answering("nonsense", 0);
        let said = look(&[other])[0].report.clone().unwrap_err();
        assert!(!said.contains("clients"), "{said}");
    }

    #[test]
    fn redirects_are_not_followed_and_long_answers_are_refused() {
        let elsewhere = answering("302 Found\r\nLocation: http://127.0.0.1:9/varz", 0);
        let endless = answering("200 OK", 2 << 20);
        for (monitor, says) in [(elsewhere, "status 302"), (endless, "more than 1048576 bytes")] {
            let found = look(&[monitor]);
            let said = found[0].report.as_ref().unwrap_err();
            assert!(said.contains(says), "{said}");
        }
    }
}
