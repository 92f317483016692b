//! The commands, one file each.

mod backup;
mod changes;
mod check;
mod cluster;
mod completions;
mod coordinator;
mod dedup;
mod delete;
mod dev_cluster;
mod explain;
mod export;
mod group;
pub(crate) mod init;
mod load;
mod man;
mod overlap;
mod pilot;
mod plan;
mod policy_tables;
mod probe;
mod purge;
mod ready;
mod rebalance;
#[cfg(test)]
mod reference_tests;
mod repair;
mod repairs;
mod report;
mod restore;
mod serve;
mod status;
mod tier1;
mod tier2;
mod token;
mod winners;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::given::Given;
use doppel_terminal::exit;

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
    /// Reads the arguments of the process, like [`Parser::try_parse`], and lets commands know which options were given.
    ///
    /// # Errors
    /// When the arguments are no command, or ask for help.
    pub(crate) fn of_process() -> Result<Self, clap::Error> {
        let matches = Self::command().try_get_matches()?;
        let read = Self::from_arg_matches(&matches);
        let mut cli = read.map_err(|error| error.format(&mut Self::command()))?;
        if let (Command::Dedup(dedup), Some((_, options))) = (&mut cli.command, matches.subcommand()) {
            dedup.given = Given::of(options);
        }
        Ok(cli)
    }
}

/// A command and its arguments.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Serve(serve::Serve),
    Init(init::Init),
    Tier1(tier1::Tier1),
    Tier2(tier2::Tier2),
    Coordinator(coordinator::Coordinator),
    Cluster(cluster::Cluster),
    DevCluster(dev_cluster::DevCluster),
    Load(load::Load),
    Dedup(Box<dedup::Dedup>),
    Pilot(pilot::Pilot),
    Overlap(overlap::Overlap),
    Status(status::Status),
    Probe(probe::Probe),
    Delete(delete::Delete),
    Purge(purge::Purge),
    Changes(changes::Changes),
    Group(group::Group),
    Repair(repair::Repair),
    Repairs(repairs::Repairs),
    Report(report::Report),
    Rebalance(rebalance::Rebalance),
    Explain(explain::Explain),
    Export(export::Export),
    Check(check::Check),
    Backup(backup::Backup),
    Restore(restore::Restore),
    Plan(plan::Plan),
    PolicyTables(policy_tables::PolicyTables),
    Token(token::Token),
    Winners(winners::WinnersFile),
    Ready(ready::Ready),
    Completions(completions::Completions),
    Man(man::Man),
}

/// Runs the command that was given.
///
/// # Errors
/// Whatever stops it; [`doppel_terminal::exit`] turns that into a message and a code.
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
