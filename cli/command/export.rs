//! `doppel export`: every live page of a server.

use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use doppel_protocol::client::{Method, copy};

use crate::args::ServerArgs;
use crate::client::connect;
use crate::destination::Destination;

/// Write every live page as JSON lines, sorted by URL.
///
/// One line a page: `url`, `status`, `group`, `winner`, `similarity`. The lines are those of
/// `doppel dedup --out`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  doppel export --out groups.jsonl
  doppel export | grep '\"duplicate\"' | wc -l")]
pub(crate) struct Export {
    /// Write to this file; `-` is standard output. A file that is there is replaced at the end.
    #[arg(long, value_name = "FILE", default_value = "-", hide_default_value = true)]
    out: PathBuf,
    #[command(flatten)]
    server: ServerArgs,
}

impl Export {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let client = connect(&self.server)?;
        let out = Destination::open(&self.out)?;
        let response = client.send(client.request(Method::GET, &["v1", "export"]))?;
        out.write(|out| {
            copy(response, out).context("the export is incomplete")?;
            Ok(())
        })
    }
}
