//! Access of a command to the META of a cluster. Waits for log servers and says so, and listens to the
//! reports of the nodes.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use doppel_control::cluster::Cluster;
use doppel_control::connection::hear;
use doppel_control::description::Description;
use doppel_control::description::change::NodeReports;
use doppel_control::description::file::ClusterFile;
use doppel_control::description::steps::ROUTERS;
use doppel_control::log::beats;
use doppel_control::log::streams::Connection;
use doppel_control::meta::unavailable::MetaUnavailable;
use doppel_control::meta::{Described, Meta};
use doppel_model::RangeId;
use doppel_protocol::MappingApi as _;
use doppel_protocol::beats::ClusterMembership;
use doppel_terminal::output::say;
use doppel_wire::Runtime;
use doppel_wire::tier2::RemoteTier2;

/// How long log servers are retried that do not answer.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);

/// If a wait takes longer than this, the user is told the reason.
const MOMENT: Duration = Duration::from_millis(700);

/// How long the command listens to the nodes. Each node sends three beats in a second.
const LISTENS: Duration = Duration::from_millis(1_500);

/// Longest time for listening if the reports are not yet sufficient, for example right after a takeover.
const LISTENS_AGAIN: Duration = Duration::from_secs(5);

/// Name by which the nodes know a command.
const NAME: &str = "doppel-cluster";

/// Connection to the META of a cluster.
pub(super) struct ClusterMeta<'f> {
    file: &'f ClusterFile,
    pub(super) connection: Connection,
    pub(super) meta: Meta,
    /// URLs of the log servers.
    pub(super) servers: Vec<String>,
    /// Time until which log servers are retried that do not answer.
    until: Instant,
}

impl<'f> ClusterMeta<'f> {
    /// Opens the META of the cluster of a file. Servers that do not answer, now or when META is read, are
    /// retried for `patience`, and standard error says so.
    ///
    /// # Errors
    /// If the cluster has no log, or the servers do not answer in time.
    pub(super) fn open(file: &'f ClusterFile, patience: Duration) -> anyhow::Result<Self> {
        let Some(servers) = file.servers() else {
            bail!(
                "{} belongs to a cluster without a log, and only the file describes it: change every copy of the file, and restart all \
                 processes (docs/guides/grow-and-repair-a-cluster.md says what can be changed)",
                file.path.display()
            )
        };
        let until = Instant::now() + patience;
        let _message = waiting(servers, until);
        let opening = |error| MetaUnavailable::opening(file, error);
        let connection = Connection::new(servers, patience).map_err(|error| match error.downcast() {
            Ok(error) => opening(error).into(),
            Err(other) => other,
        })?;
        let meta = connection.meta(&file.id).map_err(opening)?;
        Ok(Self { file, connection, meta, servers: servers.to_vec(), until })
    }

    /// Reads the description as soon as the log has a leader.
    ///
    /// # Errors
    /// If there is no leader in time, or the description cannot be used.
    pub(super) fn read(&self) -> Result<Described, MetaUnavailable> {
        let _message = waiting(&self.servers, self.until);
        loop {
            match self.meta.read() {
                Err(error) if error.passes() && Instant::now() < self.until => {
                    thread::sleep(Duration::from_millis(200));
                }
                read => return read.map_err(|error| MetaUnavailable::reading(self.file, error)),
            }
        }
    }

    /// Listens to what the nodes report of their replicas, until `is_enough` or until the nodes had time to
    /// report.
    pub(super) fn hear(
        &self,
        description: &Description,
        force: bool,
        is_enough: impl Fn(&NodeReports) -> bool,
    ) -> NodeReports {
        let _message = DelayedMessage::soon(format!(
            "listening to the nodes of the cluster, for {} s at most",
            LISTENS_AGAIN.as_secs()
        ));
        let membership = Arc::new(ClusterMembership::new());
        let _listening =
            hear(&self.connection.engine.news_channel(&beats(&description.cluster)), &membership);
        let began = Instant::now();
        thread::sleep(LISTENS);
        loop {
            let replicas = |range| membership.replicas(RangeId(range), Instant::now());
            let replicas = (0..description.ranges).map(replicas).collect();
            let heard = NodeReports { replicas, force, ..NodeReports::default() };
            if is_enough(&heard) || began.elapsed() > LISTENS_AGAIN {
                return heard;
            }
            thread::sleep(LISTENS / 5);
        }
    }

    /// Asks the present router how many partitions of the index each node of tier 2 has. The result is in the
    /// order of the nodes.
    ///
    /// # Errors
    /// If the router is not known or does not answer.
    pub(super) fn partitions(&self, cluster: &Cluster, heard: &NodeReports) -> anyhow::Result<Vec<usize>> {
        let router =
            heard.owner(ROUTERS).context("no owner of range 0 is heard, which has the plan of the index")?;
        let node = cluster.tier1_node(&router.parse()?)?;
        let _message =
            DelayedMessage::soon(format!("asking {router} at {} for the plan of the index", node.address));
        let runtime = Runtime::new(self.connection.handle()).context("cannot start the HTTP client")?;
        let peer = cluster.peer(&runtime, &cluster.identity(&NAME.parse()?), &node.name, &node.address)?;
        let plan = RemoteTier2::new(peer).plan()?;
        let of = |node| plan.assignments().iter().filter(|one| one.node.0 == node).count();
        Ok((0..plan.nodes()).map(of).collect())
    }
}

fn waiting(servers: &[String], until: Instant) -> DelayedMessage {
    let seconds = until.saturating_duration_since(Instant::now()).as_secs_f64().round();
    DelayedMessage::soon(format!(
        "waiting for the description of the cluster from the log servers {}, for {seconds} s at most",
        servers.join(", ")
    ))
}

/// Prints a message on standard error after [`MOMENT`], unless the value is dropped before.
struct DelayedMessage {
    _until: Sender<Infallible>,
}

impl DelayedMessage {
    fn soon(text: String) -> Self {
        let (until, dropped) = channel();
        let say = move || {
            if dropped.recv_timeout(MOMENT) == Err(RecvTimeoutError::Timeout) {
                say!("doppel: {text}");
            }
        };
        // If the thread cannot be started, no message is printed.
        let _ = thread::Builder::new().name("waiting".to_owned()).spawn(say);
        Self { _until: until }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn servers_that_do_not_answer_are_named_with_what_to_do() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("c.toml");
        // One port on which nobody listens, and one server that accepts connections and says nothing.
        let silent = TcpListener::bind("127.0.0.1:0").unwrap();
        let servers = ["nats://127.0.0.1:9".to_owned(), format!("nats://{}", silent.local_addr().unwrap())];
        let text = format!(
            "cluster = '0123456789abcdef0123456789abcdef'\nsecret = 'c.secret'\n[log]\nservers = {servers:?}\n"
        );
        std::fs::write(&path, text).unwrap();
        std::fs::write(home.path().join("c.secret"), "s".repeat(64)).unwrap();
        let file = ClusterFile::read(&path).unwrap();
        let began = Instant::now();
        let error = ClusterMeta::open(&file, Duration::from_secs(1)).err().unwrap().to_string();
        assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
        assert!(error.starts_with(&format!("no log server answers at {}: ", servers.join(", "))), "{error}");
        assert!(error.contains("Start them"), "{error}");
        assert!(error.ends_with(&format!("correct `servers` below [log] in {}", path.display())), "{error}");
    }
}
