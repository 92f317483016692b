//! The `doppel` command: parse, dispatch, exit code. Each command has a file in `command`.
#![forbid(unsafe_code)]

mod args;
mod client;
mod command;
mod crawl;
mod exit;
mod manifest;
mod output;
mod progress;
mod summary;
mod wire;

use clap::Parser;

/// Many threads build and drop signatures of all sizes; jemalloc gives the memory back.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> std::process::ExitCode {
    let cli = args::Cli::parse();
    exit::code(command::run(cli))
}
