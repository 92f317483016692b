//! A cluster of real processes on loopback ports.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use tempfile::TempDir;

use super::ports::free_port;
use super::{Server, doppel, log_file, run_ok};

/// A cluster: its temporary directory, and its nodes of both tiers.
pub struct Cluster {
    home: TempDir,
    nodes: Vec<Node>,
}

/// A node of tier 1 or 2. Dropping it kills the process.
struct Node {
    role: &'static str,
    name: String,
    options: Vec<String>,
    process: Option<Child>,
    log: PathBuf,
}

impl Cluster {
    /// Writes the files of the cluster, and starts one node of tier 1, named `record`, and `index_nodes`
    /// nodes of tier 2, named `index-0`, `index-1` and so on.
    pub fn start(index_nodes: usize, init: &[&str], record: &[&str]) -> Self {
        Self::start_spread(&["record"], index_nodes, init, record)
    }

    /// Like [`start`](Self::start), with one node of tier 1 for each of the names `records`.
    pub fn start_spread(records: &[&str], index_nodes: usize, init: &[&str], options: &[&str]) -> Self {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("cluster.toml").display().to_string();
        let mut addresses = (0..records.len() + index_nodes).map(|_| format!("127.0.0.1:{}", free_port()));
        let mut arguments = vec!["init".to_owned(), file];
        for name in records {
            arguments.extend(["--tier1".to_owned(), format!("{name}={}", addresses.next().unwrap())]);
        }
        for (n, address) in addresses.enumerate() {
            arguments.extend(["--tier2".to_owned(), format!("index-{n}={address}")]);
        }
        run_ok(arguments.iter().map(String::as_str).chain(init.iter().copied()));
        let mut this = Self { home, nodes: Vec::new() };
        let owned = |options: &[&str]| options.iter().map(|&option| option.to_owned()).collect();
        records.iter().for_each(|name| this.add("tier1", name, owned(options)));
        for n in 0..index_nodes {
            this.add("tier2", &format!("index-{n}"), Vec::new());
        }
        let names: Vec<String> = this.nodes.iter().map(|node| node.name.clone()).collect();
        names.iter().for_each(|name| this.start_node(name));
        this
    }

    fn add(&mut self, role: &'static str, name: &str, options: Vec<String>) {
        let log = log_file(name);
        self.nodes.push(Node { role, name: name.to_owned(), options, process: None, log });
    }

    /// The file that describes the cluster.
    pub fn file(&self) -> PathBuf {
        self.home.path().join("cluster.toml")
    }

    /// The data directory of a node.
    pub fn data(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    /// The address on which a node listens.
    pub fn address(&self, name: &str) -> String {
        let text = fs::read_to_string(self.file()).unwrap();
        let (_, entry) = text.split_once(&format!("name = \"{name}\"")).unwrap();
        let (_, address) = entry.split_once("address = \"").unwrap();
        address.split_once('"').unwrap().0.to_owned()
    }

    fn node(&mut self, name: &str) -> &mut Node {
        self.nodes.iter_mut().find(|node| node.name == name).unwrap()
    }

    /// A command that runs as a node, with the option `--cluster` for the file of the cluster.
    pub fn command(&self, role: &str, name: &str) -> Command {
        let mut command = doppel();
        command.arg(role).arg("--cluster").arg(self.file()).args(["--name", name]);
        command
    }

    /// Starts a node, and waits until it listens.
    pub fn start_node(&mut self, name: &str) {
        let data = self.data(name);
        let role = self.node(name).role;
        let mut command = self.command(role, name);
        let node = self.node(name);
        command.arg("--data").arg(data).args(&node.options).stdout(Stdio::piped());
        command.stderr(File::options().create(true).append(true).open(&node.log).unwrap());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        node.process = Some(child);
        let log = fs::read_to_string(&node.log).unwrap_or_default();
        assert!(
            line.contains("is listening for its peers"),
            "node {name} printed {line:?} instead of its address; its log:\n{log}"
        );
    }

    /// Runs a node that cannot start, and returns its output after it exits.
    pub fn fails_to_start(&self, role: &str, name: &str, data: &Path) -> Output {
        self.command(role, name).arg("--data").arg(data).output().unwrap()
    }

    /// Starts a coordinator.
    pub fn coordinator(&self, name: &str) -> Server {
        let mut command = self.command("coordinator", name);
        command.args(["--listen", "127.0.0.1:0", "--temp"]).arg(self.home.path());
        Server::start_command(command)
    }

    /// Kills a node immediately, as `kill -9` does.
    pub fn kill(&mut self, name: &str) {
        let mut child = self.node(name).process.take().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// Sends a node a signal by its name.
    pub fn signal(&mut self, name: &str, signal: &str) {
        let id = self.node(name).process.as_ref().unwrap().id().to_string();
        assert!(Command::new("kill").args(["-s", signal, &id]).status().unwrap().success());
    }

    /// Ends a node with SIGTERM. Returns whether it exited with 0.
    pub fn terminate(&mut self, name: &str) -> bool {
        self.signal(name, "TERM");
        self.node(name).process.take().unwrap().wait().unwrap().success()
    }

    /// The text that a node has written to its standard error.
    pub fn log(&mut self, name: &str) -> String {
        fs::read_to_string(&self.node(name).log).unwrap_or_default()
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if let Some(child) = &mut self.process {
            let _ = child.kill();
            let _ = child.wait();
        }
        if std::thread::panicking() {
            let log = fs::read_to_string(&self.log).unwrap_or_default();
            let last: Vec<&str> = log.lines().rev().take(20).collect();
            eprintln!("the end of the log of {}, kept in {}:", self.name, self.log.display());
            last.iter().rev().for_each(|line| eprintln!("{line}"));
        } else {
            let _ = fs::remove_file(&self.log);
        }
    }
}
