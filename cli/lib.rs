//! The command line of Doppel as a library, so that two programs share it: `doppel`, which is all of it, and
//! `doppel-eval`, which puts the roles together and reads crawls in the same way.
//!
//! | module | what |
//! |---|---|
//! | `args`, `given` | options that several commands take; those that a user gave |
//! | `urls` | URLs that commands are given |
//! | `records`, `named_fields`, `bad_records` | what a user says of records: their fields, those that no file has, and where bad ones go |
//! | `crawl`, `page_batches`, `one_page`, `extracted`, `unusable`, `told`, `inputs`, `directory`, `spool` | crawls on disk, or from standard input, as pages and as pages with signatures |
//! | `hashed_lines`, `bounded` | crawls as hashed lines of pages; commands that count in bounded memory and disk |
//! | `wire`, `manifest`, `winners` | the roles on a data directory |
//! | `toml_file` | files of TOML that people write |
//! | `policy_tables` | what a policy has learnt of words, in files and directories |
//! | `new_directory` | a data directory that one command makes as a whole |
//! | `layout` | contents laid out on nodes by a mapping |
//! | `report` | the report of `doppel dedup` as a page of HTML |
//! | `summary`, `found`, `savings`, `svg` | what is printed and drawn |
//! | `accounts`, `weights` | what became of the records that were read, and their bytes |
//! | `record_names`, `place_fields` | what records are called in their own files, and where they are in them |
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
pub mod bad_records;
pub mod bounded;
mod client;
mod cluster;
mod command;
pub mod crawl;
mod dev_cluster;
mod directory;
mod extracted;
mod extraction_log;
mod found;
mod front_door;
mod given;
pub mod hashed_lines;
mod ingested;
mod inputs;
pub mod layout;
mod logging;
mod manifest;
mod named_by;
mod named_fields;
mod new_directory;
mod notify;
mod objects;
mod one_page;
mod page_batches;
mod place_fields;
mod policy_tables;
mod process;
pub mod processor;
mod record_names;
pub mod records;
mod report;
mod results;
mod savings;
mod served;
mod slow_policy;
mod spool;
mod summary;
pub mod svg;
pub mod tally;
mod token_file;
mod told;
mod toml_file;
mod unusable;
mod urls;
mod version;
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
