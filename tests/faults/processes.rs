//! The processes of a replicated cluster. Each process has a cluster file of its own, with the addresses of
//! the proxies through which it reaches the others.

use std::fs::{self, File};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use doppel_contract::client::builder_without_tls;
use doppel_model::random_number;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::network::Network;
use crate::harness::{PATIENCE, Server, doppel, run, trial, wait_until};

/// Ports for the processes. They are below the range of outgoing connections, which could take the port of a
/// dead process.
const PORTS: std::ops::Range<u16> = 10_000..32_000;

/// Address on which nobody listens. Servers of the log tell it to each other, so that they connect only
/// through proxies.
const NOWHERE: &str = "127.0.0.1:1";

/// A kind of process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Log,
    Tier1,
    Tier2,
    Coordinator,
}

/// Number and name prefix of the processes of each role.
const COUNTS: [(Role, &str, usize); 4] = [
    (Role::Log, "log", 3),
    (Role::Tier1, "record", 3),
    (Role::Tier2, "index", 4),
    (Role::Coordinator, "front", 2),
];

/// A process, which may be dead at present.
pub(crate) struct Process {
    pub(crate) name: String,
    pub(crate) role: Role,
    address: String,
    /// Address at which the other servers reach a server of the log (`route`), and address at which it
    /// reports its state (`monitor`).
    route: String,
    monitor: String,
    child: Option<Child>,
}

/// A cluster. Dropping it ends its processes.
pub(crate) struct Cluster {
    home: Option<TempDir>,
    program: PathBuf,
    pub(crate) network: Arc<Network>,
    pub(crate) processes: Vec<Process>,
}

/// Free ports, each of them once.
fn ports(count: usize) -> Vec<u16> {
    let begin = random_number() as usize;
    let all = (0..PORTS.len()).map(|n| PORTS.start + ((begin % PORTS.len() + n) % PORTS.len()) as u16);
    // Listen on all ports before giving any back, so that none is returned twice.
    let held: Vec<TcpListener> =
        all.filter_map(|port| TcpListener::bind(("127.0.0.1", port)).ok()).take(count).collect();
    held.iter().map(|listener| listener.local_addr().unwrap().port()).collect()
}

impl Cluster {
    /// Starts a cluster, and waits until its status lists no problem. `None` if there is no `nats-server`.
    pub(crate) fn start(ranges: u16) -> Option<Self> {
        let program = trial::log_server()?;
        let home = tempfile::tempdir().unwrap();
        let mut processes = Vec::new();
        let count: usize = COUNTS.iter().map(|(.., count)| count).sum();
        let mut addresses = ports(count * 3).into_iter().map(|port| format!("127.0.0.1:{port}"));
        for (role, prefix, count) in COUNTS {
            for n in 1..=count {
                let mut next = || addresses.next().unwrap();
                let (address, route, monitor) = (next(), next(), next());
                processes.push(Process {
                    name: format!("{prefix}-{n}"),
                    role,
                    address,
                    route,
                    monitor,
                    child: None,
                });
            }
        }
        let network = Network::new(count);
        let mut this = Self { home: Some(home), program, network, processes };
        this.configure_log();
        this.of(Role::Log).for_each(|at| this.begin(at));
        this.init(ranges);
        let others: Vec<usize> = (0..count).filter(|at| this.processes[*at].role != Role::Log).collect();
        others.into_iter().for_each(|at| this.begin(at));
        wait_until("the status of the cluster to list no problem", PATIENCE * 2, || {
            this.is_well().then_some(())
        });
        Some(this)
    }

    fn home(&self) -> &Path {
        self.home.as_ref().unwrap().path()
    }

    /// The numbers of the processes with a role.
    pub(crate) fn of(&self, role: Role) -> impl Iterator<Item = usize> + use<> {
        let all = self.processes.iter().enumerate().filter(|(_, process)| process.role == role);
        all.map(|(at, _)| at).collect::<Vec<_>>().into_iter()
    }

    /// The URLs of the coordinators.
    pub(crate) fn fronts(&self) -> Vec<String> {
        self.of(Role::Coordinator).map(|at| format!("http://{}", self.processes[at].address)).collect()
    }

    fn configure_log(&self) {
        let version = Command::new(&self.program).arg("--version").output().unwrap().stdout;
        let version = String::from_utf8(version).unwrap();
        // Older servers do not start with a setting that they do not know.
        let is_old = ["v2.9.", "v2.10.", "v2.11."].iter().any(|old| version.contains(old));
        let sync = if is_old { "" } else { "  sync_interval: always\n" };
        for at in self.of(Role::Log) {
            let Process { name, address, route, monitor, .. } = &self.processes[at];
            let others = self.of(Role::Log).filter(|other| *other != at);
            let routes: Vec<String> = others
                .map(|other| {
                    format!("nats://{}", self.network.proxy(at, other, &self.processes[other].route))
                })
                .collect();
            let store = self.home().join(name);
            let config = format!(
                "server_name: {name}\nlisten: \"{address}\"\nhttp: \"{monitor}\"\n\
                 jetstream {{\n  store_dir: {store:?}\n  max_file_store: 100GB\n{sync}}}\n\
                 cluster {{\n  name: trial\n  listen: \"{route}\"\n  advertise: \"{NOWHERE}\"\n  no_advertise: true\n  \
                 routes: {routes:?}\n}}\n"
            );
            fs::write(self.home().join(format!("{name}.conf")), config).unwrap();
        }
    }

    /// Makes the file of the cluster, and a copy of it for each process.
    fn init(&self, ranges: u16) {
        let file = self.home().join("cluster.toml");
        let mut arguments =
            vec!["init".to_owned(), file.display().to_string(), "--ranges".to_owned(), ranges.to_string()];
        for Process { name, role, address, monitor, .. } in &self.processes {
            arguments.extend(match role {
                Role::Log => vec![
                    "--log".to_owned(),
                    format!("nats://{address}"),
                    "--log-monitor".to_owned(),
                    format!("http://{monitor}"),
                ],
                Role::Tier1 => vec!["--tier1".to_owned(), format!("{name}={address}")],
                Role::Tier2 => vec!["--tier2".to_owned(), format!("{name}={address}")],
                Role::Coordinator => continue,
            });
        }
        arguments.extend(["--log-max-bytes".to_owned(), (1_u64 << 30).to_string()]);
        let made = wait_until("init to create the streams", PATIENCE, || {
            let made = run(&arguments);
            (made.status.success() || file.exists()).then_some(made)
        });
        assert!(made.status.success(), "{made:?}");
        let text = fs::read_to_string(&file).unwrap();
        for (at, process) in
            self.processes.iter().enumerate().filter(|(_, process)| process.role != Role::Log)
        {
            let (mut own, mut reach) = (text.clone(), "[reach]\n".to_owned());
            for (other, Process { name, role, address, .. }) in self.processes.iter().enumerate() {
                // Only clients connect to coordinators, and nodes of the index do not connect to each other.
                let is_reached = match (process.role, role) {
                    (_, Role::Coordinator) | (Role::Tier2, Role::Tier2) => false,
                    _ => other != at,
                };
                if !is_reached {
                    continue;
                }
                let proxy = self.network.proxy(at, other, address);
                match role {
                    Role::Log => own = own.replace(&format!("{address}\""), &format!("{proxy}\"")),
                    _ => reach.push_str(&format!("{name} = \"{proxy}\"\n")),
                }
            }
            own.push_str(&reach);
            let dir = self.files(&process.name);
            fs::create_dir_all(&dir).unwrap();
            fs::write(dir.join("cluster.toml"), own).unwrap();
            fs::copy(self.home().join("cluster.secret"), dir.join("cluster.secret")).unwrap();
        }
    }

    fn files(&self, name: &str) -> PathBuf {
        self.home().join("files").join(name)
    }

    fn log_of(&self, name: &str) -> PathBuf {
        self.home().join(format!("{name}.log"))
    }

    /// Starts a process, and returns without waiting for it.
    pub(crate) fn begin(&mut self, at: usize) {
        let Process { name, role, address, .. } = &self.processes[at];
        let mut command = match role {
            Role::Log => {
                let mut command = Command::new(&self.program);
                command.arg("-c").arg(self.home().join(format!("{name}.conf")));
                command
            }
            role => {
                let (role, place) = match role {
                    Role::Tier1 => ("tier1", "--data"),
                    Role::Tier2 => ("tier2", "--data"),
                    _ => ("coordinator", "--temp"),
                };
                let mut command = doppel();
                command.arg(role).arg("--cluster").arg(self.files(name).join("cluster.toml"));
                command.args(["--name", name, "--listen", address, place]).arg(self.home().join(name));
                command
            }
        };
        let log = File::options().create(true).append(true).open(self.log_of(name)).unwrap();
        command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        self.processes[at].child = Some(command.spawn().unwrap());
    }

    /// Kills a process, as `kill -9` does.
    pub(crate) fn kill(&mut self, at: usize) {
        let mut child = self.processes[at].child.take().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// Sends a process a signal by its name.
    pub(crate) fn signal(&self, at: usize, name: &str) {
        let id = self.processes[at].child.as_ref().unwrap().id().to_string();
        assert!(Command::new("kill").args(["-s", name, &id]).status().unwrap().success());
    }

    /// Deletes the directory of a dead node.
    pub(crate) fn lose_disk(&self, at: usize) {
        fs::remove_dir_all(self.home().join(&self.processes[at].name)).unwrap();
    }

    /// Describes the processes that ended on their own, and messages that no process may log.
    pub(crate) fn broken(&mut self) -> Vec<String> {
        let mut broken = Vec::new();
        for process in &mut self.processes {
            if let Some(child) = &mut process.child
                && let Some(status) = child.try_wait().unwrap()
            {
                broken.push(format!("{} has ended by itself: {status}", process.name));
            }
        }
        for process in &self.processes {
            let log = fs::read(self.log_of(&process.name)).unwrap_or_default();
            let log = String::from_utf8_lossy(&log);
            let panics = log.lines().filter(|line| line.contains("panicked")).take(3);
            broken.extend(panics.map(|line| format!("{} says: {line}", process.name)));
        }
        broken
    }

    /// The status of the cluster from a coordinator. `None` if it does not answer.
    pub(crate) fn status(&self) -> Option<Value> {
        let http = builder_without_tls().timeout(Duration::from_secs(10)).build().unwrap();
        self.fronts()
            .iter()
            .find_map(|front| http.get(format!("{front}/v1/cluster")).send().ok()?.json().ok())
    }

    /// Whether every process answers and every replica has copied all entries.
    pub(crate) fn is_well(&self) -> bool {
        self.status().is_some_and(|status| {
            let is_well = |range: &Value| {
                let standbys = range["standbys"].as_array().unwrap();
                let follows = |one: &Value| one["follows"] == true && one["lag"] == 0;
                range["served"] == true && !standbys.is_empty() && standbys.iter().all(follows)
            };
            status["attention"] == json!([]) && status["ranges"].as_array().unwrap().iter().all(is_well)
        })
    }

    /// Whether the status reports a stream as missing. The test never deletes one.
    pub(crate) fn has_lost_sight_of_a_stream(&self) -> bool {
        let Some(status) = self.status() else { return false };
        let mut attention = status["attention"].as_array().unwrap().iter();
        attention.any(|one| one["what"].as_str().unwrap().contains("stream not found"))
    }

    /// The server that leads the stream of a range. `None` while there is no leader.
    pub(crate) fn leader(&self, range: usize) -> Option<usize> {
        let alive = self.of(Role::Log).filter(|at| self.processes[*at].child.is_some());
        let http = builder_without_tls().timeout(Duration::from_secs(2)).build().unwrap();
        for at in alive {
            let url = format!("http://{}/jsz?accounts=true&streams=true", self.processes[at].monitor);
            let Some(said) = http.get(url).send().ok().and_then(|answer| answer.json::<Value>().ok()) else {
                continue;
            };
            let streams = said["account_details"][0]["stream_detail"].as_array().cloned().unwrap_or_default();
            let ending = format!("-range-{range}");
            let stream = streams
                .iter()
                .find(|stream| stream["name"].as_str().is_some_and(|name| name.ends_with(&ending)));
            let leader = stream.and_then(|stream| stream["cluster"]["leader"].as_str());
            if let Some(leader) = leader {
                return self.of(Role::Log).find(|at| self.processes[*at].name == leader);
            }
        }
        None
    }

    /// A coordinator, for calls of the harness.
    pub(crate) fn front(&self, n: usize) -> Server {
        Server::at(&self.fronts()[n])
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for process in &mut self.processes {
            if let Some(child) = &mut process.child {
                let _ = child.kill();
                let _ = child.wait();
            }
        }
        if thread::panicking()
            && let Some(home) = self.home.take()
        {
            eprintln!("the directories and logs of the processes are kept in {}", home.keep().display());
        }
    }
}
