//! The command line of Doppel: arguments, commands, and the output that they print.
//!
//! The parts that the commands use have crates of their own. `common/inputs` reads inputs. `cli/dataset`
//! counts records, and writes results and reports. `cli/node` opens data directories and assembles the tiers.
//! `coordinator/control` describes and watches a cluster. No other crate depends on this library.
#![forbid(unsafe_code)]

mod args;
mod client;
mod command;
mod dev_cluster;
mod given_options;
mod savings;
mod slow_policy;
mod urls;

use std::process::ExitCode;

use doppel_node::directory::manifest::ManifestError;
use doppel_node::directory::policy_tables::PolicyTablesError;

/// Runs the command that the arguments of the process name, and returns its exit code.
#[must_use]
pub fn run() -> ExitCode {
    match command::Cli::of_process() {
        Ok(cli) => doppel_terminal::exit::code(command::run(cli), is_usage),
        Err(error) => doppel_terminal::exit::code_of_arguments(&error),
    }
}

/// Whether an error is caused by contradictory arguments that are detected only when a collection is created.
fn is_usage(cause: &(dyn std::error::Error + 'static)) -> bool {
    let of_tables = cause.downcast_ref().is_some_and(PolicyTablesError::is_usage);
    of_tables || cause.downcast_ref().is_some_and(ManifestError::is_usage)
}
