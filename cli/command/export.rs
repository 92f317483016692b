//! `doppel export`: every live page of a server.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use reqwest::Method;

use crate::args::ServerArgs;
use crate::client::{Client, copy};

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
    /// Write to this file instead of standard output.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    server: ServerArgs,
}

impl Export {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let client = Client::new(&self.server)?;
        let response = client.send(client.request(Method::GET, &["v1", "export"]))?;
        match &self.out {
            None => {
                let mut out = BufWriter::new(io::stdout().lock());
                copy(response, &mut out).context("the export is incomplete")?;
                out.flush()?;
            }
            Some(path) => {
                let cannot = || format!("{} is incomplete", path.display());
                let mut out = BufWriter::new(File::create(path).with_context(cannot)?);
                copy(response, &mut out).with_context(cannot)?;
                out.flush().with_context(cannot)?;
            }
        }
        Ok(())
    }
}
