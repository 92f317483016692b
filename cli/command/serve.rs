//! `doppel serve`: every role in one process.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use doppel_coordinator::app::App;

use crate::args::{EngineArgs, HostArgs};
use crate::extracted::extractors;
use crate::process;
use crate::served::Served;
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
    /// The data directory; created with --policy, --policy-tables, --shards and the rules of --winners when it is not
    /// there.
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// Address and port to listen on; port 0 is any free one. There is no authentication: whoever
    /// reaches it may write.
    #[arg(long, value_name = "IP:PORT", default_value = "127.0.0.1:7700", value_parser = process::address)]
    listen: SocketAddr,
    #[command(flatten)]
    hosts: HostArgs,
    #[command(flatten)]
    engine: EngineArgs,
}

impl Serve {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        process::start()?.block_on(self.listen())
    }

    async fn listen(self) -> anyhow::Result<()> {
        let shutdown = process::shutdown()?;
        let (detect_language, hosts) = (self.engine.detect_language, self.hosts.hosts());
        let listener = process::listen(self.listen).await?;
        let address = listener.local_addr()?;
        let data = self.data.clone();
        let engine = tokio::task::spawn_blocking(move || {
            let engine = Engine::open_to_serve(&self.data, &self.engine)?;
            let temp_dir = self.data.join("tmp");
            std::fs::create_dir_all(&temp_dir)
                .with_context(|| format!("cannot create {}", temp_dir.display()))?;
            anyhow::Ok((engine, temp_dir))
        });
        let (engine, temp_dir) = engine.await.context("the recovery panicked")??;
        let _served = Served::at(&data, address);
        let app = App::new(engine.services(extractors(engine.signer.clone(), detect_language)?, temp_dir));
        let mut out = io::stdout().lock();
        writeln!(out, "doppel is listening on http://{address}")?;
        out.flush()?;
        drop(out);
        let served = doppel_coordinator::serve(listener, (app, hosts), shutdown).await;
        tokio::task::spawn_blocking(move || engine.stop()).await.context("the engine did not end well")?;
        served.context("the server did not end well")
    }
}
