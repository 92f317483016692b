//! `doppel init`: the files of a new cluster.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, anyhow};
use clap::Args;
use doppel_model::{RangeId, Tau};
use doppel_shared_log::EngineError;
use doppel_tier1::Settlement;

use crate::cluster::log::{MAX_BYTES, MAX_BYTES_LEAST, WINDOW_MINUTES, WINDOW_MINUTES_MAX, check_server};
use crate::cluster::{LogSettings, Node, Tier1Node, Written, streams};
use crate::exit::Failure;
use crate::manifest::{Manifest, Wanted};
use crate::winners::Winners;
use crate::wire::DEFAULTS;

/// How long servers are asked again that do not answer at once, as while they elect a leader.
const PATIENCE: Duration = Duration::from_secs(10);

/// Write the file of a new cluster, and its secret; with --log make the streams that it is replicated through.
///
/// Every process of the cluster reads a copy of both files, which are readable by their owner alone. Without --log the cluster
/// is distributed, not replicated: each range of pages is on one node of tier 1 alone, so take backups (docs/CLUSTER.md). With
/// --log each range has replicas on several nodes, which follow its log on servers of NATS JetStream, 2.9.10 or newer. These
/// log servers have to run already, for the streams of the log are made here.
///
/// Where machines can lose their power, the log servers need 2.12 or newer with `sync_interval: always` in `jetstream {}` of
/// their configuration: else they acknowledge what is not on a disk yet. That they have it cannot be found out from here.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  doppel init cluster.toml --tier1 record-1=10.0.0.1:7801 --tier1 record-2=10.0.0.2:7801 --tier2 index=10.0.0.3:7802 \\
    --log nats://10.0.0.11:4222,nats://10.0.0.12:4222,nats://10.0.0.13:4222
  doppel init cluster.toml --tier1 record=10.0.0.1:7801 --tier2 index-1=10.0.0.2:7802 --tier2 index-2=10.0.0.3:7802")]
pub(crate) struct Init {
    /// The file to write; the secret goes beside it, under the same name with the ending `.secret`.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// A node of tier 1, the system of record: its name, and the address at which the other nodes reach it; given once for
    /// each, 1 to 64. The ranges are dealt out among them in turn.
    #[arg(long, value_name = "NAME=HOST:PORT", required = true, value_parser = node)]
    tier1: Vec<Node>,
    /// A node of tier 2, the index; given once for each, 1 to 128.
    #[arg(long, value_name = "NAME=HOST:PORT", required = true, value_parser = node)]
    tier2: Vec<Node>,
    /// Two pages are near-duplicates when the Jaccard coefficient of their 5-word shingles is above this, 0.5 to 0.9999
    /// [default: 0.8].
    #[arg(long)]
    tau: Option<Tau>,
    /// Tier-1 shards, 1 to 256 [default: 16, or as many as ranges].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    shards: Option<u16>,
    /// Ranges that the shards are cut into, 1 to 64: at least one for each node of tier 1, and no more than shards. Fixed from
    /// then on [default: one for a single node of tier 1, else two for each].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    ranges: Option<u16>,
    /// A file with the rules by which winners are elected (docs/WINNERS.md). They are fixed from then on; its markets count at
    /// each coordinator.
    #[arg(long, value_name = "FILE")]
    winners: Option<PathBuf>,
    /// A log server, which is a NATS server with JetStream; given once for each, or separated by commas, 1 to 16. All that are
    /// given have to answer.
    #[arg(long, value_name = "URL", value_delimiter = ',', value_parser = server)]
    log: Vec<String>,
    /// Log servers that have a copy of each stream: 1, 3 or 5. More than half of them have to be there for pages to be taken
    /// [default: 3 with three log servers or more, also with five; else 1].
    #[arg(long, value_name = "N", value_parser = log_replicas)]
    log_replicas: Option<u16>,
    /// Bytes that the stream of each range may have, at least 16 MiB. Each log server sets so much aside for every stream that
    /// it has a copy of, without taking it from the disk yet. From half of them on, what the nodes that run have copied goes; a
    /// stream that is full all the same takes no pages until it is given more (docs/CLUSTER.md) [default: 8 GiB].
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u64).range(MAX_BYTES_LEAST..))]
    log_max_bytes: Option<u64>,
    /// Minutes for which a stream keeps what all replicas have, 0 to 1440: a node that was away no longer than this reads on
    /// instead of copying its ranges. What was purged leaves the stream after that [default: 60].
    #[arg(long, value_name = "MINUTES", value_parser = clap::value_parser!(u16).range(..=i64::from(WINDOW_MINUTES_MAX)))]
    log_window: Option<u16>,
    /// Nodes of tier 1 that have a replica of each range, its owner among them [default: 2 with --log and two nodes of tier 1
    /// or more, else 1].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    replicas: Option<u16>,
}

fn server(text: &str) -> Result<String, String> {
    check_server(text)?;
    Ok(text.to_owned())
}

fn log_replicas(text: &str) -> Result<u16, String> {
    let replicas = text.parse().ok().filter(|replicas| [1, 3, 5].contains(replicas));
    replicas.ok_or_else(|| "1, 3 or 5 is expected".to_owned())
}

fn node(text: &str) -> Result<Node, String> {
    let (name, address) =
        text.split_once('=').ok_or("NAME=HOST:PORT is expected, such as index-1=10.0.0.2:7802")?;
    let name = name.parse().map_err(|error: doppel_wire::InvalidName| error.to_string())?;
    Ok(Node { name, address: address.to_owned() })
}

impl Init {
    /// The cluster of these nodes, with defaults in all else.
    pub(crate) fn of(file: PathBuf, tier1: Vec<Node>, tier2: Vec<Node>) -> Self {
        Self {
            file,
            tier1,
            tier2,
            tau: None,
            shards: None,
            ranges: None,
            winners: None,
            log: Vec::new(),
            log_replicas: None,
            log_max_bytes: None,
            log_window: None,
            replicas: None,
        }
    }

    /// The same with other ranges and replicas, and with a log where it has servers.
    pub(crate) fn with(
        self,
        ranges: Option<u16>,
        replicas: Option<u16>,
        log: Vec<String>,
        log_max_bytes: u64,
    ) -> Self {
        let log_max_bytes = (!log.is_empty()).then_some(log_max_bytes);
        Self { ranges, replicas, log, log_max_bytes, ..self }
    }

    /// What is to be written, when all goes together.
    ///
    /// # Errors
    /// When it does not.
    pub(crate) fn written(&self) -> anyhow::Result<Written> {
        let Self { file, tier1, tier2, tau, shards, ranges, winners, log, .. } = self;
        let of_nodes = if tier1.len() > 1 { Some((tier1.len() * 2).min(64) as u16) } else { None };
        let winners = winners.as_deref().map(Winners::read).transpose()?.unwrap_or_default().order;
        let wanted = Wanted { tau: *tau, shards: *shards, ranges: ranges.or(of_nodes), winners };
        let manifest = Manifest::new(wanted, DEFAULTS)?;
        let count = tier1.len();
        if count > usize::from(manifest.ranges) {
            let reason = format!(
                "{count} nodes of tier 1 need at least as many ranges; --ranges is {}",
                manifest.ranges
            );
            return Err(Failure::Usage(reason).into());
        }
        if log.is_empty()
            && (self.log_replicas.is_some() || self.log_max_bytes.is_some() || self.log_window.is_some())
        {
            return Err(Failure::Usage(
                "--log-replicas, --log-max-bytes and --log-window say how log servers keep a log, and without --log there is none; name the \
                 servers with --log, or leave these options out"
                    .to_owned(),
            )
            .into());
        }
        let dealt = deal(manifest.ranges, count, self.replicas()?);
        let node = |(Node { name, address }, (ranges, standby)): (&Node, _)| Tier1Node {
            name: name.clone(),
            address: address.clone(),
            ranges,
            standby,
        };
        let log = (!log.is_empty()).then(|| LogSettings {
            servers: log.clone(),
            replicas: self.log_replicas.unwrap_or(if log.len() < 3 { 1 } else { 3 }),
            settlement: Settlement::Log,
            max_bytes: self.log_max_bytes.unwrap_or(MAX_BYTES),
            window_minutes: self.log_window.unwrap_or(WINDOW_MINUTES),
        });
        let secret = Path::new(file.file_name().context("FILE names no file")?).with_extension("secret");
        let written = Written {
            cluster: random_hex(16)?,
            secret,
            tau: manifest.policy.tau,
            shards: manifest.shards,
            ranges: manifest.ranges,
            winners: manifest.winners,
            log,
            tier1: tier1.iter().zip(dealt).map(node).collect(),
            tier2: tier2.clone(),
        };
        if file.file_name() == Some(written.secret.as_os_str()) {
            return Err(Failure::Usage(
                "FILE is the name of its secret; another ending is needed".to_owned(),
            )
            .into());
        }
        written.check().map_err(Failure::Usage)?;
        Ok(written)
    }

    /// Nodes that have a replica of each range.
    fn replicas(&self) -> Result<u16, Failure> {
        let nodes = self.tier1.len();
        match self.replicas {
            None if self.log.is_empty() || nodes < 2 => Ok(1),
            None => Ok(2),
            Some(wanted) if wanted > 1 && self.log.is_empty() => Err(Failure::Usage(
                "without --log nothing is replicated, and --replicas is 1 at most; name log servers with --log"
                    .to_owned(),
            )),
            Some(wanted) if usize::from(wanted) > nodes => Err(Failure::Usage(format!(
                "--replicas is {wanted}, and there are only {nodes} nodes of tier 1 to have one each"
            ))),
            Some(wanted) => Ok(wanted),
        }
    }

    /// Makes the streams and writes the files; log servers may take so long to answer, and `tell` is told of one that does
    /// not at once.
    ///
    /// # Errors
    /// When a file or a stream is there already or cannot be made, or the nodes do not go together.
    pub(crate) fn create(
        self,
        patience: Duration,
        tell: &dyn Fn(&EngineError),
    ) -> anyhow::Result<(PathBuf, Written)> {
        let written = self.written()?;
        let file = self.file;
        let there = || {
            anyhow!(
                "{} or its secret is there already, and is not replaced: a cluster keeps both for as long as it lives",
                file.display()
            )
        };
        // Known before streams are made, which would be left.
        if written.is_there(&file) {
            return Err(there());
        }
        if let Some(log) = &written.log {
            streams::make(log, &written.streams(), patience, tell)
                .with_context(|| format!("the log cannot be made, and {} is not written", file.display()))?;
        }
        written.create(&file, &random_hex(32)?).map_err(|error| match error.kind() {
            std::io::ErrorKind::AlreadyExists => there(),
            _ => anyhow::Error::new(error).context(format!("cannot write {}", file.display())),
        })?;
        Ok((file, written))
    }

    pub(crate) fn run(self) -> anyhow::Result<()> {
        let replicas = self.replicas()?;
        if !self.log.is_empty() {
            eprintln!("doppel: connecting to the log servers {}", self.log.join(", "));
        }
        let tell = |error: &EngineError| eprintln!("doppel: {error}; trying for {} s", PATIENCE.as_secs());
        let (file, written) = self.create(PATIENCE, &tell)?;
        let file = file.display();
        if let (Some(log), [first, .., _] | [first]) = (&written.log, &*written.streams()) {
            let streams = match written.ranges {
                1 => format!("the stream {first}"),
                count => format!("{count} streams, {first} and on, one for each range,"),
            };
            println!("made {streams} at {}", log.servers.join(", "));
            println!("{}", promised(log.replicas));
            println!("{}", replicated(replicas));
        }
        let secret = written.secret.display();
        println!("wrote {file} and beside it {secret}, which only their owner may read");
        println!(
            "copy both to every machine of the cluster, readable by whoever runs Doppel there, then start:"
        );
        for node in &written.tier1 {
            println!("  doppel tier1 --cluster {file} --name {} --data DIR", node.name);
        }
        for node in &written.tier2 {
            println!("  doppel tier2 --cluster {file} --name {} --data DIR", node.name);
        }
        println!("  doppel coordinator --cluster {file} --name NAME     (as many as you like)");
        Ok(())
    }
}

/// What the copies of the log are good for.
fn promised(replicas: u16) -> String {
    match replicas {
        1 => "the log is on one server only: while that is away nothing is taken".to_owned(),
        _ => format!(
            "the log has {replicas} copies: it goes on and loses nothing while {} of their servers {} away",
            replicas / 2,
            if replicas / 2 == 1 { "is" } else { "are" }
        ),
    }
}

/// What the replicas of a range are good for.
fn replicated(replicas: u16) -> String {
    match replicas {
        1 => "warning: each range is on one node of tier 1 only: while that is away nobody takes over, and its pages are \
              neither taken nor answered. Its streams are never trimmed, and what it has can be copied from them"
            .to_owned(),
        _ => format!("each range is on {replicas} nodes of tier 1: where its owner dies, another takes over"),
    }
}

/// The ranges that each node owns, and those that it follows. Both are dealt out in turn, and the nodes that follow the ranges of
/// one owner change from range to range: when it is lost, all others share its work.
fn deal(ranges: u16, nodes: usize, replicas: u16) -> Vec<(Vec<RangeId>, Vec<RangeId>)> {
    let mut dealt = vec![(Vec::new(), Vec::new()); nodes];
    for range in 0..ranges {
        let (owner, turn) = (usize::from(range) % nodes, usize::from(range) / nodes);
        dealt[owner].0.push(RangeId(range));
        for copy in 0..usize::from(replicas) - 1 {
            let behind = 1 + (turn + copy) % (nodes - 1);
            dealt[(owner + behind) % nodes].1.push(RangeId(range));
        }
    }
    dealt
}

/// So many random bytes of the system, as hex digits.
fn random_hex(bytes: usize) -> anyhow::Result<String> {
    let mut random = vec![0; bytes];
    std::fs::File::open("/dev/urandom")
        .and_then(|mut file| std::io::Read::read_exact(&mut file, &mut random))
        .context("the system gives no random numbers")?;
    Ok(random.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn init(nodes: u16, log: &[&str]) -> Init {
        let node =
            |n: u16| Node { name: format!("n-{n}").parse().unwrap(), address: format!("10.0.0.1:{n}") };
        let log = log.iter().map(|server| (*server).to_owned()).collect();
        let init = Init::of("cluster.toml".into(), (1..=nodes).map(node).collect(), vec![node(100)]);
        Init { log, ..init }
    }

    #[test]
    fn ranges_and_their_replicas_are_dealt_out_evenly() {
        for (ranges, nodes, replicas) in
            [(6, 3, 2), (6, 3, 3), (8, 4, 3), (64, 5, 2), (1, 1, 1), (64, 64, 64)]
        {
            let dealt = deal(ranges, nodes, replicas);
            for range in (0..ranges).map(RangeId) {
                let has = |ranges: &Vec<RangeId>| ranges.iter().filter(|other| **other == range).count();
                assert_eq!(dealt.iter().map(|(own, _)| has(own)).sum::<usize>(), 1);
                assert_eq!(
                    dealt.iter().filter(|(_, standby)| has(standby) == 1).count(),
                    usize::from(replicas) - 1
                );
                assert!(dealt.iter().all(|(own, standby)| has(own) + has(standby) <= 1), "two at one node");
            }
            let counts = || dealt.iter().map(|(own, standby)| own.len() + standby.len());
            let uneven = counts().max().unwrap() - counts().min().unwrap();
            assert!(uneven <= 2, "{ranges} {nodes} {replicas}: {dealt:?}");
        }
        // The two ranges of each node are followed by both of the others.
        let dealt = deal(6, 3, 2);
        assert_eq!(dealt[0], (vec![RangeId(0), RangeId(3)], vec![RangeId(2), RangeId(4)]));
        assert!(dealt[1].1.contains(&RangeId(0)) && dealt[2].1.contains(&RangeId(3)));
    }

    #[test]
    fn what_is_not_said_depends_on_the_servers_and_the_nodes() {
        let three = ["nats://a:1", "nats://b:1", "nats://c:1"];
        let copies = |init: Init| {
            let written = init.written().unwrap();
            let standbys: usize = written.tier1.iter().map(|node| node.standby.len()).sum();
            (written.log.map(|log| log.replicas), standbys / usize::from(written.ranges) + 1)
        };
        assert_eq!(copies(init(3, &[])), (None, 1));
        assert_eq!(copies(init(3, &three[..2])), (Some(1), 2));
        assert_eq!(copies(init(3, &three)), (Some(3), 2));
        assert_eq!(copies(init(1, &three)), (Some(3), 1));
        assert_eq!(copies(Init { replicas: Some(3), ..init(3, &three) }), (Some(3), 3));
        for (init, says) in [
            (Init { replicas: Some(2), ..init(3, &[]) }, "without --log nothing is replicated"),
            (Init { replicas: Some(4), ..init(3, &three) }, "only 3 nodes of tier 1"),
            (Init { log_replicas: Some(3), ..init(3, &[]) }, "without --log there is none"),
            (Init { log_max_bytes: Some(1 << 30), ..init(3, &[]) }, "without --log there is none"),
            (Init { log_window: Some(5), ..init(3, &[]) }, "without --log there is none"),
        ] {
            let reason = init.written().unwrap_err().to_string();
            assert!(reason.contains(says), "{reason}");
        }
    }
}
