//! `doppel export`: writes every live page of a server.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use doppel_contract::client::{Method, copy};
use doppel_terminal::destination::Destination;

use crate::args::ServerArgs;
use crate::client::connect;

/// How long the request is retried while the server is away or busy, for example because a range of a cluster
/// has no owner.
const PATIENCE: Duration = Duration::from_secs(60);

/// Write every live page as JSON lines, sorted by URL.
///
/// Each line has the fields `url`, `status`, `group`, `winner`, `duplicate_of` and `similarity`, as in
/// `doppel dedup --out`. If the server is away or busy, the command retries for a minute.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  doppel export --out groups.jsonl
  doppel export | grep '\"duplicate\"' | wc -l")]
pub(crate) struct Export {
    /// Write to this file; `-` is standard output. An existing file is replaced when the export is complete.
    #[arg(long, value_name = "FILE", default_value = "-", hide_default_value = true)]
    out: PathBuf,
    /// Prefer winners of this market, given by its name or as a host suffix such as `de`; see
    /// docs/reference/winner-rules.md.
    #[arg(long, value_name = "MARKET")]
    market: Option<String>,
    #[command(flatten)]
    server: ServerArgs,
}

impl Export {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let client = connect(&self.server)?;
        let out = Destination::open(&self.out)?;
        let market = self.market.as_ref().map(|market| ("market", market));
        let request = client.request(Method::GET, &["v1", "export"]).query(&market.as_slice());
        let response = client.open_patiently(&request, PATIENCE)?;
        out.write(|out| {
            copy(response, out).context("the export is incomplete")?;
            Ok(())
        })
    }
}
