//! `doppel completions`: prints completions of the command line for a shell.

use std::io::Write;

use clap::{Args, CommandFactory};
use clap_complete::Shell;
use doppel_terminal::output::Stdout;

use super::Cli;

/// Print completions of this command line for a shell.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  doppel completions bash > ~/.local/share/bash-completion/completions/doppel
  doppel completions zsh > ~/.zfunc/_doppel
  doppel completions fish > ~/.config/fish/completions/doppel.fish")]
pub(crate) struct Completions {
    /// Shell for which to print completions.
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "doppel", &mut script);
        let mut out = Stdout::lock();
        out.write_all(&script)?;
        out.flush()?;
        Ok(())
    }
}
