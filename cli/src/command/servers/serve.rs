//! `doppel serve`: runs every role in one process.

use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use doppel_coordinator::app::{App, Services};
use doppel_dataset::extracted::extractors;
use doppel_node::args::EngineArgs;
use doppel_node::directory::manifest;
use doppel_node::directory::served::Served;
use doppel_node::engine::LocalEngine;
use doppel_node::front_door::FrontDoorArgs;
use doppel_node::process;
use doppel_node::process::logging::LogArgs;
use doppel_protocol::Tier1Api;

use crate::slow_policy;

/// Run the service on one data directory.
///
/// Prints one line with its address when it is ready. SIGTERM and SIGINT end the process: it answers the
/// requests in progress, and decides pending pages after the next start. Logs go to standard error; RUST_LOG
/// chooses what is logged (default: info).
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  doppel serve --data /var/lib/doppel
  doppel serve --data collection --listen 127.0.0.1:0 --tau 0.9
  doppel serve --data /var/lib/doppel --winners /etc/doppel/winners.toml
  doppel serve --data /var/lib/doppel --listen 0.0.0.0:7700 --tokens /etc/doppel/tokens --tls-cert cert.pem --tls-key key.pem")]
pub(crate) struct Serve {
    /// Data directory. A missing directory is created with --policy, --policy-tables, --shards and the rules
    /// of --winners.
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    #[command(flatten)]
    front_door: FrontDoorArgs,
    #[command(flatten)]
    engine: EngineArgs,
    #[command(flatten)]
    log: LogArgs,
}

impl Serve {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let logging = self.log.begin("serve", Some(&self.data))?;
        logging.of(|| process::run(self.listen()))
    }

    async fn listen(self) -> anyhow::Result<()> {
        let shutdown = process::shutdown()?;
        let detect_language = self.engine.detect_language;
        let front_door = self.front_door.open().await?;
        front_door.reread_on_hangup()?;
        let engine = tokio::task::spawn_blocking(move || {
            let is_new = !self.data.join(manifest::NAME).exists();
            let engine = LocalEngine::open_to_serve(&self.data, &self.engine)?;
            if let Some(warning) = slow_policy::warning(engine.policy).filter(|_| is_new) {
                tracing::warn!("{warning}");
            }
            let temp_dir = self.data.join("tmp");
            std::fs::create_dir_all(&temp_dir)
                .with_context(|| format!("cannot create {}", temp_dir.display()))?;
            anyhow::Ok((engine, self.data, temp_dir))
        });
        let (engine, data, temp_dir) = engine.await.context("the recovery panicked")??;
        let ingest = extractors(engine.signer.clone(), detect_language)?;
        let services = engine.services(ingest, &data, temp_dir);
        let tokens = front_door.listeners.access.tokens.clone();
        let app = App::new(Services { limits: front_door.limits.clone(), tokens, ..services });
        let _served = Served::at(&data, &front_door.url()?);
        let pages = engine.tier1.totals().ok().map(|totals| totals.counters.live);
        tracing::info!(pages, "the collection is open");
        front_door.announce("doppel")?;
        let served = doppel_coordinator::serve(front_door.listeners, app, shutdown).await;
        tokio::task::spawn_blocking(move || engine.stop())
            .await
            .context("the engine stopped with an error")?;
        served.context("the server stopped with an error")
    }
}
