//! The command line of Doppel as a library, so that two programs share it: `doppel`, which is all of it, and
//! `doppel-eval`, which puts the roles together and reads crawls in the same way.
//!
//! | module | what |
//! |---|---|
//! | `args`, `given` | options that several commands take; those that a user gave |
//! | `urls` | URLs that commands are given |
//! | `extracted`, `extraction_log`, `bounded` | pages with signatures; what an interrupted run has extracted; commands that count in bounded memory and disk |
//! | `wire`, `manifest`, `winners` | the roles on a data directory |
//! | `toml_file` | files of TOML that people write |
//! | `policy_tables` | what a policy has learnt of words, in files and directories |
//! | `new_directory` | a data directory that one command makes as a whole |
//! | `layout` | contents laid out on nodes by a mapping |
//! | `report` | the report of `doppel dedup` as a page of HTML |
//! | `summary`, `found`, `savings`, `svg` | what is printed and drawn |
//! | `accounts`, `weights` | what became of the records that were read, and their bytes |
//! | `results` | the original records: kept, removed and superseded |
//! | `front_door`, `token_file` | how a server listens to clients, and who may ask it what |
//! | `cluster`, `process`, `logging`, `notify` | the file of a cluster, the directory of a node; what every server process does, logs, and tells its supervisor |
//! | `client`, `served` | a server that is asked; which one has a directory |
//! | `command` | the commands, a file each |
//!
//! Public are the modules that `doppel-eval` uses; nothing else may depend on this library.
#![forbid(unsafe_code)]

mod accounts;
pub mod args;
pub mod bounded;
mod client;
mod cluster;
mod command;
mod dev_cluster;
mod extracted;
mod extraction_log;
mod found;
mod front_door;
mod given;
pub mod layout;
mod logging;
mod manifest;
mod named_by;
mod new_directory;
mod notify;
mod policy_tables;
mod process;
mod report;
mod results;
mod savings;
mod served;
mod slow_policy;
mod summary;
pub mod svg;
mod token_file;
mod toml_file;
mod urls;
mod weights;
mod winners;
pub mod wire;

use std::process::ExitCode;

/// Runs the command that the process was started with.
#[must_use]
pub fn run() -> ExitCode {
    match command::Cli::of_process() {
        Ok(cli) => doppel_terminal::exit::code(command::run(cli), is_usage),
        Err(error) => doppel_terminal::exit::code_of_arguments(&error),
    }
}

/// Whether a cause is that arguments do not go together, which is found out where a collection is made.
fn is_usage(cause: &(dyn std::error::Error + 'static)) -> bool {
    let of_tables = cause.downcast_ref().is_some_and(policy_tables::PolicyTablesError::is_usage);
    of_tables || cause.downcast_ref().is_some_and(manifest::ManifestError::is_usage)
}
