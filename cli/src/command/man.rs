//! `doppel man`: writes manual pages of the command line.

use std::fs;
use std::path::PathBuf;

use anyhow::Context;
use clap::{Args, CommandFactory};

use super::Cli;

/// Write the manual pages, one for each command, into a directory.
///
/// The pages have the same texts as `--help`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  doppel man ~/.local/share/man/man1 && man doppel-serve")]
pub(crate) struct Man {
    /// Directory for the pages. A missing directory is created; pages with the same names are replaced.
    #[arg(value_name = "DIR")]
    dir: PathBuf,
}

impl Man {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let cannot = || format!("cannot write manual pages into {}", self.dir.display());
        fs::create_dir_all(&self.dir).with_context(cannot)?;
        clap_mangen::generate_to(Cli::command(), &self.dir).with_context(cannot)
    }
}
