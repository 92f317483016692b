//! A cluster of `doppel dev-cluster` with servers of the log.

use std::env;
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use super::{Server, doppel, run_ok};

/// Paths of `nats-server` programs, separated by colons. Without it, the one on the path is taken.
const PROGRAMS: &str = "DOPPEL_NATS_SERVERS";

/// The program of the log's servers. Where there is none, a test is skipped, but in CI it fails.
pub fn log_server() -> Option<PathBuf> {
    let named = env::var_os(PROGRAMS).and_then(|paths| env::split_paths(&paths).next());
    let on_path = || {
        let path = env::var_os("PATH")?;
        env::split_paths(&path).map(|dir| dir.join("nats-server")).find(|program| program.is_file())
    };
    let found = named.filter(|program| program.is_file()).or_else(on_path);
    if found.is_none() {
        assert!(env::var_os("CI").is_none(), "in CI a nats-server is needed: set {PROGRAMS}");
        eprintln!("skipped: no nats-server is on the path, and {PROGRAMS} names none");
    }
    found
}

/// A cluster to try. Ended when it is dropped.
pub struct Trial {
    home: TempDir,
    child: Child,
    processes: Value,
}

impl Trial {
    /// One with three servers of the log and with these options; none where the log has no program.
    pub fn replicated(options: &[&str]) -> Option<Self> {
        let program = log_server()?;
        let home = tempfile::tempdir().unwrap();
        let mut command = doppel();
        command
            .arg("dev-cluster")
            .arg("--dir")
            .arg(home.path().join("try"))
            .arg("--nats-server")
            .arg(program);
        command.arg("--json").args(options).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let processes = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{line:?}: {error}"));
        Some(Self { home, child, processes })
    }

    /// Whether a write counts when a second node has it, as with log servers that cannot sync what they acknowledge.
    pub fn settles_by_standby(&self) -> bool {
        let file = self.data("cluster.toml");
        let shown = run_ok(["cluster", "show", "--json", "--cluster", file.to_str().unwrap()]);
        let shown: Value = serde_json::from_str(&shown).unwrap();
        shown["description"]["log"]["settlement"] == "standby"
    }

    /// All its front doors.
    pub fn coordinators(&self) -> Vec<Server> {
        let all = self.processes["coordinators"].as_array().unwrap();
        all.iter().map(|one| Server::at(one["url"].as_str().unwrap())).collect()
    }

    /// The directory of a node.
    pub fn data(&self, name: &str) -> PathBuf {
        self.home.path().join("try").join(name)
    }

    fn command(&self, what: &str, name: &str) {
        let dir = self.home.path().join("try");
        run_ok(["dev-cluster", what, name, "--dir", dir.to_str().unwrap()]);
    }

    /// The names of the processes of a role: `engine`, `tier1`, `tier2` or `coordinators`.
    pub fn names(&self, role: &str) -> Vec<String> {
        let all = self.processes[role].as_array().unwrap();
        all.iter().map(|one| one["name"].as_str().unwrap().to_owned()).collect()
    }

    /// The number of a process that was started last under a name.
    pub fn pid(&self, name: &str) -> i32 {
        let file = self.data(name).with_extension("pid");
        std::fs::read_to_string(file).unwrap().trim().parse().unwrap()
    }

    /// What a process has written to its log.
    pub fn log(&self, name: &str) -> String {
        std::fs::read_to_string(self.data(name).with_extension("log")).unwrap_or_default()
    }

    /// Starts a process that was killed, with other variables of its environment.
    pub fn start_with(&self, name: &str, variables: &[(&str, &str)]) {
        let mut command = doppel();
        command.args(["dev-cluster", "start", name, "--dir"]).arg(self.home.path().join("try"));
        let output = command.envs(variables.iter().copied()).output().unwrap();
        assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    }

    /// `kill -9` of a process by its name.
    pub fn kill(&self, name: &str) {
        self.command("kill", name);
    }

    /// Starts a process that was killed.
    pub fn start(&self, name: &str) {
        self.command("start", name);
    }

    /// Sends a process a signal; it must not have been started anew.
    pub fn signal(&self, name: &str, signal: &str) {
        let roles = self.processes.as_object().unwrap().values();
        let process = roles.flat_map(|role| role.as_array().unwrap()).find(|process| process["name"] == name);
        let pid = process.unwrap()["pid"].to_string();
        assert!(Command::new("kill").args(["-s", signal, &pid]).status().unwrap().success());
    }
}

impl Drop for Trial {
    fn drop(&mut self) {
        if std::thread::panicking() {
            for entry in std::fs::read_dir(self.home.path().join("try")).into_iter().flatten().flatten() {
                if entry.path().extension().is_some_and(|ending| ending == "log") {
                    let log = std::fs::read_to_string(entry.path()).unwrap_or_default();
                    let last: Vec<&str> = log.lines().rev().take(25).collect();
                    eprintln!("the end of {}:", entry.path().display());
                    last.iter().rev().for_each(|line| eprintln!("  {line}"));
                }
            }
        }
        let id = self.child.id().to_string();
        let _ = Command::new("kill").args(["-s", "INT", &id]).status();
        let _ = self.child.wait();
    }
}
