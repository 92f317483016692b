//! Opening a collection: one database for each range, and a check that the databases belong together.
//!
//! The numbers of messages show this. A sender must have sent what the receiver has applied, and the receiver
//! must have applied what the sender holds for confirmed. A database that alone was restored to an earlier
//! moment breaks one of these rules, and would use numbers twice.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use doppel_model::pairwise::Policy;
use doppel_model::{RangeId, ShardId};
use doppel_protocol::range_owner::RangeDirectory;
use doppel_protocol::{RangeMap, RangeMapError, WinnerOrder};
use doppel_shared_log::EngineError;

use super::Tier1;
use super::backups::Backups;
use super::index_side::IndexSide;
use super::ownership::OwnedRanges;
use super::ownership::collection::CollectionFacts;
use super::ownership::owner::OpenedRange;
use super::ownership::ranges::{OtherRanges, RangeRegistry};
use super::questions::Questions;
use super::questions::rows::RowReader;
use super::submissions::Submissions;
use super::upkeep::Upkeep;
use crate::machine::{Retention, Rules, STEP_ROWS, Settings};
use crate::peers::Peers;
use crate::range::{PairExtent, Range};
use crate::replica::{ReplicaError, TransferError};
use crate::statuses::{SecretKey, Snapshot, Statuses};
use crate::storage::database::{Database, LogConsumer};
use crate::storage::progress;
use crate::storage::range_files::directories;
use crate::storage::store::{Store, StoreError};

/// How a collection is opened.
#[derive(Debug, Clone)]
pub struct Config {
    /// Directory of the databases, which are named `range-0` and so on. During a backup it also contains
    /// files without names.
    pub dir: PathBuf,
    /// Number of shards, 1 to 1024. Fixed when the collection is created.
    pub shards: u16,
    /// Number of ranges, 1 to the number of shards. Each range has a database and threads of its own. Fixed
    /// when the collection is created.
    pub ranges: u16,
    /// The pairwise function F. Fixed when the collection is created.
    pub policy: Policy,
    /// The rules by which winners are elected. Fixed when the collection is created.
    pub winners: WinnerOrder,
    /// Number of pending pages past which submissions are refused.
    pub pending_max: u64,
    /// Number of distinct contents past which a group is quarantined.
    pub group_members_max: u64,
    /// Share of members dissimilar to the winner, in percent, from which a group is recomputed. 0 means
    /// never.
    pub low_cohesion_percent: u8,
    /// What is done in the background.
    pub rules: Rules,
    /// How long dead pages, purged pages, merged groups and the trail of repairs are kept.
    pub retention: Retention,
    /// Whether statuses of pages are kept in memory, so that
    /// [`known_advice`](doppel_protocol::Tier1Api::known_advice) has an answer.
    pub status_table: bool,
    /// Least time between two snapshots of a status table.
    pub snapshot_pause: Duration,
    /// Whether commits are flushed. False only for a collection that is deleted with the process.
    pub durable: bool,
    /// Names the collection in feed cursors.
    pub collection: u64,
    /// Manifest of the data directory, for backups.
    pub manifest: String,
}

/// Why a collection or a range cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The store failed or is damaged.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The number of shards or ranges is not possible.
    #[error(transparent)]
    Ranges(#[from] RangeMapError),
    /// All ranges belong to other nodes.
    #[error("this node owns no range; give it at least one")]
    NoRange,
    /// The process owns the range already.
    #[error("this process already owns range {0}; end that ownership first")]
    Owned(RangeId),
    /// The service has stopped for good.
    #[error("tier 1 has stopped; start the process again")]
    Stopped,
    /// A replica of a range failed.
    #[error(transparent)]
    Replica(#[from] ReplicaError),
    /// The log of a range failed.
    #[error(transparent)]
    Log(#[from] EngineError),
    /// The copy of a range from another replica failed.
    #[error(transparent)]
    Transfer(#[from] TransferError),
    /// The operating system refused a thread.
    #[error("cannot start a thread: {0}")]
    Thread(std::io::Error),
}

impl Tier1 {
    /// Opens or creates a collection. No thread runs before [`start`](Self::start).
    ///
    /// # Errors
    ///
    /// If the directory is in use or damaged, or if a database is missing or older than the others.
    pub fn open(config: &Config) -> Result<Arc<Self>, Error> {
        Self::open_with_others(config, OtherRanges::new())
    }

    /// Like [`open`](Self::open), but for a node that owns all ranges except `others`. The log of each range
    /// records that this node owns it now.
    ///
    /// # Errors
    ///
    /// Like [`open`](Self::open), and if no range is left.
    pub fn open_with_others(config: &Config, others: OtherRanges) -> Result<Arc<Self>, Error> {
        let map = RangeMap::new(config.shards, config.ranges)?;
        let mut dirs = directories(&config.dir, map);
        dirs.retain(|(id, _)| !others.contains_key(id));
        if dirs.is_empty() {
            return Err(Error::NoRange);
        }
        let mut opened: Vec<Option<(OpenedRange, Range)>> = Vec::new();
        for (id, dir) in &dirs {
            let is_there = Database::is_in(dir);
            opened.push(is_there.then(|| open(config, map, *id, dir)).transpose()?);
        }
        let begun = opened.iter().flatten().any(|(_, range)| progress::of(&range.shards().metas) > 0);
        if let Some((_, (_, missing))) =
            opened.iter().zip(&dirs).find(|(opened, _)| opened.is_none() && begun)
        {
            return Err(StoreError::Missing(missing.clone()).into());
        }
        let mut all = Vec::new();
        for (opened, (id, dir)) in opened.into_iter().zip(&dirs) {
            all.push(opened.map_or_else(|| open(config, map, *id, dir), Ok)?);
        }
        if !others.is_empty() {
            for (opened, _) in &all {
                opened.database.iter().try_for_each(|database| database.take_over())?;
            }
        }
        Self::over_databases(all, (map, Arc::new(others)), config)
    }

    /// Opens a collection over given stores, one for each range. Ignores `durable` of the configuration, and
    /// uses `dir` for backups only.
    ///
    /// # Errors
    ///
    /// If a store is damaged.
    pub fn open_over_stores(stores: Vec<Arc<dyn Store>>, config: &Config) -> Result<Arc<Self>, Error> {
        Self::over_stores(stores, config, |peers| peers)
    }

    /// Like [`over`](Self::over), but puts something between the ranges, such as faults.
    pub(crate) fn over_stores(
        stores: Vec<Arc<dyn Store>>,
        config: &Config,
        between: impl FnOnce(Arc<dyn Peers>) -> Arc<dyn Peers>,
    ) -> Result<Arc<Self>, Error> {
        let ranges = u16::try_from(stores.len()).unwrap_or(u16::MAX);
        let map = RangeMap::new(config.shards, ranges)?;
        let this = Self::empty((map, Arc::new(OtherRanges::new())), config, None, between);
        let mut all = Vec::new();
        for (id, store) in map.ranges().zip(stores) {
            let opened = OpenedRange::over(store, None);
            let range = this.open_range(id, &opened)?;
            all.push((opened, range));
        }
        this.begin_together(all)?;
        Ok(this)
    }

    /// Opens one range over a given store, and notes the progress of the range in `dir`.
    #[cfg(test)]
    pub(super) fn over_noting(
        store: Arc<dyn Store>,
        dir: PathBuf,
        config: &Config,
    ) -> Result<Arc<Self>, Error> {
        let map = RangeMap::new(config.shards, 1)?;
        let this = Self::empty((map, Arc::new(OtherRanges::new())), config, None, |peers| peers);
        let opened = OpenedRange::over(store, Some(dir));
        let range = this.open_range(RangeId(0), &opened)?;
        this.begin_range(opened, range)?;
        Ok(this)
    }

    /// Opens a node that owns no range yet. It begins ranges while it runs, and reaches all others through
    /// the directory.
    ///
    /// # Errors
    ///
    /// If the number of shards or ranges is not possible.
    pub fn open_none(config: &Config, directory: Arc<dyn RangeDirectory>) -> Result<Arc<Self>, Error> {
        let map = RangeMap::new(config.shards, config.ranges)?;
        Ok(Self::empty((map, directory), config, None, |peers| peers))
    }

    fn over_databases(
        all: Vec<(OpenedRange, Range)>,
        (map, others): (RangeMap, Arc<dyn RangeDirectory>),
        config: &Config,
    ) -> Result<Arc<Self>, Error> {
        let key = all.iter().find_map(|(opened, _)| opened.saved_statuses.as_ref().map(|saved| saved.key));
        let this = Self::empty((map, others), config, key, |peers| peers);
        this.begin_together(all)?;
        Ok(this)
    }

    /// Begins ranges that were opened together, if their databases belong together.
    fn begin_together(&self, all: Vec<(OpenedRange, Range)>) -> Result<(), Error> {
        fit_together(&all, self.collection.map)?;
        all.into_iter().try_for_each(|(opened, range)| self.begin_range(opened, range))
    }

    /// Creates the service of a process that owns no range yet. Status tables use `key`, so that they can
    /// begin from snapshots that were written under it.
    fn empty(
        (map, directory): (RangeMap, Arc<dyn RangeDirectory>),
        config: &Config,
        key: Option<SecretKey>,
        between: impl FnOnce(Arc<dyn Peers>) -> Arc<dyn Peers>,
    ) -> Arc<Self> {
        let collection = CollectionFacts { id: config.collection, settings: settings(config), map };
        let key = key.unwrap_or_else(SecretKey::random);
        let statuses = config.status_table.then(|| Arc::new(Statuses::new(map, config.winners, key)));
        let ranges = Arc::new(RangeRegistry::new(map, directory));
        let peers = between(Arc::clone(&ranges) as Arc<dyn Peers>);
        let rows = RowReader::new(map, Arc::clone(&peers), Some(Arc::clone(&ranges)));
        let owned = Arc::new(OwnedRanges::new(collection, ranges, peers, statuses.clone()));
        Arc::new(Self {
            collection,
            submissions: Submissions::new(&owned, rows.clone(), config.pending_max),
            upkeep: Arc::new(Upkeep::new(&owned, rows.clone(), config.snapshot_pause)),
            index_side: IndexSide::new(&owned, rows.clone()),
            backups: Backups::new(&owned, config.dir.clone(), config.manifest.clone()),
            questions: Questions::new(&owned, rows, statuses),
            owned,
            lifecycle: Default::default(),
        })
    }
}

fn settings(config: &Config) -> Settings {
    Settings {
        shards: config.shards,
        policy: config.policy,
        winners: config.winners,
        group_members_max: config.group_members_max,
        low_cohesion_percent: config.low_cohesion_percent,
        rules: config.rules,
        retention: config.retention,
        step_rows: STEP_ROWS,
    }
}

fn open(config: &Config, map: RangeMap, id: RangeId, dir: &Path) -> Result<(OpenedRange, Range), StoreError> {
    let share = config.ranges;
    let database = Arc::new(Database::open_share(dir, config.durable, share)?);
    let range = Range::open(&*database, settings(config), id, map)?;
    if config.durable {
        progress::verify(dir, progress::of(&range.shards().metas))?;
    }
    let saved_statuses = if config.status_table { saved_statuses(dir, map.run(id)) } else { None };
    if saved_statuses.is_none() {
        database.keep_log(LogConsumer::Statuses, None);
    }
    let dir = config.durable.then(|| dir.to_owned());
    let (store, uncached_store) = (Arc::clone(&database) as Arc<dyn Store>, database.uncached());
    let (database, epoch, lease) = (Some(database), None, None);
    Ok((OpenedRange { store, uncached_store, database, dir, saved_statuses, epoch, lease }, range))
}

/// The snapshot of a range's status table, if there is one of these shards.
fn saved_statuses(dir: &Path, run: std::ops::Range<ShardId>) -> Option<Snapshot> {
    match Snapshot::open(dir) {
        Ok(found) => found.filter(|saved| saved.basis.first == run.start && saved.basis.end == run.end),
        Err(error) => {
            tracing::warn!(dir = %dir.display(), %error, "cannot use the snapshot of the status table; the table is filled from the rows");
            None
        }
    }
}

/// Whether the databases belong to one moment of one collection, as far as messages show it. Between two
/// nodes the receipts of messages show it.
fn fit_together(all: &[(OpenedRange, Range)], map: RangeMap) -> Result<(), StoreError> {
    let ranges = || all.iter().map(|(_, range)| range);
    let of = |shard: ShardId| ranges().find(|range| range.id() == map.of_shard(shard));
    for receiver in ranges() {
        for to in receiver.shards().run() {
            for from in (0..map.shards()).map(ShardId).filter(|from| map.of_shard(*from) != receiver.id()) {
                let Some(sender) = of(from) else { continue };
                if receiver.shards().applied(to, from) > sender.shards().sent(from, to) {
                    return Err(StoreError::Apart { behind: sender.id(), ahead: receiver.id() });
                }
            }
        }
    }
    for sender in ranges() {
        for PairExtent { from, to, confirmed, .. } in sender.outbox().extents() {
            let Some(receiver) = of(to) else { continue };
            if confirmed > receiver.shards().applied(to, from) {
                return Err(StoreError::Apart { behind: receiver.id(), ahead: sender.id() });
            }
        }
    }
    Ok(())
}
