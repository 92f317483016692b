//! The parts that all server processes share: the runtime, the listening sockets, the shutdown signals, and
//! the announcement that the process is ready.

pub mod listen;
pub mod logging;
pub mod notify;

use std::future::Future;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use doppel_wire::NodeName;
use tokio::signal::unix::{SignalKind, signal};

use crate::process::logging::LogArgs;

/// Largest number of threads for calls that block: more than the calls that a process answers at once.
const BLOCKING_THREADS: usize = 1_024;

/// Longest time for which the process waits at its end for calls that block. By then, the callers are gone
/// and the engine has stopped.
const LEFT_BEHIND: Duration = Duration::from_secs(1);

/// Name of the option with the main address of a process.
pub(crate) const LISTEN: &str = "--listen";

/// Options of a process that is a node of a cluster.
#[derive(Debug, Args)]
pub struct NodeArgs {
    /// File of the cluster, as written by `doppel init`. The secret is beside it.
    #[arg(long, value_name = "FILE", env = "DOPPEL_CLUSTER")]
    pub cluster: PathBuf,
    /// Name of this node in the cluster.
    #[arg(long, value_name = "NAME", env = "DOPPEL_NAME")]
    pub name: NodeName,
    /// Directory of this node alone. The node creates it if it does not exist.
    #[arg(long, value_name = "DIR", env = "DOPPEL_DATA")]
    pub data: PathBuf,
    /// Address and port to listen on for the other nodes [default: the address of the node in the cluster,
    /// which has to be an address of this machine].
    #[arg(long, value_name = "IP:PORT", env = "DOPPEL_LISTEN", value_parser = address)]
    pub listen: Option<SocketAddr>,
    /// Options of the log of the process.
    #[command(flatten)]
    pub log: LogArgs,
}

/// Runs a server on a new async runtime until the server ends. Calls that block after that are abandoned when
/// [`LEFT_BEHIND`] has passed.
///
/// # Errors
/// If the system cannot start threads, or the server fails.
pub fn run(server: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<()> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.enable_all().max_blocking_threads(BLOCKING_THREADS).build();
    let runtime = runtime.context("cannot start the runtime")?;
    let ended = runtime.block_on(server);
    runtime.shutdown_timeout(LEFT_BEHIND);
    ended
}

/// Returns a future that completes at SIGTERM or SIGINT. Call this first, so that a signal during the start
/// is not lost.
///
/// # Errors
/// If the system refuses to handle the signals.
pub fn shutdown() -> anyhow::Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        tracing::info!("ending");
        notify::stopping();
    })
}

/// Reads an IP address and a port from the command line.
///
/// # Errors
/// If the text is not an IP address with a port.
pub fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| "an IP address and a port are expected, such as 127.0.0.1:7700".to_owned())
}

/// Announces on standard output, and to the service manager if there is one, that a node is ready.
///
/// # Errors
/// If standard output cannot be written.
pub fn announce(role: &str, name: &NodeName, cluster: &str, address: SocketAddr) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "doppel {role} {name} of cluster {cluster} is listening for its peers on {address}")?;
    out.flush()?;
    notify::ready();
    Ok(())
}
