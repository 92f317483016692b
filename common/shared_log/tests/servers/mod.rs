//! Real log servers on loopback ports, each with its own directory. They end with the test.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use doppel_shared_log::LogEngine;
use ports::free_port;
use tempfile::TempDir;
use tokio::runtime::Runtime;

#[path = "../../../../tests/harness/ports.rs"]
#[expect(unreachable_pub, reason = "it is public in the tests of the workspace")]
mod ports;

/// Environment variable with the paths of `nats-server` programs, separated by colons. Without it, the
/// program on the `PATH` is used.
const PROGRAMS: &str = "DOPPEL_NATS_SERVERS";

/// Returns the programs to test with. If there is none, the test is skipped; in CI it fails.
pub(crate) fn programs() -> Vec<PathBuf> {
    let named = env::var_os(PROGRAMS).map(|paths| env::split_paths(&paths).collect::<Vec<_>>());
    let found = named.unwrap_or_else(|| {
        let on_path =
            env::var_os("PATH").into_iter().flat_map(|path| env::split_paths(&path).collect::<Vec<_>>());
        on_path.map(|dir| dir.join("nats-server")).filter(|program| program.is_file()).take(1).collect()
    });
    for program in &found {
        assert!(program.is_file(), "{PROGRAMS}: there is no program {}", program.display());
    }
    if found.is_empty() {
        assert!(env::var_os("CI").is_none(), "CI needs a nats-server: set {PROGRAMS}");
        eprintln!("skipped: no nats-server is on the path, and {PROGRAMS} names none");
    }
    found
}

/// A group of servers that form one cluster.
pub(crate) struct Servers {
    program: PathBuf,
    dir: TempDir,
    ports: Vec<u16>,
    running: Vec<Option<Child>>,
    runtime: Runtime,
}

impl Servers {
    /// Starts a cluster of `count` servers.
    pub(crate) fn start(program: &Path, count: usize) -> Self {
        let dir = TempDir::new().unwrap();
        let mut ports: Vec<u16> = (0..2 * count).map(|_| free_port()).collect();
        let routes = ports.split_off(count);
        for (at, (port, route)) in ports.iter().zip(&routes).enumerate() {
            let mut config = format!(
                "server_name: s{at}\nlisten: 127.0.0.1:{port}\njetstream {{ store_dir: {:?} }}\n",
                dir.path().join(format!("s{at}"))
            );
            if count > 1 {
                let all: Vec<String> =
                    routes.iter().map(|route| format!("nats://127.0.0.1:{route}")).collect();
                writeln!(config, "cluster {{ name: c, listen: 127.0.0.1:{route}, routes: {all:?} }}")
                    .unwrap();
            }
            fs::write(dir.path().join(format!("s{at}.conf")), config).unwrap();
        }
        let runtime = Runtime::new().unwrap();
        let running = ports.iter().map(|_| None).collect();
        let mut this = Self { program: program.to_owned(), dir, ports, running, runtime };
        (0..count).for_each(|at| this.start_one(at));
        this
    }

    /// Starts a server that is not running.
    pub(crate) fn start_one(&mut self, at: usize) {
        let file = |ending: &str| self.dir.path().join(format!("s{at}.{ending}"));
        let out = fs::File::create(file("log")).unwrap();
        let child = Command::new(&self.program)
            .args(["-c".as_ref(), file("conf").as_os_str()])
            .stdout(Stdio::null())
            .stderr(out)
            .spawn()
            .unwrap();
        self.running[at] = Some(child);
    }

    /// Kills a server with `kill -9`.
    pub(crate) fn kill(&mut self, at: usize) {
        if let Some(mut child) = self.running[at].take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    /// Returns the URLs of the servers.
    pub(crate) fn urls(&self) -> Vec<String> {
        self.ports.iter().map(|port| format!("nats://127.0.0.1:{port}")).collect()
    }

    /// Opens a connection as soon as the servers answer.
    pub(crate) fn connect(&self) -> LogEngine {
        let urls = self.urls();
        patiently(|| {
            LogEngine::connect(self.runtime.handle().clone(), &urls, "test")
                .map_err(|error| error.to_string())
        })
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        (0..self.running.len()).for_each(|at| self.kill(at));
    }
}

/// Repeats a call for a while until it succeeds.
pub(crate) fn patiently<T>(mut ask: impl FnMut() -> Result<T, String>) -> T {
    let began = Instant::now();
    loop {
        match ask() {
            Ok(answer) => return answer,
            Err(why) => assert!(began.elapsed() < Duration::from_secs(60), "{why}"),
        }
        thread::sleep(Duration::from_millis(100));
    }
}
