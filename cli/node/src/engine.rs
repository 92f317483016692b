//! Puts the roles together on one data directory: the one place that names them all.

pub mod record_node;
pub mod replicated_node;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use doppel_contract::Markets;
use doppel_coordinator::app::{MonitoredDirectory, Services, system_clock};
use doppel_coordinator::limits::Limits;
use doppel_engine::ingest::Ingest;
use doppel_engine::shard_map::ShardMap;
use doppel_model::pairwise::{Policy, Signer};
use doppel_model::tables::Tables;
use doppel_protocol::{ContentSource, IndexOrders, MappingApi, Tier1Api, Tier2Api, WinnerOrder};
use doppel_terminal::atomic_file;
use doppel_tier1::{OtherRanges, Retention, Rules, Tier1};
use doppel_tier2::Tier2;
use prometheus_client::registry::Registry;

use crate::args::{EngineArgs, TuningArgs};
use crate::directory::manifest::{self, Defaults, Manifest, ManifestRequest};
use crate::directory::new_directory;
use crate::directory::policy_tables;
use crate::directory::served;
use crate::winners::WinnerSettings;

/// What a new data directory has. One range costs the least on two cores (docs/evaluation/speed.md).
pub const DEFAULTS: Defaults = Defaults { shards: 16, ranges: 1 };

/// The name of the only node.
const NODE: &str = "local";

/// What a directory is opened for.
#[derive(Clone, Copy)]
struct Purpose {
    durable: bool,
    /// Whether pages are asked for meanwhile.
    answers: bool,
    rules: Rules,
}

/// Both tiers, started.
pub struct LocalEngine {
    /// The system of record.
    pub tier1: Arc<Tier1>,
    /// The index.
    pub tier2: Arc<Tier2>,
    /// The pairwise function.
    pub policy: Policy,
    /// Makes signatures of it.
    pub signer: Signer,
    /// By which rules winners are elected.
    pub winners: WinnerOrder,
    /// The markets that have a name.
    pub markets: Markets,
    /// Tier-1 shards.
    pub shards: u16,
}

/// What the command line asks for.
pub struct CollectionRequest {
    /// Of a collection.
    pub wanted: ManifestRequest,
    /// The tables that it names or has learnt.
    pub tables: Option<Arc<Tables>>,
    /// The markets that it names.
    pub markets: Markets,
}

/// What the command line asks for.
///
/// # Errors
/// When a file that it names cannot be used.
pub fn asked(args: &EngineArgs) -> anyhow::Result<CollectionRequest> {
    let WinnerSettings { order, markets } = winners(&args.tuning)?;
    let policy = args.policy.policy()?;
    let tables = policy_tables::given(&args.policy)?;
    let hash = tables.as_deref().map(Tables::hash);
    let wanted = ManifestRequest {
        policy,
        by_tau: args.policy.is_by_tau(),
        tables: hash,
        shards: args.shards,
        ranges: args.ranges,
        winners: order,
    };
    Ok(CollectionRequest { wanted, tables, markets })
}

/// The rules and markets of the file of `--winners`; none where there is none.
///
/// # Errors
/// When the file cannot be used.
pub fn winners(tuning: &TuningArgs) -> anyhow::Result<WinnerSettings> {
    Ok(tuning.winners.as_deref().map(WinnerSettings::read).transpose()?.unwrap_or_default())
}

impl LocalEngine {
    /// Opens or creates a data directory, recovers tier 1, brings tier 2 in line with it, and starts
    /// both. Without `durable` nothing is flushed to disk: for a directory that is removed anyway.
    ///
    /// # Errors
    /// When the directory cannot be used as asked, or a tier does not open.
    pub fn open(dir: &Path, args: &EngineArgs, durable: bool) -> anyhow::Result<Self> {
        Self::open_asked(dir, asked(args)?, args, durable)
    }

    /// The same with what the command line asks for, or the command has learnt.
    ///
    /// # Errors
    /// The same.
    pub fn open_asked(
        dir: &Path,
        asked: CollectionRequest,
        args: &EngineArgs,
        durable: bool,
    ) -> anyhow::Result<Self> {
        Self::open_for(dir, asked, args, Purpose { durable, answers: false, rules: Rules::EXACT })
    }

    /// The same, to answer questions meanwhile: what is mostly asked is kept in memory.
    ///
    /// # Errors
    /// The same.
    pub fn open_to_serve(dir: &Path, args: &EngineArgs) -> anyhow::Result<Self> {
        Self::open_for(dir, asked(args)?, args, Purpose { durable: true, answers: true, rules: Rules::EXACT })
    }

    /// The same for a directory that is removed anyway, with other rules for background work, for comparison.
    ///
    /// # Errors
    /// The same.
    pub fn open_to_compare(dir: &Path, args: &EngineArgs, rules: Rules) -> anyhow::Result<Self> {
        Self::open_for(dir, asked(args)?, args, Purpose { durable: false, answers: true, rules })
    }

    fn open_for(
        dir: &Path,
        CollectionRequest { wanted, tables, markets }: CollectionRequest,
        args: &EngineArgs,
        purpose: Purpose,
    ) -> anyhow::Result<Self> {
        let manifest = Manifest::open_or_create_with(dir, wanted, DEFAULTS, tables.as_deref())?;
        let signer = policy_tables::of_directory(dir, (manifest.policy, manifest.tables), tables)?;
        let tier1 = open_tier1(dir, (&manifest, &manifest), &args.tuning, purpose, OtherRanges::new())?;
        ensure_not_lost(dir, &tier1)?;
        let config = doppel_tier2::Config { nodes: args.index_nodes, ..index(dir, &manifest, &args.tuning) };
        let source = Arc::clone(&tier1) as Arc<dyn ContentSource>;
        let tier2 = Tier2::open_beside(config, source, tier1.stored_signatures().as_ref());
        let tier2 = tier2.with_context(|| format!("cannot open the index in {}", dir.display()))?;
        tier1.start(Arc::clone(&tier2) as Arc<dyn IndexOrders>).context("cannot start tier 1")?;
        let (policy, winners) = (manifest.policy, manifest.winners);
        Ok(Self { tier1, tier2, policy, signer, winners, markets, shards: manifest.shards })
    }

    /// What a front door over this process alone needs.
    pub fn services(&self, ingest: Ingest, dir: &Path, temp_dir: PathBuf) -> Services {
        Services {
            tier1: Arc::clone(&self.tier1) as Arc<dyn Tier1Api>,
            tier2: Arc::clone(&self.tier2) as Arc<dyn Tier2Api>,
            mapping: Some(Arc::clone(&self.tier2) as Arc<dyn MappingApi>),
            cluster: None,
            policy: self.policy,
            winners: self.winners,
            markets: self.markets.clone(),
            shard_map: ShardMap::fixed(vec![NODE.to_owned(); usize::from(self.shards)]),
            ingest: Arc::new(ingest),
            tokens: None,
            registry: Registry::default(),
            clock: system_clock(),
            directories: vec![
                MonitoredDirectory { name: "tier1", path: dir.join("tier1"), is_own: true },
                MonitoredDirectory { name: "tier2", path: dir.join("tier2"), is_own: true },
                MonitoredDirectory { name: "temp", path: temp_dir.clone(), is_own: false },
            ],
            temp_dir,
            limits: Limits::default(),
        }
    }

    /// Ends both; what is pending is decided after the next start.
    pub fn stop(self) {
        self.tier1.stop();
        self.tier2.stop();
    }
}

/// Opens the ranges of a data directory but for those of other processes. The second manifest is that of backups.
fn open_tier1(
    dir: &Path,
    (manifest, of_backups): (&Manifest, &Manifest),
    args: &TuningArgs,
    purpose: Purpose,
    others: OtherRanges,
) -> anyhow::Result<Arc<Tier1>> {
    // Tier 1 is made first. If its files are lost, an empty collection in their place would look sound.
    let lost = dir.join("tier1");
    anyhow::ensure!(
        lost.exists() || !dir.join("tier2").exists(),
        "{} is missing: restore {} from a backup, or name an empty directory",
        lost.display(),
        dir.display()
    );
    let config = config(dir, (manifest, of_backups), args, purpose)?;
    let tier1 = Tier1::open_some(&config, others).with_context(|| format!("cannot open {}", dir.display()));
    let tier1 = tier1.map_err(|error| served::name_server(dir, error))?;
    // Now the directory is this process's alone.
    atomic_file::remove_temporary_files(dir, |name| {
        manifest::is_aside(name) || policy_tables::is_aside(name)
    });
    new_directory::remove_left(dir);
    Ok(tier1)
}

/// What tier 1 of a data directory is opened with. The second manifest is that of backups.
fn config(
    dir: &Path,
    (manifest, of_backups): (&Manifest, &Manifest),
    args: &TuningArgs,
    Purpose { durable, answers, rules }: Purpose,
) -> anyhow::Result<doppel_tier1::Config> {
    let map = manifest.map()?;
    Ok(doppel_tier1::Config {
        dir: dir.join("tier1"),
        shards: map.shards(),
        ranges: map.count() as u16,
        policy: manifest.policy,
        winners: manifest.winners,
        pending_max: args.pending_max,
        group_members_max: args.group_members_max,
        low_cohesion_percent: args.low_cohesion_percent,
        rules,
        retention: Retention {
            dead: args.keep_dead.0,
            purged: args.keep_purged.0,
            merged: args.keep_merged.0,
            audit: args.keep_audit.0,
        },
        status_table: answers,
        snapshot_pause: args.snapshot_every.0,
        durable,
        collection: manifest.collection(),
        manifest: of_backups.seal().context("cannot write the manifest down")?,
    })
}

/// Ensures that pages which the index beside them knows are there. The storage engine takes a file that was overwritten for
/// one that was never written.
fn ensure_not_lost(dir: &Path, tier1: &Tier1) -> anyhow::Result<()> {
    anyhow::ensure!(
        tier1.own_counters().submissions > 0 || doppel_tier2::check::is_empty(&dir.join("tier2")),
        "{} has lost its pages: restore {} from a backup, or name an empty directory",
        dir.join("tier1").display(),
        dir.display()
    );
    Ok(())
}

/// What the index of a data directory is opened with.
fn index(dir: &Path, manifest: &Manifest, args: &TuningArgs) -> doppel_tier2::Config {
    doppel_tier2::Config {
        partitions: args.partitions,
        dimensions: args.dimensions,
        snapshot_pause: args.snapshot_every.0,
        ..doppel_tier2::Config::new(dir.join("tier2"), manifest.policy)
    }
}
