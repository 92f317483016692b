//! The `doppel` command: parse, dispatch, exit code. Each command has a file in `command`.
#![forbid(unsafe_code)]

mod args;
mod client;
mod command;
mod crawl;
mod destination;
mod directory;
mod eval;
mod exit;
mod extracted;
mod interrupt;
mod layout;
mod manifest;
mod output;
mod progress;
mod scratch;
mod span;
mod summary;
mod winners;
mod wire;

use clap::Parser;

/// Signatures of all sizes are made in some threads and dropped in others, which the C library's
/// allocator does slowly.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    let cli = args::Cli::parse();
    exit::code(command::run(cli))
}
