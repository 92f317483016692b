//! `doppel init`: writes the files of a new cluster.

mod settle;
#[cfg(test)]
mod tests;
pub(crate) mod values;

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, anyhow};
use clap::Args;
use doppel_control::description::file::{ClusterFileContents, LogLocation, NewFiles};
use doppel_control::description::{Description, Tier1Node, Tier2Node, placement};
use doppel_control::log::streams;
use doppel_control::log::{
    self, LogSettings, MAX_BYTES, MAX_BYTES_LEAST, WINDOW_MINUTES, WINDOW_MINUTES_MAX,
};
use doppel_model::RangeId;
use doppel_node::args::PolicyArgs;
use doppel_node::directory::manifest::{Manifest, ManifestRequest};
use doppel_node::directory::policy_tables;
use doppel_node::engine::DEFAULTS;
use doppel_node::winners::WinnerSettings;
use doppel_protocol::Settlement;
use doppel_shared_log::EngineError;
use doppel_terminal::exit::Failure;
use doppel_terminal::output::{Output, say};
use doppel_wire::Secret;

use crate::slow_policy;
use settle::{describe_log_copies, describe_replicas, describe_settlement};
use values::{log_replicas, monitor, node, server, settlement};

/// How long log servers are retried that do not answer at once, for example while they elect a leader.
const PATIENCE: Duration = Duration::from_secs(10);

/// Write the file of a new cluster, and its secret; with --log create the streams through which it is
/// replicated.
///
/// Every process of the cluster reads a copy of both files, which only their owner may read. Without --log
/// the cluster is distributed, not replicated: each range of pages is on a single node of tier 1, so take
/// backups (docs/guides/back-up-and-restore.md). With --log each range has replicas on several nodes, which
/// follow its log on servers of NATS JetStream, 2.9.10 or newer. The log servers must already run, because
/// the command creates the streams of the log. One of the streams stores the description of the nodes, which
/// `doppel cluster` changes later. The file then only says where the log is.
///
/// If machines can lose power, use log servers of 2.12 or newer with `sync_interval: always` in `jetstream
/// {}` of their configuration. They write to their disks before they acknowledge. --log-monitor lets the
/// command confirm this setting, and settlement is then `log`; otherwise it is `standby`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  doppel init cluster.toml --tier1 record-1=10.0.0.1:7801 --tier1 record-2=10.0.0.2:7801 --tier2 index=10.0.0.3:7802 \\
    --log nats://10.0.0.11:4222,nats://10.0.0.12:4222,nats://10.0.0.13:4222
  doppel init cluster.toml --tier1 record=10.0.0.1:7801 --tier2 index-1=10.0.0.2:7802 --tier2 index-2=10.0.0.3:7802")]
pub(crate) struct Init {
    /// File to write. The secret goes beside it, under the same name with the ending `.secret`.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Name of a node of tier 1, the system of record, and the address at which the other nodes reach it.
    /// Give the option once for each node, 1 to 64. The ranges are dealt out among the nodes in turn.
    #[arg(long, value_name = "NAME=HOST:PORT", required = true, value_parser = node)]
    tier1: Vec<Tier2Node>,
    /// Name and address of a node of tier 2, the index. Give the option once for each node, 1 to 128.
    #[arg(long, value_name = "NAME=HOST:PORT", required = true, value_parser = node)]
    tier2: Vec<Tier2Node>,
    #[command(flatten)]
    policy: PolicyArgs,
    /// Number of tier-1 shards, 1 to 256 [default: 16, or as many as ranges].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    shards: Option<u16>,
    /// Number of ranges into which the shards are divided, 1 to 64: at least one for each node of tier 1, and
    /// no more than shards. It cannot be changed later [default: one for a single node of tier 1, else two
    /// for each].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    ranges: Option<u16>,
    /// File with the rules by which winners are elected (docs/reference/winner-rules.md). The rules cannot be
    /// changed later. The markets of the file are not used here; each coordinator has its own.
    #[arg(long, value_name = "FILE")]
    winners: Option<PathBuf>,
    /// URL of a log server, which is a NATS server with JetStream. Give the option once for each server, or
    /// separate the URLs by commas, 1 to 16. All given servers must answer.
    #[arg(long, value_name = "URL", value_delimiter = ',', value_parser = server)]
    log: Vec<String>,
    /// Number of log servers that have a copy of each stream: 1, 3 or 5. The cluster accepts pages only while
    /// more than half of them run [default: 3 with three log servers or more, also with five; else 1].
    #[arg(long, value_name = "N", value_parser = log_replicas)]
    log_replicas: Option<u16>,
    /// Largest size of the stream of each range in bytes, at least 16 MiB. Each log server reserves this size
    /// for every stream of which it has a copy, but does not use the disk space yet. When a stream is half
    /// full, entries are deleted that all running nodes have copied. A stream that is full nevertheless
    /// accepts no pages until you give it more space (docs/concepts/replication.md) [default: 8 GiB].
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u64).range(MAX_BYTES_LEAST..))]
    log_max_bytes: Option<u64>,
    /// Minutes for which a stream keeps entries that all replicas have, 0 to 1440. A node that was away for a
    /// shorter time reads on instead of copying its ranges. Purged pages leave the stream after this time
    /// [default: 60].
    #[arg(long, value_name = "MINUTES", value_parser = clap::value_parser!(u16).range(..=i64::from(WINDOW_MINUTES_MAX)))]
    log_window: Option<u16>,
    /// URL at which a log server reports its settings, which is `http:` in its configuration. Give one for
    /// each --log, either once for each or separated by commas.
    #[arg(long, value_name = "URL", value_delimiter = ',', value_parser = monitor)]
    log_monitor: Vec<String>,
    /// When a write is settled and answered. `log`: when the log servers have it on their disks, which
    /// --log-monitor must confirm. `standby`: when a second node of tier 1 has it on its disk [default: `log`
    /// where all monitors confirm it, else `standby`].
    #[arg(long, value_name = "MODE", value_parser = settlement)]
    settlement: Option<Settlement>,
    /// Number of nodes of tier 1 that have a replica of each range, including its owner. With settlement
    /// `standby` at least 2; writes of a range wait while fewer than 2 of these nodes run [default: 3 with
    /// settlement `standby` and three nodes of tier 1 or more; 2 with --log and two nodes or more; else 1].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    replicas: Option<u16>,
}

impl Init {
    /// Creates the command for a cluster of these nodes, with defaults for all other options.
    pub(crate) fn of(file: PathBuf, tier1: Vec<Tier2Node>, tier2: Vec<Tier2Node>) -> Self {
        Self {
            file,
            tier1,
            tier2,
            policy: PolicyArgs::default(),
            shards: None,
            ranges: None,
            winners: None,
            log: Vec::new(),
            log_replicas: None,
            log_max_bytes: None,
            log_window: None,
            log_monitor: Vec::new(),
            settlement: None,
            replicas: None,
        }
    }

    /// Replaces the numbers of ranges and replicas.
    pub(crate) fn with(self, ranges: Option<u16>, replicas: Option<u16>) -> Self {
        Self { ranges, replicas, ..self }
    }

    /// Sets the policy and the file of winner rules.
    pub(crate) fn comparing(self, policy: PolicyArgs, winners: Option<PathBuf>) -> Self {
        Self { policy, winners, ..self }
    }

    /// Adds a log on these servers.
    pub(crate) fn with_log(self, log: Vec<String>, log_monitor: Vec<String>, log_max_bytes: u64) -> Self {
        Self { log, log_monitor, log_max_bytes: Some(log_max_bytes), ..self }
    }

    /// Describes the cluster.
    ///
    /// # Errors
    /// If the options contradict each other.
    pub(crate) fn description(&self, settlement: Settlement) -> anyhow::Result<Description> {
        let Self { file, tier1, tier2, policy, shards, ranges, winners, log, .. } = self;
        let of_nodes = if tier1.len() > 1 { Some((tier1.len() * 2).min(64) as u16) } else { None };
        let winners = winners.as_deref().map(WinnerSettings::read).transpose()?.unwrap_or_default().order;
        let tables = policy_tables::from_args(policy)?.map(|tables| tables.hash());
        let by_tau = policy.is_by_tau();
        let (policy, ranges) = (policy.policy()?, ranges.or(of_nodes));
        let wanted = ManifestRequest { policy, by_tau, tables, shards: *shards, ranges, winners };
        let manifest = Manifest::new(wanted, DEFAULTS)?;
        let count = tier1.len();
        if count > usize::from(manifest.ranges) {
            let reason = format!(
                "{count} nodes of tier 1 need at least as many ranges; --ranges is {}",
                manifest.ranges
            );
            return Err(Failure::Usage(reason).into());
        }
        self.check_log()?;
        let log_replicas = self.log_replicas.unwrap_or(if log.len() < 3 { 1 } else { 3 });
        let names: Vec<&str> = tier1.iter().map(|node| node.name.as_str()).collect();
        let replicas = usize::from(self.replicas(settlement)?);
        let table = placement::propose(usize::from(manifest.ranges), &names, replicas);
        let node = |(at, Tier2Node { name, address }): (usize, &Tier2Node)| {
            let of = |has: &dyn Fn(&[usize]) -> bool| {
                let ranges = (0..).zip(&table).filter(|(_, nodes)| has(nodes));
                ranges.map(|(range, _)| RangeId(range)).collect()
            };
            let (ranges, standby) = (of(&|nodes| nodes[0] == at), of(&|nodes| nodes[1..].contains(&at)));
            Tier1Node { name: name.clone(), address: address.clone(), ranges, standby }
        };
        let log = (!log.is_empty()).then(|| LogSettings {
            monitors: self.log_monitor.clone(),
            replicas: log_replicas,
            settlement,
            max_bytes: self.log_max_bytes.unwrap_or(MAX_BYTES),
            window_minutes: self.log_window.unwrap_or(WINDOW_MINUTES),
        });
        let description = Description {
            cluster: random_hex(16)?,
            secret_mark: None,
            policy: manifest.policy,
            tables: manifest.tables,
            shards: manifest.shards,
            ranges: manifest.ranges,
            winners: manifest.winners,
            log,
            tier1: tier1.iter().enumerate().map(node).collect(),
            tier2: tier2.clone(),
        };
        if file.file_name() == Some(self.secret()?.as_os_str()) {
            return Err(Failure::Usage(
                "FILE is the name of its secret; another ending is needed".to_owned(),
            )
            .into());
        }
        description.check().map_err(Failure::Usage)?;
        Ok(description)
    }

    /// Name of the file of the secret.
    fn secret(&self) -> anyhow::Result<PathBuf> {
        let name = self.file.file_name().context("FILE names no file")?;
        Ok(Path::new(name).with_extension("secret"))
    }

    /// Creates the streams and writes the files. Waits up to `patience` for log servers, and calls `tell`
    /// about a server that does not answer at once.
    ///
    /// # Errors
    /// If a file or a stream already exists or cannot be created, or the options contradict each other.
    pub(crate) fn create(
        &self,
        patience: Duration,
        tell: &dyn Fn(&EngineError),
    ) -> anyhow::Result<CreatedCluster> {
        self.check_log()?;
        let (file, secret) = (&self.file, self.secret()?);
        let files = NewFiles { path: file, secret: &secret };
        let exists_error = || match files.is_only_the_secret_there() {
            true => anyhow!(
                "{} is there without {}: an earlier `doppel init` was broken off, or the file was moved. If no cluster has this \
                 secret, delete it, and try again",
                file.with_file_name(&secret).display(),
                file.display()
            ),
            false => anyhow!(
                "{} or its secret is there already, and is not replaced: a cluster keeps both for as long as it lives",
                file.display()
            ),
        };
        let cannot = || format!("cannot write {}", file.display());
        // Found before streams are created, which would otherwise remain without a file.
        if files.are_there() {
            return Err(exists_error());
        }
        let not_made = || format!("the log cannot be made, and {} is not written", file.display());
        streams::servers(&self.log, patience, tell).with_context(not_made)?;
        let (settlement, why) = self.settle(patience)?;
        let (mut description, drawn) = (self.description(settlement)?, random_hex(32)?);
        if description.log.is_some() {
            description.secret_mark = Some(Secret::new(&drawn)?.mark());
        }
        let (contents, made) = match &description.log {
            None => (ClusterFileContents::All(description.clone()), Vec::new()),
            Some(log) => {
                files.try_to().with_context(cannot)?;
                let made = self.make(log, &description, patience).with_context(not_made)?;
                (
                    ClusterFileContents::LogLocation(LogLocation {
                        servers: self.log.clone(),
                        ..LogLocation::default()
                    }),
                    made,
                )
            }
        };
        let created = files.create(&description.cluster, &contents, &drawn);
        created.map_err(|error| {
            let error = match error.kind() {
                io::ErrorKind::AlreadyExists => exists_error(),
                _ => anyhow::Error::new(error).context(cannot()),
            };
            if made.is_empty() { error } else { error.context(streams::left(&made)) }
        })?;
        Ok(CreatedCluster { description, secret, why })
    }

    /// Creates the streams of the cluster and returns their names. The last stream stores the description.
    fn make(
        &self,
        log: &LogSettings,
        description: &Description,
        patience: Duration,
    ) -> anyhow::Result<Vec<String>> {
        let connection = streams::Connection::new(&self.log, patience)?;
        self.ensure_monitored(log, &connection, &[], patience)?;
        let all = log::all_streams(&description.cluster, description.ranges);
        // If the user interrupts the command, the message names the streams that remain.
        say!(
            "doppel: making {} streams, the names of which begin with {}",
            all.len(),
            log::prefix(&description.cluster)
        );
        connection.make(log, description)?;
        // Only after the streams exist is it known which servers have their copies.
        self.ensure_monitored(log, &connection, &all, patience)
            .map_err(|error| error.context(streams::left(&all)))?;
        Ok(all)
    }

    pub(crate) fn run(self) -> anyhow::Result<()> {
        if !self.log.is_empty() {
            say!("doppel: connecting to the log servers {}", self.log.join(", "));
        }
        let tell = |error: &EngineError| say!("doppel: {error}; trying for {} s", PATIENCE.as_secs());
        let CreatedCluster { description: written, secret, why } = self.create(PATIENCE, &tell)?;
        slow_policy::warning(written.policy).inspect(|warning| say!("doppel: {warning}"));
        Output { json: false }
            .print(&(), |out| self.print_created(&written, &secret, why.as_deref(), out))?;
        Ok(())
    }

    /// Prints what was created, and which processes to start.
    fn print_created(
        &self,
        written: &Description,
        secret: &Path,
        why: Option<&str>,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let (file, secret) = (self.file.display(), secret.display());
        if let Some(log) = &written.log {
            let first = log::stream(&written.cluster, RangeId(0));
            let streams = match written.ranges {
                1 => format!("the stream {first}"),
                count => format!("{count} streams, {first} and on, one for each range,"),
            };
            let meta = log::meta(&written.cluster);
            let at = self.log.join(", ");
            writeln!(out, "made {streams} and {meta} with the description of the cluster, at {at}")?;
            writeln!(out, "{}", describe_log_copies(log.replicas))?;
            why.iter().try_for_each(|why| writeln!(out, "{why}"))?;
            writeln!(out, "{}", describe_settlement(log.settlement))?;
            writeln!(out, "{}", describe_replicas(log.settlement, written.replicas_of(RangeId(0)).len()))?;
        }
        writeln!(out, "wrote {file} and beside it {secret}, which only their owner may read")?;
        writeln!(
            out,
            "copy both to every machine of the cluster, readable by whoever runs Doppel there, then start:"
        )?;
        for node in &written.tier1 {
            writeln!(out, "  doppel tier1 --cluster {file} --name {} --data DIR", node.name)?;
        }
        for node in &written.tier2 {
            writeln!(out, "  doppel tier2 --cluster {file} --name {} --data DIR", node.name)?;
        }
        let tables = self.policy.policy_tables.as_ref();
        let tables =
            tables.map(|tables| format!(" --policy-tables {}", tables.display())).unwrap_or_default();
        writeln!(
            out,
            "  doppel coordinator --cluster {file} --name NAME --listen HOST:PORT{tables}     (as many as you like)"
        )
    }
}

/// Files and streams that were created.
pub(crate) struct CreatedCluster {
    description: Description,
    secret: PathBuf,
    /// Why settlement is not `log`, if the user did not choose it.
    why: Option<String>,
}

/// Returns `bytes` random bytes of the system as hex digits.
///
/// # Errors
/// If the system gives no random bytes.
fn random_hex(bytes: usize) -> anyhow::Result<String> {
    let mut random = vec![0; bytes];
    std::fs::File::open("/dev/urandom")
        .and_then(|mut file| io::Read::read_exact(&mut file, &mut random))
        .context("the system gives no random numbers")?;
    Ok(random.iter().map(|byte| format!("{byte:02x}")).collect())
}
