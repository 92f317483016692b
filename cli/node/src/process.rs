//! What every server process does: it has threads, listens, and ends when it is told to.

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
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

use crate::process::logging::LogArgs;

/// Threads that calls may block, at most. More than all calls that a process answers at once.
const BLOCKING_THREADS: usize = 1_024;

/// How long the process waits at its end for calls that block. Their callers have gone, and the engine has ended.
const LEFT_BEHIND: Duration = Duration::from_secs(1);

/// The option of the address at which a process listens first of all.
pub(crate) const LISTEN: &str = "--listen";

/// Which node of which cluster a process is.
#[derive(Debug, Args)]
pub struct NodeArgs {
    /// The file of the cluster, which `doppel init` has written; the secret is beside it.
    #[arg(long, value_name = "FILE", env = "DOPPEL_CLUSTER")]
    pub cluster: PathBuf,
    /// The name of this node in the cluster.
    #[arg(long, value_name = "NAME", env = "DOPPEL_NAME")]
    pub name: NodeName,
    /// The node's directory; made if it is not there. No other node may have it.
    #[arg(long, value_name = "DIR", env = "DOPPEL_DATA")]
    pub data: PathBuf,
    /// Address and port to listen on for the other nodes [default: its address in the cluster, which has to be one of this
    /// machine].
    #[arg(long, value_name = "IP:PORT", env = "DOPPEL_LISTEN", value_parser = address)]
    pub listen: Option<SocketAddr>,
    /// Options of the log of the process.
    #[command(flatten)]
    pub log: LogArgs,
}

/// Runs a server on the threads of async work, until it has ended. Calls that still block then are left behind after [`LEFT_BEHIND`].
///
/// # Errors
/// When the system gives no threads, and when the server fails.
pub fn run(server: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<()> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.enable_all().max_blocking_threads(BLOCKING_THREADS).build();
    let runtime = runtime.context("cannot start the runtime")?;
    let ended = runtime.block_on(server);
    runtime.shutdown_timeout(LEFT_BEHIND);
    ended
}

/// Takes an address, of this option: a port in use is known before anything else is done.
///
/// # Errors
/// When the address cannot be had; the message says what to do.
pub async fn listen(listen: SocketAddr, option: &str) -> anyhow::Result<TcpListener> {
    TcpListener::bind(listen).await.map_err(|error| {
        let advice = match error.kind() {
            io::ErrorKind::AddrInUse => {
                format!("; is another server running? {option} chooses another address")
            }
            io::ErrorKind::AddrNotAvailable => format!("; {option} takes an address of this machine"),
            io::ErrorKind::PermissionDenied => "; ports below 1024 need privileges".to_owned(),
            _ => String::new(),
        };
        anyhow::Error::new(error).context(format!("cannot listen on {listen}{advice}"))
    })
}

/// The same for a node that others reach under a name and port: there, unless it is to listen elsewhere.
///
/// # Errors
/// The same, and when the name is none of this machine.
pub async fn listen_as(wanted: Option<SocketAddr>, address: &str) -> anyhow::Result<TcpListener> {
    if let Some(wanted) = wanted {
        return listen(wanted, LISTEN).await;
    }
    let mut found =
        tokio::net::lookup_host(address).await.with_context(|| format!("cannot look up {address}"))?;
    listen(found.next().with_context(|| format!("{address} has no address"))?, LISTEN).await
}

/// Completes when the process is told to end. Made first of all, so that a signal during the start is not lost.
///
/// # Errors
/// When the system refuses the signals.
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

/// An address and a port to listen on, from the command line.
///
/// # Errors
/// When it is none.
pub fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| "an IP address and a port are expected, such as 127.0.0.1:7700".to_owned())
}

/// Says that a node is ready, also to the service manager that may have started it.
///
/// # Errors
/// When standard output cannot be written.
pub fn announce(role: &str, name: &NodeName, cluster: &str, address: SocketAddr) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "doppel {role} {name} of cluster {cluster} is listening for its peers on {address}")?;
    out.flush()?;
    notify::ready();
    Ok(())
}
