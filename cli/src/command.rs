//! The commands of `doppel`, one module each, in rooms by what they work on.

mod completions;
pub(crate) mod datasets;
pub(crate) mod directories;
mod man;
pub(crate) mod requests;
pub(crate) mod servers;
#[cfg(test)]
mod tests;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use doppel_terminal::exit;

use crate::given_options::GivenOptions;

/// Near-duplicate groups of a collection of web pages that never stops changing.
///
/// Doppel keeps every page in exactly one duplicate group with one winner, and says of any page
/// whether it is a verified duplicate, and of which page that is kept.
#[derive(Debug, Parser)]
#[command(name = "doppel", version, after_help = exit::TABLE, max_term_width = 100, arg_required_else_help = true)]
pub(crate) struct Cli {
    /// What to do.
    #[command(subcommand)]
    command: Command,
}

impl Cli {
    /// Reads the arguments of the process, like [`Parser::try_parse`], and tells `doppel dedup` which options
    /// were given.
    ///
    /// # Errors
    /// If the arguments are no valid command, or ask for help.
    pub(crate) fn of_process() -> Result<Self, clap::Error> {
        let matches = Self::command().try_get_matches()?;
        let read = Self::from_arg_matches(&matches);
        let mut cli = read.map_err(|error| error.format(&mut Self::command()))?;
        if let (Command::Dedup(dedup), Some((_, options))) = (&mut cli.command, matches.subcommand()) {
            dedup.given = GivenOptions::of(options);
        }
        Ok(cli)
    }
}

/// A command and its arguments.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Serve(servers::serve::Serve),
    Init(servers::init::Init),
    Tier1(servers::tier1::Tier1),
    Tier2(servers::tier2::Tier2),
    Coordinator(servers::coordinator::Coordinator),
    Cluster(servers::cluster::Cluster),
    DevCluster(servers::dev_cluster::DevCluster),
    Load(requests::load::Load),
    Dedup(Box<datasets::dedup::Dedup>),
    Pilot(datasets::pilot::Pilot),
    Overlap(datasets::overlap::Overlap),
    Status(requests::status::Status),
    Probe(requests::probe::Probe),
    Delete(requests::delete::Delete),
    Purge(requests::purge::Purge),
    Changes(requests::changes::Changes),
    Group(requests::group::Group),
    Repair(requests::repair::Repair),
    Repairs(requests::repairs::Repairs),
    Report(requests::report::Report),
    Rebalance(requests::rebalance::Rebalance),
    Explain(datasets::explain::Explain),
    Export(requests::export::Export),
    Check(directories::check::Check),
    Backup(directories::backup::Backup),
    Restore(directories::restore::Restore),
    Plan(datasets::plan::Plan),
    PolicyTables(datasets::policy_tables::PolicyTables),
    Token(servers::token::Token),
    Winners(datasets::winners::WinnersFile),
    Ready(requests::ready::Ready),
    Completions(completions::Completions),
    Man(man::Man),
}

/// Runs the given command.
///
/// # Errors
/// Returns any error that ends the command; [`doppel_terminal::exit`] turns it into a message and a code.
pub(crate) fn run(cli: Cli) -> anyhow::Result<()> {
    match cli.command {
        Command::Serve(serve) => serve.run(),
        Command::Init(init) => init.run(),
        Command::Tier1(tier1) => tier1.run(),
        Command::Tier2(tier2) => tier2.run(),
        Command::Coordinator(coordinator) => coordinator.run(),
        Command::Cluster(cluster) => cluster.run(),
        Command::DevCluster(cluster) => cluster.run(),
        Command::Load(load) => load.run(),
        Command::Dedup(dedup) => dedup.run(),
        Command::Pilot(pilot) => pilot.run(),
        Command::Overlap(overlap) => overlap.run(),
        Command::Status(status) => status.run(),
        Command::Probe(probe) => probe.run(),
        Command::Delete(delete) => delete.run(),
        Command::Purge(purge) => purge.run(),
        Command::Changes(changes) => changes.run(),
        Command::Group(group) => group.run(),
        Command::Repair(repair) => repair.run(),
        Command::Repairs(repairs) => repairs.run(),
        Command::Report(report) => report.run(),
        Command::Rebalance(rebalance) => rebalance.run(),
        Command::Explain(explain) => explain.run(),
        Command::Export(export) => export.run(),
        Command::Check(check) => check.run(),
        Command::Backup(backup) => backup.run(),
        Command::Restore(restore) => restore.run(),
        Command::Plan(plan) => plan.run(),
        Command::PolicyTables(tables) => tables.run(),
        Command::Token(token) => token.run(),
        Command::Winners(winners) => winners.run(),
        Command::Ready(ready) => ready.run(),
        Command::Completions(completions) => completions.run(),
        Command::Man(man) => man.run(),
    }
}
