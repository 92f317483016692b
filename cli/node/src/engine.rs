//! Assembles the roles on one data directory. Only this module and its children name all roles.

pub mod record_node;
pub mod replicated_node;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use doppel_contract::Markets;
use doppel_coordinator::app::{MonitoredDirectory, Services, system_clock};
use doppel_coordinator::limits::Limits;
use doppel_engine::ingest::Ingest;
use doppel_engine::shard_owners::ShardOwners;
use doppel_model::pairwise::{Policy, Signer};
use doppel_model::tables::Tables;
use doppel_protocol::{
    ContentSource, IndexOrders, MappingApi, StoredSignatures, Tier1Api, Tier2Api, WinnerOrder,
};
use doppel_terminal::atomic_file;
use doppel_tier1::bulk::NewContents;
use doppel_tier1::{OtherRanges, Retention, Rules, Tier1};
use doppel_tier2::Tier2;
use prometheus_client::registry::Registry;

use crate::args::{EngineArgs, TuningArgs};
use crate::directory::manifest::{self, Defaults, Manifest, ManifestRequest};
use crate::directory::new_directory;
use crate::directory::policy_tables;
use crate::directory::served;
use crate::winners::WinnerSettings;

/// Defaults of a new data directory. A single range costs the least on two cores (docs/evaluation/speed.md).
pub const DEFAULTS: Defaults = Defaults { shards: 16, ranges: 1 };

/// Name of the only node of a process that has all roles.
const NODE: &str = "local";

/// The purpose for which a directory is opened.
#[derive(Clone, Copy)]
struct Purpose {
    /// Whether writes are flushed to disk.
    durable: bool,
    /// Whether the process answers questions about pages, so that the status table is kept in memory.
    answers: bool,
    rules: Rules,
}

/// Both tiers, started in this process.
pub struct LocalEngine {
    /// The system of record.
    pub tier1: Arc<Tier1>,
    /// The derived index of tier 2.
    pub tier2: Arc<Tier2>,
    /// Policy by which contents are compared.
    pub policy: Policy,
    /// Makes the signatures of the policy.
    pub signer: Signer,
    /// Rules by which winners are elected.
    pub winners: WinnerOrder,
    /// Markets with a name.
    pub markets: Markets,
    /// Number of tier-1 shards.
    pub shards: u16,
}

/// The collection that the command line asks for.
pub struct CollectionRequest {
    /// Fixed properties of the collection.
    pub wanted: ManifestRequest,
    /// Tables of the policy, from a file or learnt by the command.
    pub tables: Option<Arc<Tables>>,
    /// Markets in the file of `--winners`.
    pub markets: Markets,
}

/// Reads the options and the files that they name.
///
/// # Errors
/// If options contradict each other or a file cannot be used.
pub fn collection_request(args: &EngineArgs) -> anyhow::Result<CollectionRequest> {
    let WinnerSettings { order, markets } = winners(&args.tuning)?;
    let policy = args.policy.policy()?;
    let tables = policy_tables::from_args(&args.policy)?;
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

/// Reads the rules and markets in the file of `--winners`; empty settings if the option is not given.
///
/// # Errors
/// If the file cannot be used.
pub fn winners(tuning: &TuningArgs) -> anyhow::Result<WinnerSettings> {
    Ok(tuning.winners.as_deref().map(WinnerSettings::read).transpose()?.unwrap_or_default())
}

/// Makes the index of a new collection in the folder `dir` of tier 2. A start with the same number of dimensions
/// uses the snapshot of the index. All files are on disk on return.
///
/// # Errors
/// If a content cannot be read, or the folder cannot be written.
pub fn write_index(
    dir: &Path,
    manifest: &Manifest,
    dimensions: usize,
    contents: NewContents,
) -> anyhow::Result<()> {
    let contents = Arc::new(contents);
    let (source, stored) =
        (Arc::clone(&contents) as Arc<dyn ContentSource>, contents as Arc<dyn StoredSignatures>);
    let config = doppel_tier2::Config { dimensions, ..doppel_tier2::Config::new(dir, manifest.policy) };
    let built = Tier2::build(config, source, &stored);
    built.with_context(|| format!("cannot write the index in {}", dir.display()))
}

impl LocalEngine {
    /// Opens or creates a data directory, recovers tier 1, brings tier 2 in line with tier 1, and starts
    /// both.
    ///
    /// Without `durable`, no write is flushed to disk. That is for directories that are removed afterwards.
    ///
    /// # Errors
    /// If the directory contradicts the options, or a tier does not open.
    pub fn open(dir: &Path, args: &EngineArgs, durable: bool) -> anyhow::Result<Self> {
        Self::open_requested(dir, collection_request(args)?, args, durable)
    }

    /// Like [`open`](Self::open), with a request that the command has completed, for example with learnt
    /// tables.
    ///
    /// # Errors
    /// See [`open`](Self::open).
    pub fn open_requested(
        dir: &Path,
        asked: CollectionRequest,
        args: &EngineArgs,
        durable: bool,
    ) -> anyhow::Result<Self> {
        Self::open_for(dir, asked, args, Purpose { durable, answers: false, rules: Rules::EXACT })
    }

    /// Like [`open`](Self::open), for a process that answers questions: the status table is kept in memory.
    ///
    /// # Errors
    /// See [`open`](Self::open).
    pub fn open_to_serve(dir: &Path, args: &EngineArgs) -> anyhow::Result<Self> {
        Self::open_for(
            dir,
            collection_request(args)?,
            args,
            Purpose { durable: true, answers: true, rules: Rules::EXACT },
        )
    }

    /// Like [`open_to_serve`](Self::open_to_serve), for a comparison with other rules for background work.
    /// Writes are not flushed, because the directory is removed afterwards.
    ///
    /// # Errors
    /// See [`open`](Self::open).
    pub fn open_to_compare(dir: &Path, args: &EngineArgs, rules: Rules) -> anyhow::Result<Self> {
        Self::open_for(dir, collection_request(args)?, args, Purpose { durable: false, answers: true, rules })
    }

    fn open_for(
        dir: &Path,
        CollectionRequest { wanted, tables, markets }: CollectionRequest,
        args: &EngineArgs,
        purpose: Purpose,
    ) -> anyhow::Result<Self> {
        let manifest = Manifest::open_or_create_with(dir, wanted, DEFAULTS, tables.as_deref())?;
        let signer = policy_tables::signer_of_directory(dir, (manifest.policy, manifest.tables), tables)?;
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

    /// The services of a coordinator in this process.
    pub fn services(&self, ingest: Ingest, dir: &Path, temp_dir: PathBuf) -> Services {
        Services {
            tier1: Arc::clone(&self.tier1) as Arc<dyn Tier1Api>,
            tier2: Arc::clone(&self.tier2) as Arc<dyn Tier2Api>,
            mapping: Some(Arc::clone(&self.tier2) as Arc<dyn MappingApi>),
            cluster: None,
            policy: self.policy,
            winners: self.winners,
            markets: self.markets.clone(),
            shard_owners: ShardOwners::fixed(vec![NODE.to_owned(); usize::from(self.shards)]),
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

    /// Stops both tiers; pending pages are decided after the next start.
    pub fn stop(self) {
        self.tier1.stop();
        self.tier2.stop();
    }
}

/// Opens the ranges of a data directory, except for the ranges of other processes. The second manifest is
/// written to backups.
fn open_tier1(
    dir: &Path,
    (manifest, of_backups): (&Manifest, &Manifest),
    args: &TuningArgs,
    purpose: Purpose,
    others: OtherRanges,
) -> anyhow::Result<Arc<Tier1>> {
    // Tier 1 is created before tier 2. If its files are lost, an empty collection in their place would look
    // sound.
    let lost = dir.join("tier1");
    anyhow::ensure!(
        lost.exists() || !dir.join("tier2").exists(),
        "{} is missing: restore {} from a backup, or name an empty directory",
        lost.display(),
        dir.display()
    );
    let config = config(dir, (manifest, of_backups), args, purpose)?;
    let tier1 =
        Tier1::open_with_others(&config, others).with_context(|| format!("cannot open {}", dir.display()));
    let tier1 = tier1.map_err(|error| served::name_server(dir, error))?;
    // From here on, this process holds the directory.
    atomic_file::remove_temporary_files(dir, |name| {
        manifest::is_aside(name) || policy_tables::is_aside(name)
    });
    new_directory::remove_leftovers(dir);
    Ok(tier1)
}

/// Configuration of tier 1 in a data directory. The second manifest is written to backups.
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
        manifest: of_backups.seal().context("cannot encode the manifest of backups")?,
    })
}

/// Ensures that tier 1 has not lost its pages while the index still has contents. The check is needed because
/// the storage engine takes an overwritten file for one that was never written.
fn ensure_not_lost(dir: &Path, tier1: &Tier1) -> anyhow::Result<()> {
    anyhow::ensure!(
        tier1.own_counters().submissions > 0 || doppel_tier2::check::is_empty(&dir.join("tier2")),
        "{} has lost its pages: restore {} from a backup, or name an empty directory",
        dir.join("tier1").display(),
        dir.display()
    );
    Ok(())
}

/// Configuration of the index in a data directory.
fn index(dir: &Path, manifest: &Manifest, args: &TuningArgs) -> doppel_tier2::Config {
    doppel_tier2::Config {
        partitions: args.partitions,
        dimensions: args.dimensions,
        snapshot_pause: args.snapshot_every.0,
        ..doppel_tier2::Config::new(dir.join("tier2"), manifest.policy)
    }
}
