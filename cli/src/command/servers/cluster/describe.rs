//! `doppel cluster show`, `add`, `remove`, `address`, `replicas` and `log`: the description of a cluster that has a log, which
//! is in META, and its changes.

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
use doppel_control::log::monitored::{LogTarget, speaks_against};
use doppel_control::log::monitors::Objections;
use doppel_control::log::{WINDOW_MINUTES_MAX, all_streams};
use doppel_control::meta::{Described, MetaError};
use doppel_model::RangeId;
use doppel_protocol::Settlement;
use doppel_terminal::exit::Failure;
use doppel_terminal::output::{Output, say};
use doppel_wire::NodeName;
use serde_json::json;

use super::in_meta::{InMeta, PATIENCE};
use crate::command::servers::init::values::{monitor, node, settlement};

/// Attempts to make a change when others come first.
const ATTEMPTS: usize = 5;

/// Which cluster, and the form of the answer.
#[derive(Debug, Args)]
pub(super) struct Of {
    /// File of the cluster, as written by `doppel init`. The secret is beside it.
    #[arg(long, value_name = "FILE", env = "DOPPEL_CLUSTER")]
    cluster: PathBuf,
    /// Print JSON, one value a line.
    #[arg(long)]
    json: bool,
}

/// Show the description of a cluster: its nodes, which of them have which ranges, and how its log is kept.
///
/// With a log it is read from there, where all processes read it when they start. `ranges` are those that a node owns when
/// nothing else has happened; `doppel cluster status` shows who owns them now.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  doppel cluster show --cluster cluster.toml")]
pub(super) struct Show {
    #[command(flatten)]
    of: Of,
}

/// Add a node to a cluster with a log.
///
/// A node of tier 1 follows its share of the ranges, or those of --follow; it owns one where `doppel cluster takeover` gives it
/// that, or where the owner falls silent, as at a restart. A node of tier 2 gets partitions by and by. What is to be started and restarted is said.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  doppel cluster add --cluster cluster.toml --tier1 record-4=10.0.0.4:7801
  doppel cluster add --cluster cluster.toml --tier1 record-4=10.0.0.4:7801 --follow 1,4
  doppel cluster add --cluster cluster.toml --tier2 index-3=10.0.0.23:7802")]
pub(super) struct Add {
    /// A node of tier 1: its name, and the address at which the other nodes reach it.
    #[arg(
        long,
        value_name = "NAME=HOST:PORT",
        value_parser = node,
        required_unless_present = "tier2",
        conflicts_with = "tier2"
    )]
    tier1: Option<Tier2Node>,
    /// The ranges that it is to have a replica of [default: its share of all replicas, of the nodes that have the most].
    #[arg(long, value_name = "RANGE", value_delimiter = ',', requires = "tier1")]
    follow: Option<Vec<u16>>,
    /// A node of tier 2.
    #[arg(long, value_name = "NAME=HOST:PORT", value_parser = node)]
    tier2: Option<Tier2Node>,
    #[command(flatten)]
    of: Of,
}

/// Take a node out of a cluster with a log.
///
/// A node of tier 1 must own no range (`doppel cluster takeover`), and each of its ranges has to be at other nodes, too
/// (`doppel cluster replicas`), two of which follow it where there are two. A node of tier 2 has to be the last one, and without
/// partitions (`doppel rebalance --drain`), which the owner of range 0 is asked for.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  doppel cluster remove --cluster cluster.toml record-2")]
pub(super) struct Remove {
    /// The node, by its name.
    #[arg(value_name = "NAME")]
    name: NodeName,
    /// Do it also where no owner of a range is heard, or too few of the nodes that are left follow it: you answer for it that
    /// no range loses its last complete copy. A node of tier 2 is taken out with its partitions, which are filled in elsewhere
    /// from tier 1; new pages stay pending meanwhile.
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    of: Of,
}

/// ClusterChange the address at which a node of a cluster with a log is reached.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  doppel cluster address --cluster cluster.toml record-2=10.0.0.9:7801")]
pub(super) struct Address {
    /// The node, by its name, and where it is.
    #[arg(value_name = "NAME=HOST:PORT", value_parser = node)]
    node: Tier2Node,
    #[command(flatten)]
    of: Of,
}

/// Say which nodes of tier 1 have a replica of a range.
///
/// Where one is taken away, the owner has to be heard, and of the nodes that stay two have to follow, where there are two. To have a range move, name the new node beside the old ones, restart what is
/// said, wait until it follows, have it own the range where it is to (`doppel cluster takeover`), and then name only those that
/// are to stay.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  doppel cluster replicas --cluster cluster.toml --range 3 --nodes record-1,record-4")]
pub(super) struct Replicas {
    /// The range, by its number.
    #[arg(long, value_name = "RANGE")]
    range: u16,
    /// The nodes; the first is to own the range when all start anew.
    #[arg(long, value_name = "NODE", value_delimiter = ',', required = true)]
    nodes: Vec<NodeName>,
    /// Do it also where no owner of a range is heard, or too few of the nodes that are left follow it: you answer for it that
    /// no range loses its last complete copy.
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    of: Of,
}

/// ClusterChange how the log of a cluster is kept, and when writes are settled.
#[derive(Debug, Args)]
#[command(after_help = "\
Example, when all log servers have got `sync_interval: always`:
  doppel cluster log --cluster cluster.toml --settlement log \\
    --log-monitor http://10.0.0.11:8222,http://10.0.0.12:8222,http://10.0.0.13:8222")]
pub(super) struct Log {
    /// When a write counts: `log` or `standby`; see `doppel init --help`.
    #[arg(long, value_name = "MODE", value_parser = settlement)]
    settlement: Option<Settlement>,
    /// Where the log servers say how they are set, in place of those before.
    #[arg(long, value_name = "URL", value_delimiter = ',', value_parser = monitor)]
    log_monitor: Option<Vec<String>>,
    /// Minutes for which a stream keeps what all replicas have.
    #[arg(long, value_name = "MINUTES", value_parser = clap::value_parser!(u16).range(..=i64::from(WINDOW_MINUTES_MAX)))]
    log_window: Option<u16>,
    #[command(flatten)]
    of: Of,
}

impl Show {
    pub(super) fn run(&self) -> anyhow::Result<()> {
        let file = ClusterFile::read(&self.of.cluster)?;
        let (version, description) = match &file.contents {
            ClusterFileContents::All(description) => (None, description.clone()),
            ClusterFileContents::LogLocation(_) => {
                let Described { version, description, .. } = InMeta::find(&file, PATIENCE)?.read()?;
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

impl Of {
    /// Makes a change, and says what it means. With `force` a person answers for what cannot be found out.
    fn change(&self, change: &ClusterChange, force: bool) -> anyhow::Result<()> {
        let file = ClusterFile::read(&self.cluster)?;
        let found = InMeta::find(&file, PATIENCE)?;
        let mut attempts = 1..ATTEMPTS;
        loop {
            let before = found.read()?;
            let cluster = Cluster::new(&file, before.description.clone())?;
            let old = &before.description;
            let heard = heard(change, &found, &cluster, force);
            let after = change.apply(old, &heard).map_err(anyhow::Error::msg)?;
            ensure_settles(&before.description, &after, &found)?;
            match found.meta.change(&before, &after) {
                Ok(made) => return self.tell((change, force), &before, &made),
                // Another one came first: this one is made of what that has left.
                Err(MetaError::Outrun) if attempts.next().is_some() => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn tell(
        &self,
        (change, force): (&ClusterChange, bool),
        before: &Described,
        made: &Described,
    ) -> anyhow::Result<()> {
        let (old, new) = (&before.description, &made.description);
        let file = self.cluster.display().to_string();
        let told =
            ChangeReport { version: made.version, changes: changes(old, new), steps: steps(old, new, &file) };
        let condition = change.note(old, force);
        Output { json: self.json }.print(&told, |out| {
            writeln!(out, "version {} of the description of the cluster:", told.version)?;
            told.changes.iter().try_for_each(|change| writeln!(out, "  {change}"))?;
            if let Some(condition) = &condition {
                writeln!(out, "{condition}")?;
            }
            writeln!(out, "what is to be done, in this order:")?;
            for (number, step) in (1..).zip(&told.steps) {
                writeln!(out, "  {number}. {step}")?;
            }
            writeln!(out, "until then `doppel cluster status` names who runs with an older description")
        })?;
        Ok(())
    }
}

/// What the nodes say, as far as it matters for a change; what is not known is said on standard error.
fn heard(change: &ClusterChange, found: &InMeta<'_>, cluster: &Cluster, force: bool) -> NodeReports {
    let old = &cluster.description;
    match change.needed_reports(old) {
        NeededReports::Nothing => NodeReports { force, ..NodeReports::default() },
        NeededReports::Replicas => {
            let heard = found.hear(old, force, |heard| change.apply(old, heard).is_ok());
            if heard.replicas.iter().all(Vec::is_empty) {
                say!("doppel: no node of tier 1 was heard, so that who owns which range is not known");
            }
            heard
        }
        NeededReports::Partitions if force => NodeReports { force, ..NodeReports::default() },
        NeededReports::Partitions => {
            let heard = found.hear(old, force, |heard| heard.owner(ROUTERS).is_some());
            let partitions = found.partitions(cluster, &heard);
            let partitions = partitions.inspect_err(|why| say!("doppel: {why:#}")).ok();
            NodeReports { partitions, ..heard }
        }
    }
}

/// Ensures that all log servers confirm a mode of settlement that was not there before.
fn ensure_settles(before: &Description, after: &Description, found: &InMeta<'_>) -> anyhow::Result<()> {
    let Some(log) = after.log.as_ref().filter(|log| before.log.as_ref() != Some(*log)) else { return Ok(()) };
    if log.settlement == Settlement::Standby {
        return Ok(());
    }
    let InMeta { connection, servers, .. } = found;
    let streams = all_streams(&after.cluster, after.ranges);
    let place = LogTarget { engine: &connection.engine, servers, streams: &streams };
    let Objections { wrong, silent } = speaks_against(log, &place, Instant::now());
    let all = [wrong, silent].concat();
    ensure!(all.is_empty(), "settlement `log` is not possible: {}", all.join("; "));
    Ok(())
}
