//! Runs the processes of a cluster on one machine, in one directory.
//!
//! | file in the directory | contents |
//! |---|---|
//! | `processes.json` | name, role and port of every process; written first, so that running processes can
//! always be ended |
//! | `cluster.toml`, `cluster.secret` | files of the cluster, written as soon as its log has streams |
//! | `NAME/`, `NAME.log`, `NAME.pid` | data, output and process id of a process |
//!
//! Every command that knows the directory can end and start its processes, so process ids are stored in
//! files. The system reuses process ids. An id is therefore trusted only if the running process belongs to
//! the directory.

pub(crate) mod log_servers;
mod plan;
mod ports;

use std::fs::{self, File, TryLockError};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::net::TcpListener;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail, ensure};
use doppel_snapshot::create_directories;
use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};

pub(crate) use plan::{Counts, Plan};
use ports::{OwnedBlocks, Ports, own_blocks_again};

const FILE: &str = "cluster.toml";
const PROCESSES: &str = "processes.json";
const LOCK: &str = "lock";

/// Texts that a process, and a log server, print when they are ready.
const READY: &str = "is listening";
const LOG_READY: &str = "Server is ready";

/// A process that is not ready after this time has failed.
const START: Duration = Duration::from_secs(120);

/// A process that has not ended after this time is killed.
const END: Duration = Duration::from_secs(30);

const POLL: Duration = Duration::from_millis(20);

/// Setting of the allocator. Huge pages triple the memory of small processes, and a cluster runs many of them
/// on one machine.
const HUGE_PAGES: &str = "MIMALLOC_ALLOW_THP";

/// Kind of a process, named after the command that runs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Role {
    Log,
    Tier1,
    Tier2,
    Coordinator,
}

/// A process of the cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Process {
    pub(crate) name: String,
    pub(crate) role: Role,
    port: u16,
    /// Port at which other log servers reach this log server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    route: Option<u16>,
    /// Port at which a log server reports its settings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    monitor: Option<u16>,
    /// Further options of the command line, each followed by its value.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    options: Vec<String>,
}

/// A directory with a cluster.
pub(crate) struct DevCluster {
    dir: PathBuf,
    pub(crate) processes: Vec<Process>,
    /// Keeps the ports of the processes from other clusters of this machine. Empty unless this process runs
    /// the cluster.
    _blocks: OwnedBlocks,
}

impl DevCluster {
    /// Opens the cluster of a directory.
    ///
    /// # Errors
    /// If the directory has no cluster.
    pub(crate) fn open(dir: &Path) -> anyhow::Result<Self> {
        let path = dir.join(PROCESSES);
        let text = fs::read_to_string(&path).with_context(|| {
            format!("{} has no cluster; `doppel dev-cluster --dir DIR` makes one", dir.display())
        })?;
        let processes =
            serde_json::from_str(&text).with_context(|| format!("cannot read {}", path.display()))?;
        Ok(Self { dir: dir.canonicalize()?, processes, _blocks: Vec::new() })
    }

    /// Opens the cluster of a directory, or creates one with this many processes, on free ports of this
    /// machine.
    ///
    /// # Errors
    /// If the directory cannot be used or has a cluster that differs from the plan, or if the plan is not
    /// possible.
    pub(crate) fn open_or_begin(dir: &Path, counts: Counts, plan: &Plan) -> anyhow::Result<Self> {
        if dir.join(PROCESSES).exists() {
            let this = Self::open(dir)?;
            this.check(counts, plan)?;
            let ports = this.processes.iter().flat_map(Process::ports).collect();
            return Ok(Self { _blocks: own_blocks_again(&ports), ..this });
        }
        ensure!(
            !dir.join(FILE).exists(),
            "{} has a {FILE} of its own; give another directory",
            dir.display()
        );
        create_directories(dir).with_context(|| format!("cannot make {}", dir.display()))?;
        let mut ports = Ports::new();
        let mut processes = Vec::new();
        for (role, prefix, count) in counts.of_roles() {
            let options = plan.options(role)?;
            for n in 1..=count {
                let mut of_log = || if role == Role::Log { ports.take().map(Some) } else { Ok(None) };
                let (route, monitor) = (of_log()?, of_log()?);
                let (name, port) = (format!("{prefix}-{n}"), ports.take()?);
                processes.push(Process { name, role, port, route, monitor, options: options.clone() });
            }
        }
        let this = Self { dir: dir.canonicalize()?, processes, _blocks: ports.release() };
        this.init(plan)?.description(plan.settlement)?;
        fs::write(dir.join(PROCESSES), serde_json::to_string_pretty(&this.processes)?)?;
        Ok(this)
    }

    /// Locks the directory for this process.
    ///
    /// # Errors
    /// If another process has the lock.
    pub(crate) fn lock(&self) -> anyhow::Result<File> {
        let file = File::create(self.dir.join(LOCK))?;
        match file.try_lock() {
            Ok(()) => Ok(file),
            Err(TryLockError::WouldBlock) => {
                bail!("another `doppel dev-cluster` runs in {}", self.dir.display())
            }
            Err(TryLockError::Error(error)) => Err(error.into()),
        }
    }

    /// Ensures that a `doppel dev-cluster` runs the cluster, which will end the processes that are started.
    ///
    /// # Errors
    /// If no process runs the cluster.
    pub(crate) fn ensure_running(&self) -> anyhow::Result<()> {
        let free = self.lock().is_ok();
        let dir = self.dir.display();
        ensure!(!free, "no cluster runs in {dir}; `doppel dev-cluster --dir {dir}` starts it");
        Ok(())
    }

    /// Ends the processes that an earlier run has left running, and returns their names.
    pub(crate) fn end_leftovers(&self) -> Vec<&str> {
        let left = self.processes.iter().filter(|process| self.pid(process).is_some());
        let left: Vec<&str> = left.map(|process| &*process.name).collect();
        if !left.is_empty() {
            self.end();
        }
        left
    }

    /// Iterates over the processes of a role.
    pub(crate) fn of(&self, role: Role) -> impl Iterator<Item = &Process> {
        self.processes.iter().filter(move |process| process.role == role)
    }

    /// Returns the process with this name.
    ///
    /// # Errors
    /// If there is none.
    pub(crate) fn named(&self, name: &str) -> anyhow::Result<&Process> {
        self.processes.iter().find(|process| process.name == name).ok_or_else(|| {
            let known: Vec<&str> = self.processes.iter().map(|process| &*process.name).collect();
            anyhow!("there is no process {name}; there are {}", known.join(", "))
        })
    }

    fn file(&self, process: &Process, ending: &str) -> PathBuf {
        self.dir.join(format!("{}.{ending}", process.name))
    }

    /// Returns the id of a process if the process runs.
    pub(crate) fn pid(&self, process: &Process) -> Option<Pid> {
        let text = fs::read_to_string(self.file(process, "pid")).ok()?;
        let pid = Pid::from_raw(text.trim().parse().ok()?)?;
        let arguments = fs::read(format!("/proc/{}/cmdline", pid.as_raw_nonzero())).ok()?;
        let has = |text: &str| arguments.split(|byte| *byte == 0).any(|argument| argument == text.as_bytes());
        // A zombie, which has ended but was not waited for, has no arguments.
        let is_it = match process.role {
            Role::Log => has(&self.file(process, "conf").to_string_lossy()),
            _ => has(&self.dir.join(FILE).to_string_lossy()) && has(&process.name),
        };
        is_it.then_some(pid)
    }

    /// Starts a process, and waits until the process is ready, for [`START`] at most.
    ///
    /// # Errors
    /// If the process already runs, cannot be started, ends early, or is not ready in time. In the last two
    /// cases, the error shows the last lines of the output.
    pub(crate) fn start(&self, process: &Process) -> anyhow::Result<Pid> {
        let name = &process.name;
        if let Some(pid) = self.pid(process) {
            bail!("{name} runs already, as process {}", pid.as_raw_nonzero());
        }
        let path = self.file(process, "log");
        let mut log = File::options().create(true).append(true).read(true).open(&path)?;
        let log_start = log.seek(SeekFrom::End(0))?;
        let mut command = self.command(process)?;
        // Ctrl-C in the terminal must reach only this process, which then ends the others in order.
        command.process_group(0).stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log.try_clone()?);
        let mut child = command.spawn().with_context(|| format!("cannot start {name}"))?;
        fs::write(self.file(process, "pid"), child.id().to_string())?;
        let until = Instant::now() + START;
        let ready = if process.role == Role::Log { LOG_READY } else { READY };
        loop {
            let text = read_from(&mut log, log_start)?;
            if text.contains(ready) {
                return Ok(Pid::from_child(&child));
            }
            let ended = child.try_wait()?;
            if ended.is_some() || Instant::now() >= until {
                let last: Vec<&str> = text.lines().rev().take(5).collect();
                let last: Vec<&str> = last.into_iter().rev().collect();
                bail!("{name} is not ready; the end of {}:\n{}", path.display(), last.join("\n"));
            }
            thread::sleep(POLL);
        }
    }

    /// Builds the command that runs a process.
    fn command(&self, process: &Process) -> anyhow::Result<Command> {
        let role = match process.role {
            Role::Log => {
                let mut command = Command::new(self.dir.join(log_servers::PROGRAM));
                command.arg("-c").arg(self.file(process, "conf"));
                return Ok(command);
            }
            Role::Tier1 => "tier1",
            Role::Tier2 => "tier2",
            Role::Coordinator => "coordinator",
        };
        let mut command = Command::new(std::env::current_exe().context("this program has no path")?);
        // The variables of a user's shell are meant for other servers.
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("DOPPEL_") {
                command.env_remove(name);
            }
        }
        if std::env::var_os(HUGE_PAGES).is_none() {
            command.env(HUGE_PAGES, "0");
        }
        command.arg(role).arg("--cluster").arg(self.dir.join(FILE)).args(["--name", &process.name]);
        match process.role {
            Role::Coordinator => command.args(["--listen", &process.address()]),
            _ => command.arg("--data").arg(self.dir.join(&process.name)),
        };
        command.args(&process.options);
        Ok(command)
    }

    /// Kills a process at once, as `kill -9` does, and waits until the process has ended.
    ///
    /// # Errors
    /// If the process does not run or cannot be killed.
    pub(crate) fn kill(&self, process: &Process) -> anyhow::Result<Pid> {
        let pid = self.pid(process).with_context(|| format!("{} does not run", process.name))?;
        kill_process(pid, Signal::KILL)?;
        while self.pid(process).is_some() {
            thread::sleep(POLL);
        }
        // The process id disappears before the sockets are closed.
        let until = Instant::now() + END;
        while TcpListener::bind(process.address()).is_err() && Instant::now() < until {
            thread::sleep(POLL);
        }
        Ok(pid)
    }

    /// Ends all processes, the coordinators first and the log servers last.
    pub(crate) fn end(&self) {
        for role in [Role::Coordinator, Role::Tier1, Role::Tier2, Role::Log] {
            let running = || self.of(role).filter_map(|process| self.pid(process));
            running().for_each(|pid| send_signal(pid, Signal::TERM));
            let until = Instant::now() + END;
            while running().next().is_some() && Instant::now() < until {
                thread::sleep(POLL);
            }
            running().for_each(|pid| send_signal(pid, Signal::KILL));
        }
        for process in &self.processes {
            // The id of an ended process has no meaning.
            let _ = fs::remove_file(self.file(process, "pid"));
        }
    }
}

impl Process {
    fn ports(&self) -> impl Iterator<Item = u16> {
        [Some(self.port), self.route, self.monitor].into_iter().flatten()
    }

    fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// URL at which a coordinator answers.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address())
    }
}

/// Sends a signal. It does not matter if the process has just ended.
fn send_signal(pid: Pid, signal: Signal) {
    if let Err(error) = kill_process(pid, signal) {
        tracing::debug!(%error, "a process is gone");
    }
}

fn read_from(log: &mut File, from: u64) -> io::Result<String> {
    let mut bytes = Vec::new();
    log.seek(SeekFrom::Start(from))?;
    log.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
