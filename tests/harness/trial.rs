//! A replicated cluster, started by `doppel dev-cluster` with servers of the shared log.

use std::env;
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use super::{Server, doppel, run_ok};

/// Environment variable with paths of `nats-server` programs, separated by colons. The first one is used. If
/// it is not set, the program is looked up on `PATH`.
const PROGRAMS: &str = "DOPPEL_NATS_SERVERS";

/// The program that serves the shared log. If it is missing, returns `None` and the caller skips its test; in
/// CI it panics.
pub fn log_server() -> Option<PathBuf> {
    let named = env::var_os(PROGRAMS).and_then(|paths| env::split_paths(&paths).next());
    let on_path = || {
        let path = env::var_os("PATH")?;
        env::split_paths(&path).map(|dir| dir.join("nats-server")).find(|program| program.is_file())
    };
    let found = named.filter(|program| program.is_file()).or_else(on_path);
    if found.is_none() {
        assert!(
            env::var_os("CI").is_none(),
            "no nats-server was found, and CI must not skip this test: set {PROGRAMS}"
        );
        eprintln!("skipped: there is no nats-server on the path or in {PROGRAMS}");
    }
    found
}

/// A running `doppel dev-cluster`. Dropping it ends the cluster.
pub struct Trial {
    home: TempDir,
    child: Child,
    processes: Value,
}

impl Trial {
    /// Starts a cluster with three servers of the log and these options. `None` if there is no `nats-server`.
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

    /// Whether a write is settled once a second node has copied it. This is so if the log servers cannot sync
    /// what they acknowledge.
    pub fn settles_by_standby(&self) -> bool {
        let file = self.data("cluster.toml");
        let shown = run_ok(["cluster", "show", "--json", "--cluster", file.to_str().unwrap()]);
        let shown: Value = serde_json::from_str(&shown).unwrap();
        shown["description"]["log"]["settlement"] == "standby"
    }

    /// All coordinators of the cluster.
    pub fn coordinators(&self) -> Vec<Server> {
        let all = self.processes["coordinators"].as_array().unwrap();
        all.iter().map(|one| Server::at(one["url"].as_str().unwrap())).collect()
    }

    /// The data directory of a process, or another file of the cluster.
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

    /// The process id of the latest process with this name.
    pub fn pid(&self, name: &str) -> i32 {
        let file = self.data(name).with_extension("pid");
        std::fs::read_to_string(file).unwrap().trim().parse().unwrap()
    }

    /// The text of a process's log file.
    pub fn log(&self, name: &str) -> String {
        std::fs::read_to_string(self.data(name).with_extension("log")).unwrap_or_default()
    }

    /// Starts a killed process again, with more environment variables.
    pub fn start_with(&self, name: &str, variables: &[(&str, &str)]) {
        let mut command = doppel();
        command.args(["dev-cluster", "start", name, "--dir"]).arg(self.home.path().join("try"));
        let output = command.envs(variables.iter().copied()).output().unwrap();
        assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    }

    /// Kills a process by its name, as `kill -9` does.
    pub fn kill(&self, name: &str) {
        self.command("kill", name);
    }

    /// Starts a killed process again.
    pub fn start(&self, name: &str) {
        self.command("start", name);
    }

    /// Sends a signal to a process. The process must be the one that the cluster started at first.
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
