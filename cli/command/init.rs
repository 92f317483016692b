//! `doppel init`: the files of a new cluster.

use std::path::PathBuf;

use anyhow::{Context, anyhow};
use clap::Args;
use doppel_model::{RangeId, Tau};

use crate::cluster::{Node, Tier1Node, Written};
use crate::exit::Failure;
use crate::manifest::{Manifest, Wanted};
use crate::winners::Winners;
use crate::wire::DEFAULTS;

/// Write the file of a new cluster, and its secret.
///
/// Every process of the cluster reads a copy of both. The cluster is distributed, not replicated: each range of pages is on
/// one node of tier 1 alone, so take backups (docs/CLUSTER.md).
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  doppel init cluster.toml --tier1 record=10.0.0.1:7801 --tier2 index-1=10.0.0.2:7802 --tier2 index-2=10.0.0.3:7802")]
pub(crate) struct Init {
    /// The file to write; the secret goes beside it, under the same name with the ending `.secret`.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// A node of tier 1, the system of record: its name, and the address at which the other nodes reach it; given once for
    /// each. The ranges are dealt out among them in turn.
    #[arg(long, value_name = "NAME=HOST:PORT", required = true, value_parser = node)]
    tier1: Vec<Node>,
    /// A node of tier 2, the index; given once for each.
    #[arg(long, value_name = "NAME=HOST:PORT", required = true, value_parser = node)]
    tier2: Vec<Node>,
    /// Two pages are near-duplicates when the Jaccard coefficient of their 5-word shingles is above this, 0.5 to 0.9999
    /// [default: 0.8].
    #[arg(long)]
    tau: Option<Tau>,
    /// Tier-1 shards, 1 to 256 [default: 16, or as many as ranges].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    shards: Option<u16>,
    /// Ranges that the shards are cut into, 1 to 64 [default: one for a single node of tier 1, else two for each].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    ranges: Option<u16>,
    /// A file with the rules by which winners are elected (docs/WINNERS.md). They are fixed from then on; its markets count at
    /// each coordinator.
    #[arg(long, value_name = "FILE")]
    winners: Option<PathBuf>,
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
        Self { file, tier1, tier2, tau: None, shards: None, ranges: None, winners: None }
    }

    /// Writes the files.
    ///
    /// # Errors
    /// When one is there already or cannot be written, or the nodes do not go together.
    pub(crate) fn create(self) -> anyhow::Result<(PathBuf, Written)> {
        let Self { file, tier1, tier2, tau, shards, ranges, winners } = self;
        let of_nodes = if tier1.len() > 1 { Some((tier1.len() * 2).min(64) as u16) } else { None };
        let winners = winners.as_deref().map(Winners::read).transpose()?.unwrap_or_default().order;
        let wanted = Wanted { tau, shards, ranges: ranges.or(of_nodes), winners };
        let manifest = Manifest::new(wanted, DEFAULTS)?;
        let count = tier1.len();
        if count > usize::from(manifest.ranges) {
            let reason = format!(
                "{count} nodes of tier 1 need at least as many ranges; --ranges is {}",
                manifest.ranges
            );
            return Err(Failure::Usage(reason).into());
        }
        let owner = |(at, Node { name, address })| Tier1Node {
            name,
            address,
            ranges: (0..manifest.ranges).skip(at).step_by(count).map(RangeId).collect(),
        };
        let tier1 = tier1.into_iter().enumerate().map(owner).collect();
        let secret_name =
            file.file_name().map(PathBuf::from).context("FILE names no file")?.with_extension("secret");
        let written = Written {
            cluster: random_hex(16)?,
            secret: secret_name,
            tau: manifest.policy.tau,
            shards: manifest.shards,
            ranges: manifest.ranges,
            winners: manifest.winners,
            tier1,
            tier2,
        };
        if file.file_name() == Some(written.secret.as_os_str()) {
            return Err(Failure::Usage(
                "FILE is the name of its secret; another ending is needed".to_owned(),
            )
            .into());
        }
        written.check().map_err(Failure::Usage)?;
        written.create(&file, &random_hex(32)?).map_err(|error| match error.kind() {
            std::io::ErrorKind::AlreadyExists => anyhow!(
                "{} or its secret is there already, and is not replaced: a cluster keeps both for as long as it lives",
                file.display()
            ),
            _ => anyhow::Error::new(error).context(format!("cannot write {}", file.display())),
        })?;
        Ok((file, written))
    }

    pub(crate) fn run(self) -> anyhow::Result<()> {
        let (file, written) = self.create()?;
        let file = file.display();
        println!("wrote {file} and its secret; copy both to every machine of the cluster, then start there:");
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

/// So many random bytes of the system, as hex digits.
fn random_hex(bytes: usize) -> anyhow::Result<String> {
    let mut random = vec![0; bytes];
    std::fs::File::open("/dev/urandom")
        .and_then(|mut file| std::io::Read::read_exact(&mut file, &mut random))
        .context("the system gives no random numbers")?;
    Ok(random.iter().map(|byte| format!("{byte:02x}")).collect())
}
