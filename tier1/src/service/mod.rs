//! The service around the machine: threads, queues, recovery.
//!
//! One writer thread owns the shards. Callers hand it tasks over a channel and wait for the commit;
//! while one commit is flushed the next tasks gather, so load makes the commits larger by itself.

mod api;
mod audit;
mod background;
pub(crate) mod backup;
mod content_source;
mod feed;
mod hint;
mod queue;
mod read;
pub(crate) mod repair;
mod sweep;
#[cfg(test)]
mod tests;
pub(crate) mod worker;
mod writer;

#[cfg(feature = "simulation")]
pub use feed::Extent as FeedExtent;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError, RwLock};
use std::thread::JoinHandle;
use std::time::{SystemTime, UNIX_EPOCH};

use crossbeam::channel::{Receiver, Sender, unbounded};
use doppel_model::pairwise::Policy;
use doppel_model::{PageId, Timestamp};
use doppel_protocol::{Backlog, Counters, Tier1Error, Tier2Api, WinnerOrder};

use crate::machine::{Retention, Rules, STEP_ROWS, Settings, Shards};
use crate::progress;
use crate::recovery::{self, Owed};
use crate::store::{Recent, Sled, Store, StoreError};
use worker::Job;
use writer::Task;

/// How a collection is opened.
#[derive(Debug, Clone)]
pub struct Config {
    /// Directory of the database.
    pub dir: PathBuf,
    /// Shards, 1 to 1024. Fixed when the collection is created.
    pub shards: u16,
    /// The pairwise function. Fixed when the collection is created.
    pub policy: Policy,
    /// By which rules winners are elected. Fixed when the collection is created.
    pub winners: WinnerOrder,
    /// Pages pending past which submissions are refused.
    pub pending_max: u64,
    /// Members past which a group is quarantined.
    pub group_members_max: u64,
    /// Share of members dissimilar to the winner, in percent, from which a group is recomputed; 0 for never.
    pub low_cohesion_percent: u8,
    /// What is done in the background.
    pub rules: Rules,
    /// How long what has ended is kept.
    pub retention: Retention,
    /// Whether commits are flushed. False only for a collection that is thrown away with the process.
    pub durable: bool,
    /// Names the collection in feed cursors.
    pub collection: u64,
    /// The data directory's manifest, for backups.
    pub manifest: String,
}

/// Why a collection cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The number of shards.
    #[error("{0} shards; 1 to 1024 are possible")]
    Shards(u16),
    /// No thread.
    #[error("cannot start a thread: {0}")]
    Thread(std::io::Error),
}

/// Tier 1 of one process.
pub struct Tier1 {
    store: Arc<dyn Store>,
    /// What the machine reads: the same rows, without those kept for questions, which its reading would drive out.
    beneath: Arc<dyn Store>,
    settings: Settings,
    pending_max: u64,
    collection: u64,
    manifest: String,
    tasks: Sender<Task>,
    jobs: Sender<Job>,
    totals: RwLock<(Counters, Backlog)>,
    /// A page was asked for since the last commit.
    asked: AtomicBool,
    /// Pages handed in and not yet committed.
    arriving: AtomicU64,
    /// Feed numbers given so far, per shard, and news of their growth.
    pub(crate) feed: Mutex<Vec<feed::Extent>>,
    feed_grew: Condvar,
    /// Where it is noted how far the collection has come.
    progress: OnceLock<PathBuf>,
    broken: OnceLock<Tier1Error>,
    /// Why some background work cannot be done.
    stuck: OnceLock<Tier1Error>,
    stopping: AtomicBool,
    start: Mutex<Option<Start>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

/// What waits for [`Tier1::start`].
struct Start {
    shards: Shards,
    owed: Owed,
    tasks: Receiver<Task>,
    jobs: Receiver<Job>,
}

impl Tier1 {
    /// Opens or creates a collection and finds what is owed. Nothing runs before [`start`](Self::start).
    ///
    /// # Errors
    /// When the directory is in use or damaged.
    pub fn open(config: &Config) -> Result<Arc<Self>, Error> {
        let sled: Arc<dyn Store> = Arc::new(Sled::open(&config.dir, config.durable)?);
        let this = Self::over_both(Arc::new(Recent::new(Arc::clone(&sled))), sled, config)?;
        if config.durable {
            let start = this.start.lock().unwrap_or_else(PoisonError::into_inner);
            let metas = start.iter().flat_map(|start| &start.shards.metas);
            progress::verify(&config.dir, progress::of(metas))?;
            this.progress.get_or_init(|| config.dir.clone());
        }
        Ok(this)
    }

    /// The same over a given store; `dir` and `durable` of the configuration are not used.
    ///
    /// # Errors
    /// When the store is damaged.
    pub fn over(store: Arc<dyn Store>, config: &Config) -> Result<Arc<Self>, Error> {
        Self::over_both(Arc::clone(&store), store, config)
    }

    fn over_both(
        store: Arc<dyn Store>,
        beneath: Arc<dyn Store>,
        config: &Config,
    ) -> Result<Arc<Self>, Error> {
        if !(1..=1024).contains(&config.shards) {
            return Err(Error::Shards(config.shards));
        }
        let settings = Settings {
            shards: config.shards,
            policy: config.policy,
            winners: config.winners,
            group_members_max: config.group_members_max,
            low_cohesion_percent: config.low_cohesion_percent,
            rules: config.rules,
            retention: config.retention,
            step_rows: STEP_ROWS,
        };
        let shards = recovery::shards(&*store, settings)?;
        let owed = recovery::owed(&*store, config.shards, &mut |_, _| {})?;
        let (task_sender, tasks) = unbounded();
        let (job_sender, jobs) = unbounded();
        let totals = crate::totals::sum(&shards.metas, shards.undelivered());
        let feed = shards.metas.iter().map(feed::Extent::of).collect();
        Ok(Arc::new(Self {
            store,
            beneath,
            settings,
            pending_max: config.pending_max,
            collection: config.collection,
            manifest: config.manifest.clone(),
            tasks: task_sender,
            jobs: job_sender,
            totals: RwLock::new(totals),
            asked: AtomicBool::new(false),
            arriving: AtomicU64::new(0),
            feed: Mutex::new(feed),
            feed_grew: Condvar::new(),
            progress: OnceLock::new(),
            broken: OnceLock::new(),
            stuck: OnceLock::new(),
            stopping: AtomicBool::new(false),
            start: Mutex::new(Some(Start { shards, owed, tasks, jobs })),
            threads: Mutex::new(Vec::new()),
        }))
    }

    /// Starts the writer and the worker. Does nothing the second time.
    ///
    /// # Errors
    /// When a thread cannot be started.
    pub fn start(self: &Arc<Self>, tier2: Arc<dyn Tier2Api>) -> Result<(), Error> {
        let Some(start) = self.start.lock().unwrap_or_else(PoisonError::into_inner).take() else {
            return Ok(());
        };
        let Start { shards, owed, tasks, jobs } = start;
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        let (this, work) = (Arc::clone(self), Arc::clone(self));
        let spawn = |name: &str, run: Box<dyn FnOnce() + Send>| {
            let run = || {
                // Half a group of commands may be in memory: nothing but a restart is safe now.
                if std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).is_err() {
                    std::process::abort();
                }
            };
            std::thread::Builder::new().name(name.to_owned()).spawn(run).map_err(Error::Thread)
        };
        threads
            .push(spawn("tier1-writer", Box::new(move || writer::run(&this, &tier2, shards, owed, &tasks)))?);
        threads.push(spawn("tier1-worker", Box::new(move || worker::run(&work, &jobs)))?);
        Ok(())
    }

    /// Ends the threads after what was accepted is committed. What is owed is found at the next start.
    pub fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
        let _ = self.tasks.send(Task::Stop);
        let _ = self.jobs.send(Job::Stop);
        let threads = std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        for thread in threads {
            if thread.join().is_err() {
                tracing::error!("a tier-1 thread panicked");
            }
        }
        self.feed_grew.notify_all();
    }

    /// Bytes of the database on disk.
    #[must_use]
    pub fn bytes_on_disk(&self) -> u64 {
        self.store.bytes_on_disk()
    }

    fn check(&self) -> Result<(), Tier1Error> {
        self.broken.get().map_or(Ok(()), |refused| Err(refused.clone()))
    }

    fn owner(&self, page: PageId) -> doppel_model::ShardId {
        page.shard(self.settings.shards)
    }
}

fn now() -> Timestamp {
    let millis = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_millis());
    Timestamp::from_millis(i64::try_from(millis).unwrap_or(i64::MAX))
}

impl From<StoreError> for Tier1Error {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::DiskFull => Self::DiskFull(error.to_string()),
            StoreError::InUse | StoreError::Engine(_) => Self::ReadOnly(error.to_string()),
            StoreError::Missing(_)
            | StoreError::Behind { .. }
            | StoreError::Corrupt(_)
            | StoreError::Damaged { .. }
            | StoreError::Version { .. } => Self::Damaged(error.to_string()),
        }
    }
}
