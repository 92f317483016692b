//! `doppel dev-cluster`: runs a cluster on this machine, for trials and experiments.

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::Context;
use clap::{Args, Subcommand};
use doppel_control::log::MAX_BYTES_LEAST;
use doppel_node::args::PolicyArgs;
use doppel_terminal::output::{Output, say};
use rustix::process::Pid;
use serde_json::{Value, json};
use tokio::signal::unix::{SignalKind, signal};

use crate::dev_cluster::log_servers::Program;
use crate::dev_cluster::{self, Counts, Plan, Process, Role};

/// Run a cluster on this machine, to try it and to break it.
///
/// Starts all processes on loopback ports, with their files in one directory. The command stays in the
/// foreground until Ctrl-C, which ends all processes. It restarts no process by itself. If the directory
/// already has a cluster, the command starts that cluster again. From another terminal, `kill NAME` kills a
/// process at once, and `start NAME` starts it again.
///
/// The ranges are replicated through a log on servers of NATS JetStream. They need the program `nats-server`,
/// 2.9.10 or newer. From 2.12 on, the servers sync what they acknowledge. Without the program, --log-servers
/// 0 runs a cluster that replicates nothing.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "\
Examples:
  doppel dev-cluster --dir try --tier1 3 --tier2 4 --coordinators 2
  doppel dev-cluster kill record-2 --dir try
  doppel dev-cluster start record-2 --dir try
  doppel dev-cluster kill log-1 --dir try
  doppel dev-cluster --dir plain --log-servers 0"
)]
pub(crate) struct DevCluster {
    #[command(subcommand)]
    command: Option<ProcessCommand>,
    #[command(flatten)]
    run: Run,
}

#[derive(Debug, Args)]
struct Run {
    /// Directory of the cluster. A missing directory is created.
    #[arg(long, value_name = "DIR", required = true)]
    dir: Option<PathBuf>,
    /// Number of nodes of tier 1, the system of record.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=32))]
    tier1: u16,
    /// Number of nodes of tier 2, the index.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=128))]
    tier2: u16,
    /// Number of coordinators, the front doors.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=32))]
    coordinators: u16,
    /// Number of log servers; 0 for a cluster without a log, which replicates nothing.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(0..=16))]
    log_servers: u16,
    /// Number of ranges into which the pages are divided, 1 to 64 [default: two for each node of tier 1, so 6
    /// with three nodes; one for a single node].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    ranges: Option<u16>,
    /// Number of nodes of tier 1 that have a replica of each range [default: 2 with a log and two nodes or
    /// more, 3 where the log servers are older than 2.12 and there are three nodes or more; else 1].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=32))]
    replicas: Option<u16>,
    /// Bytes of each range's stream on the log servers [default: 1 GiB].
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u64).range(MAX_BYTES_LEAST..))]
    log_max_bytes: Option<u64>,
    #[command(flatten)]
    policy: PolicyArgs,
    /// File of winner rules and of markets (docs/reference/winner-rules.md).
    #[arg(long, value_name = "FILE")]
    winners: Option<PathBuf>,
    /// Number of distinct contents above which a group is quarantined, at least 2. The nodes of tier 1 are
    /// started with this option.
    #[arg(long, value_name = "CONTENTS", value_parser = clap::value_parser!(u64).range(2..))]
    group_members_max: Option<u64>,
    /// Program of the log servers [default: the `nats-server` on the path].
    #[arg(long, value_name = "PATH", env = "DOPPEL_NATS_SERVER")]
    nats_server: Option<PathBuf>,
    /// Print one line of JSON when all processes are ready.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum ProcessCommand {
    /// Kill a process of a running cluster at once, as `kill -9` does.
    Kill(NamedProcess),
    /// Start a process of a running cluster again, and wait until it answers.
    ///
    /// A node then catches up with the changes that it has missed; `doppel cluster status` shows its
    /// progress.
    Start(NamedProcess),
}

#[derive(Debug, Args)]
struct NamedProcess {
    /// Name of the process, such as record-2.
    #[arg(value_name = "NAME")]
    name: String,
    /// Directory of the cluster.
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,
}

impl DevCluster {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        match self.command {
            None => self.run.run(),
            Some(ProcessCommand::Kill(NamedProcess { name, dir })) => {
                let cluster = dev_cluster::DevCluster::open(&dir)?;
                let pid = cluster.kill(cluster.named(&name)?)?;
                let pid = pid.as_raw_nonzero();
                Ok(Output { json: false }.print(&(), |out| writeln!(out, "killed {name}, process {pid}"))?)
            }
            Some(ProcessCommand::Start(NamedProcess { name, dir })) => {
                let cluster = dev_cluster::DevCluster::open(&dir)?;
                cluster.ensure_running()?;
                let pid = cluster.start(cluster.named(&name)?)?;
                let pid = pid.as_raw_nonzero();
                Ok(Output { json: false }.print(&(), |out| writeln!(out, "started {name}, process {pid}"))?)
            }
        }
    }
}

impl Run {
    fn run(self) -> anyhow::Result<()> {
        let Self { dir, tier1, tier2, coordinators, log_servers, nats_server, json, .. } = self;
        let Self { ranges, replicas, log_max_bytes, policy, winners, group_members_max, .. } = self;
        let dir = dir.context("--dir is missing")?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
        // If a signal arrives during the start, the processes that run by then are ended.
        let (mut interrupt, mut terminate) = {
            let _inside = runtime.enter();
            (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?)
        };
        // The program is looked for before any file is created.
        let program = (log_servers > 0).then(|| Program::find(nats_server.as_deref())).transpose()?;
        let (counts, plan) = (
            Counts { tier1, tier2, coordinators, log: log_servers },
            Plan {
                policy,
                winners,
                group_members_max,
                ranges,
                replicas,
                log_max_bytes,
                settlement: program.as_ref().map(Program::settlement).unwrap_or_default(),
            },
        );
        let cluster = dev_cluster::DevCluster::open_or_begin(&dir, counts, &plan)?;
        let _lock = cluster.lock()?;
        let left = cluster.end_leftovers();
        if !left.is_empty() {
            say!("ended processes of an earlier run: {}", left.join(", "));
        }
        let ending = EndOnDrop(&cluster);
        let start = |process: &Process| {
            if !json {
                say!("starting {}", process.name);
            }
            cluster.start(process)
        };
        let mut pids = Vec::new();
        if let Some(program) = &program {
            cluster.set_up_log(program)?;
            for server in cluster.of(Role::Log) {
                pids.push((server, start(server)?));
            }
            if !json {
                say!("waiting for the log");
            }
        }
        cluster.prepare(&plan)?;
        for process in cluster.processes.iter().filter(|process| process.role != Role::Log) {
            pids.push((process, start(process)?));
        }
        let mut out = io::stdout().lock();
        if json {
            writeln!(out, "{}", describe_processes(&pids))?;
        } else {
            guide(&cluster, &dir.display().to_string(), &mut out)?;
        }
        out.flush()?;
        drop(out);
        runtime.block_on(async {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
        });
        say!("ending all processes");
        drop(ending);
        Ok(())
    }
}

/// Ends all processes when it is dropped, whatever the reason.
struct EndOnDrop<'c>(&'c dev_cluster::DevCluster);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// Describes the processes in JSON.
fn describe_processes(pids: &[(&Process, Pid)]) -> Value {
    let of = |role: Role| -> Vec<Value> {
        let of_role = pids.iter().filter(|(process, _)| process.role == role);
        of_role
            .map(|(process, pid)| {
                let mut one = json!({"name": process.name, "pid": pid.as_raw_nonzero().get()});
                if role == Role::Coordinator {
                    one["url"] = json!(process.url());
                }
                one
            })
            .collect()
    };
    json!({
        "coordinators": of(Role::Coordinator),
        "tier1": of(Role::Tier1),
        "tier2": of(Role::Tier2),
        "engine": of(Role::Log),
    })
}

/// Prints the processes, and commands to try next.
fn guide(cluster: &dev_cluster::DevCluster, dir: &str, out: &mut dyn Write) -> io::Result<()> {
    let named =
        |role: Role| cluster.of(role).map(|process| process.name.clone()).collect::<Vec<_>>().join(", ");
    let kind = if cluster.has_log() { "" } else { "it is distributed, not replicated, and " };
    writeln!(out, "the cluster is ready; {kind}all of it is in {dir}")?;
    if cluster.has_log() {
        writeln!(out, "  log           {}", named(Role::Log))?;
    }
    writeln!(out, "  tier 1        {}", named(Role::Tier1))?;
    writeln!(out, "  tier 2        {}", named(Role::Tier2))?;
    for front in cluster.of(Role::Coordinator) {
        writeln!(out, "  coordinator   {}  {}", front.name, front.url())?;
    }
    let front = cluster.of(Role::Coordinator).next().map(Process::url).unwrap_or_default();
    let node = cluster.of(Role::Tier1).last().map(|process| process.name.clone()).unwrap_or_default();
    writeln!(out)?;
    writeln!(out, "from another terminal:")?;
    writeln!(out, "  doppel load CRAWL --flush --server {front}")?;
    writeln!(out, "  doppel cluster status --server {front}")?;
    writeln!(out, "  doppel dev-cluster kill {node} --dir {dir}")?;
    writeln!(out, "  doppel dev-cluster start {node} --dir {dir}")?;
    writeln!(out, "Ctrl-C ends all processes; the same command starts the cluster again")
}
