//! `doppel serve`: every role in one process.

use std::io::{self, IsTerminal, Write};
use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use doppel_coordinator::app::App;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;

use crate::args::EngineArgs;
use crate::extracted::extractors;
use crate::wire::Engine;

/// Run the service on one data directory.
///
/// Prints one line with its address when it is ready. SIGTERM and SIGINT end it: requests in work are
/// answered, and what is pending is decided after the next start. Logs go to standard error; RUST_LOG
/// chooses what (default: info).
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  doppel serve --data /var/lib/doppel
  doppel serve --data collection --listen 127.0.0.1:0 --tau 0.9
  doppel serve --data /var/lib/doppel --winners /etc/doppel/winners.toml")]
pub(crate) struct Serve {
    /// The data directory; created with --tau, --shards and the rules of --winners when it is not
    /// there.
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// Address and port to listen on; port 0 is any free one. There is no authentication: whoever
    /// reaches it may write.
    #[arg(long, value_name = "IP:PORT", default_value = "127.0.0.1:7700", value_parser = address)]
    listen: SocketAddr,
    #[command(flatten)]
    engine: EngineArgs,
}

fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| "an IP address and a port are expected, such as 127.0.0.1:7700".to_owned())
}

impl Serve {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
        let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr);
        log.with_ansi(io::stderr().is_terminal()).init();
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
        runtime.context("cannot start the runtime")?.block_on(self.listen())
    }

    async fn listen(self) -> anyhow::Result<()> {
        // First of all, so that a signal during the recovery is not lost.
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        // The address is taken before the directory is opened: a port in use is known at once.
        let (listen, detect_language) = (self.listen, self.engine.detect_language);
        let listener = TcpListener::bind(listen).await.map_err(|error| {
            let advice = match error.kind() {
                io::ErrorKind::AddrInUse => "; is another server running? --listen chooses another address",
                io::ErrorKind::AddrNotAvailable => "; --listen takes an address of this machine",
                io::ErrorKind::PermissionDenied => "; ports below 1024 need privileges",
                _ => "",
            };
            anyhow::Error::new(error).context(format!("cannot listen on {listen}{advice}"))
        })?;
        let address = listener.local_addr()?;
        let engine = tokio::task::spawn_blocking(move || {
            let engine = Engine::open_to_serve(&self.data, &self.engine)?;
            let temp_dir = self.data.join("tmp");
            std::fs::create_dir_all(&temp_dir)
                .with_context(|| format!("cannot create {}", temp_dir.display()))?;
            anyhow::Ok((engine, temp_dir))
        });
        let (engine, temp_dir) = engine.await.context("the recovery panicked")??;
        let app = App::new(engine.services(extractors(detect_language)?, temp_dir));
        let mut out = io::stdout().lock();
        writeln!(out, "doppel is listening on http://{address}")?;
        out.flush()?;
        drop(out);
        let shutdown = async move {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            tracing::info!("ending");
        };
        let served = doppel_coordinator::serve(listener, app, shutdown).await;
        tokio::task::spawn_blocking(move || engine.stop()).await.context("the engine did not end well")?;
        served.context("the server did not end well")
    }
}
