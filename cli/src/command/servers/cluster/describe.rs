//! `doppel cluster show`, `add`, `remove`, `address`, `replicas` and `log`: show and change the description
//! of a cluster with a log. The description is stored in META, a stream of the log.

use std::path::PathBuf;
use std::time::Instant;

use anyhow::{bail, ensure};
use clap::Args;
use doppel_control::cluster::Cluster;
use doppel_control::description::change::{ClusterChange, NeededReports, NodeReports};
use doppel_control::description::file::ClusterFile;
use doppel_control::description::file::ClusterFileContents;
use doppel_control::description::steps::{ChangeReport, ROUTERS, changes, steps};
use doppel_control::description::{Description, Tier2Node};
use doppel_control::log::monitored::{LogTarget, find_objections};
use doppel_control::log::monitors::Objections;
use doppel_control::log::{WINDOW_MINUTES_MAX, all_streams};
use doppel_control::meta::{Described, MetaError};
use doppel_model::RangeId;
use doppel_protocol::Settlement;
use doppel_terminal::exit::Failure;
use doppel_terminal::output::{Output, say};
use doppel_wire::NodeName;
use serde_json::json;

use super::meta::{ClusterMeta, PATIENCE};
use crate::command::servers::init::values::{monitor, node, settlement};

/// How often a change is attempted if other changes come first.
const ATTEMPTS: usize = 5;

/// Options that name the cluster and the form of the answer.
#[derive(Debug, Args)]
pub(super) struct DescriptionArgs {
    /// File of the cluster, as written by `doppel init`. The secret is beside it.
    #[arg(long, value_name = "FILE", env = "DOPPEL_CLUSTER")]
    cluster: PathBuf,
    /// Print JSON, one value per line.
    #[arg(long)]
    json: bool,
}

/// Show the description of a cluster: its nodes, which of them have which ranges, and how its log is kept.
///
/// For a cluster with a log, the description is read from the log, as every process does when it starts.
/// `ranges` are the ranges that a node owns if no takeover has happened; `doppel cluster status` shows the
/// present owners.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  doppel cluster show --cluster cluster.toml")]
pub(super) struct Show {
    #[command(flatten)]
    of: DescriptionArgs,
}

/// Add a node to a cluster with a log.
///
/// A node of tier 1 follows its share of the ranges, or the ranges of --follow. It owns a range only after
/// `doppel cluster takeover`, or if the owner falls silent, for example during a restart. A node of tier 2
/// receives partitions gradually. The command prints which processes to start and restart.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  doppel cluster add --cluster cluster.toml --tier1 record-4=10.0.0.4:7801
  doppel cluster add --cluster cluster.toml --tier1 record-4=10.0.0.4:7801 --follow 1,4
  doppel cluster add --cluster cluster.toml --tier2 index-3=10.0.0.23:7802")]
pub(super) struct Add {
    /// Name of a node of tier 1, and the address at which the other nodes reach it.
    #[arg(
        long,
        value_name = "NAME=HOST:PORT",
        value_parser = node,
        required_unless_present = "tier2",
        conflicts_with = "tier2"
    )]
    tier1: Option<Tier2Node>,
    /// Ranges of which the node has a replica [default: its share of all replicas, taken from the nodes with
    /// the most].
    #[arg(long, value_name = "RANGE", value_delimiter = ',', requires = "tier1")]
    follow: Option<Vec<u16>>,
    /// Name and address of a node of tier 2.
    #[arg(long, value_name = "NAME=HOST:PORT", value_parser = node)]
    tier2: Option<Tier2Node>,
    #[command(flatten)]
    of: DescriptionArgs,
}

/// Take a node out of a cluster with a log.
///
/// A node of tier 1 must own no range (`doppel cluster takeover`). Each of its ranges must also be on other
/// nodes (`doppel cluster replicas`), and if two or more of these exist, two of them must follow the range. A
/// node of tier 2 must be the last one and have no partitions (`doppel rebalance --drain`); the command asks
/// the owner of range 0 about them.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  doppel cluster remove --cluster cluster.toml record-2")]
pub(super) struct Remove {
    /// Name of the node.
    #[arg(value_name = "NAME")]
    name: NodeName,
    /// Make the change even if no owner of a range is heard, or too few of the remaining nodes follow it. You
    /// are then responsible that no range loses its last complete copy. A node of tier 2 is removed with its
    /// partitions. Other nodes rebuild these from tier 1, and new pages stay pending meanwhile.
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    of: DescriptionArgs,
}

/// Change the address at which a node of a cluster with a log is reached.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  doppel cluster address --cluster cluster.toml record-2=10.0.0.9:7801")]
pub(super) struct Address {
    /// Name of the node, and its new address.
    #[arg(value_name = "NAME=HOST:PORT", value_parser = node)]
    node: Tier2Node,
    #[command(flatten)]
    of: DescriptionArgs,
}

/// Say which nodes of tier 1 have a replica of a range.
///
/// If a node loses its replica, the owner must be heard, and two of the remaining nodes must follow the range
/// if there are two. To move a range, first name the new node beside the old ones and restart the processes
/// that the command names. When the new node follows, make it the owner if necessary (`doppel cluster
/// takeover`). Then name only the nodes that stay.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  doppel cluster replicas --cluster cluster.toml --range 3 --nodes record-1,record-4")]
pub(super) struct Replicas {
    /// Number of the range.
    #[arg(long, value_name = "RANGE")]
    range: u16,
    /// Names of the nodes. The first one owns the range after all nodes have started anew.
    #[arg(long, value_name = "NODE", value_delimiter = ',', required = true)]
    nodes: Vec<NodeName>,
    /// Make the change even if no owner of a range is heard, or too few of the remaining nodes follow it. You
    /// are then responsible that no range loses its last complete copy.
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    of: DescriptionArgs,
}

/// Change how the log of a cluster is kept, and when writes are settled.
#[derive(Debug, Args)]
#[command(after_help = "\
Example, when all log servers have got `sync_interval: always`:
  doppel cluster log --cluster cluster.toml --settlement log \\
    --log-monitor http://10.0.0.11:8222,http://10.0.0.12:8222,http://10.0.0.13:8222")]
pub(super) struct Log {
    /// When a write is settled: `log` or `standby`; see `doppel init --help`.
    #[arg(long, value_name = "MODE", value_parser = settlement)]
    settlement: Option<Settlement>,
    /// URLs at which the log servers report their settings. They replace the earlier ones.
    #[arg(long, value_name = "URL", value_delimiter = ',', value_parser = monitor)]
    log_monitor: Option<Vec<String>>,
    /// Minutes for which a stream keeps entries that all replicas have, 0 to 1440.
    #[arg(long, value_name = "MINUTES", value_parser = clap::value_parser!(u16).range(..=i64::from(WINDOW_MINUTES_MAX)))]
    log_window: Option<u16>,
    #[command(flatten)]
    of: DescriptionArgs,
}

impl Show {
    pub(super) fn run(&self) -> anyhow::Result<()> {
        let file = ClusterFile::read(&self.of.cluster)?;
        let (version, description) = match &file.contents {
            ClusterFileContents::All(description) => (None, description.clone()),
            ClusterFileContents::LogLocation(_) => {
                let Described { version, description, .. } = ClusterMeta::open(&file, PATIENCE)?.read()?;
                Cluster::new(&file, description.clone())?;
                (Some(version), description)
            }
        };
        let text = toml::to_string(&description)?;
        let shown = json!({ "version": version, "description": description });
        Output { json: self.of.json }.print(&shown, |out| {
            match version {
                Some(version) => writeln!(out, "# version {version}, as the log has it")?,
                None => writeln!(out, "# as {} has it", self.of.cluster.display())?,
            }
            write!(out, "{text}")
        })?;
        Ok(())
    }
}

impl Add {
    pub(super) fn run(self) -> anyhow::Result<()> {
        let Self { tier1, follow, tier2, of } = self;
        let follow = follow.map(|ranges| ranges.into_iter().map(RangeId).collect());
        let change = match (tier1, tier2) {
            (Some(node), _) => ClusterChange::AddTier1 { node, follow },
            (None, Some(node)) => ClusterChange::AddTier2(node),
            (None, None) => bail!(Failure::Usage("--tier1 or --tier2 is expected".to_owned())),
        };
        of.change(&change, false)
    }
}

impl Remove {
    pub(super) fn run(self) -> anyhow::Result<()> {
        self.of.change(&ClusterChange::Remove(self.name), self.force)
    }
}

impl Address {
    pub(super) fn run(self) -> anyhow::Result<()> {
        self.of.change(&ClusterChange::Address(self.node), false)
    }
}

impl Replicas {
    pub(super) fn run(self) -> anyhow::Result<()> {
        self.of.change(&ClusterChange::Replicas { range: RangeId(self.range), nodes: self.nodes }, self.force)
    }
}

impl Log {
    pub(super) fn run(self) -> anyhow::Result<()> {
        let Self { settlement, log_monitor: monitors, log_window: window_minutes, of } = self;
        of.change(&ClusterChange::Log { settlement, monitors, window_minutes }, false)
    }
}

impl DescriptionArgs {
    /// Makes a change, and prints what it means. With `force`, the user answers for what the command cannot
    /// find out.
    fn change(&self, change: &ClusterChange, force: bool) -> anyhow::Result<()> {
        let file = ClusterFile::read(&self.cluster)?;
        let meta = ClusterMeta::open(&file, PATIENCE)?;
        let mut attempts = 1..ATTEMPTS;
        loop {
            let before = meta.read()?;
            let cluster = Cluster::new(&file, before.description.clone())?;
            let old = &before.description;
            let heard = hear_nodes(change, &meta, &cluster, force);
            let after = change.apply(old, &heard).map_err(anyhow::Error::msg)?;
            ensure_settles(&before.description, &after, &meta)?;
            match meta.meta.change(&before, &after) {
                Ok(made) => return self.report_change((change, force), &before, &made),
                // Another change came first. Apply this change to its result.
                Err(MetaError::Outrun) if attempts.next().is_some() => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn report_change(
        &self,
        (change, force): (&ClusterChange, bool),
        before: &Described,
        made: &Described,
    ) -> anyhow::Result<()> {
        let (old, new) = (&before.description, &made.description);
        let file = self.cluster.display().to_string();
        let report =
            ChangeReport { version: made.version, changes: changes(old, new), steps: steps(old, new, &file) };
        let condition = change.note(old, force);
        Output { json: self.json }.print(&report, |out| {
            writeln!(out, "version {} of the description of the cluster:", report.version)?;
            report.changes.iter().try_for_each(|change| writeln!(out, "  {change}"))?;
            if let Some(condition) = &condition {
                writeln!(out, "{condition}")?;
            }
            writeln!(out, "do the following, in this order:")?;
            for (number, step) in (1..).zip(&report.steps) {
                writeln!(out, "  {number}. {step}")?;
            }
            writeln!(
                out,
                "until then `doppel cluster status` names the processes that run with an older description"
            )
        })?;
        Ok(())
    }
}

/// Collects the reports of the nodes that a change needs. Says on standard error which reports are missing.
fn hear_nodes(change: &ClusterChange, meta: &ClusterMeta<'_>, cluster: &Cluster, force: bool) -> NodeReports {
    let old = &cluster.description;
    match change.needed_reports(old) {
        NeededReports::Nothing => NodeReports { force, ..NodeReports::default() },
        NeededReports::Replicas => {
            let heard = meta.hear(old, force, |heard| change.apply(old, heard).is_ok());
            if heard.replicas.iter().all(Vec::is_empty) {
                say!("doppel: no node of tier 1 was heard, so the owners of the ranges are not known");
            }
            heard
        }
        NeededReports::Partitions if force => NodeReports { force, ..NodeReports::default() },
        NeededReports::Partitions => {
            let heard = meta.hear(old, force, |heard| heard.owner(ROUTERS).is_some());
            let partitions = meta.partitions(cluster, &heard);
            let partitions = partitions.inspect_err(|why| say!("doppel: {why:#}")).ok();
            NodeReports { partitions, ..heard }
        }
    }
}

/// Ensures that all log servers confirm the mode of settlement, if the change affects the settings of the
/// log.
fn ensure_settles(before: &Description, after: &Description, meta: &ClusterMeta<'_>) -> anyhow::Result<()> {
    let Some(log) = after.log.as_ref().filter(|log| before.log.as_ref() != Some(*log)) else { return Ok(()) };
    if log.settlement == Settlement::Standby {
        return Ok(());
    }
    let ClusterMeta { connection, servers, .. } = meta;
    let streams = all_streams(&after.cluster, after.ranges);
    let place = LogTarget { engine: &connection.engine, servers, streams: &streams };
    let Objections { wrong, silent } = find_objections(log, &place, Instant::now());
    let all = [wrong, silent].concat();
    ensure!(all.is_empty(), "settlement `log` is not possible: {}", all.join("; "));
    Ok(())
}
