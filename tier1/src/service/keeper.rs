//! Keeps the replicas of a node: each follows the log of its range, takes the range over when its owner has fallen silent, and
//! gives it up when another node has taken it over.
//!
//! Clocks decide when a node tries to take over, and the log who has.

mod replication;

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam::channel::bounded;
use doppel_model::{Epoch, RangeId};
use doppel_protocol::membership::{Beat, Claim};
use doppel_protocol::range_owner::PeerError;

use super::Tier1;
use super::open::{Config, Error};
use super::owner::Opened;
use crate::database::{Database, Reader};
use crate::progress;
use crate::range_map::directory;
use crate::replica::{OwnedRows, Replica, ReplicaError, log_id};
use replication::LogLease;
pub use replication::{ReplicatedRange, Replication};

/// An owner that nobody has heard of for so long is taken for dead.
const SILENCE: Duration = Duration::from_millis(1_500);

/// Each further replica waits so much longer, so that they do not all try at once.
const NEXT: Duration = Duration::from_millis(500);

/// The first owner of a range has so much longer to come when nobody has owned the range since this process began.
const START: Duration = Duration::from_secs(5);

/// Time between two beats, and between two looks of an owner at the log when it appends nothing.
const BEAT: Duration = Duration::from_millis(300);

/// How long what was accepted waits for the log when the process ends.
const LAST_COMMITS: Duration = Duration::from_secs(5);

/// A node that could not begin a range that it had taken over leaves it to others for so long.
const REST: Duration = Duration::from_secs(30);

/// The pause after a failure.
const PAUSE: Duration = Duration::from_millis(500);

/// The replicas of a node, kept by a thread each. Ends with [`stop`](Self::stop).
pub struct Keeper {
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

struct Shared {
    tier1: Arc<Tier1>,
    config: Config,
    replication: Replication,
    /// Drawn for each life of the process.
    incarnation: u64,
    begun: Instant,
    kept: Vec<Kept>,
    /// Beats are told at once.
    beat: Mutex<bool>,
    news: Condvar,
    stopping: AtomicBool,
}

/// A replica as it is kept.
#[derive(Default)]
struct Kept {
    state: Mutex<KeptState>,
    /// Somebody asks this node to take over now.
    wanted: AtomicBool,
}

#[derive(Default)]
struct KeptState {
    replica: Option<Arc<Replica>>,
    /// The epoch under which this node owns the range.
    owned: Option<Epoch>,
    /// Why it does not follow.
    trouble: Option<String>,
    /// What its database had when it was last opened, also where it does not follow.
    index: u64,
    /// It takes nothing over before.
    rests_until: Option<Instant>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Keeper {
    /// Starts the threads. `tier1` owns nothing yet, was opened with `config`, and is started.
    ///
    /// # Errors
    /// When a thread cannot be started.
    pub fn start(tier1: &Arc<Tier1>, config: &Config, replication: Replication) -> Result<Self, Error> {
        let kept = replication.ranges.iter().map(|_| Kept::default()).collect();
        let shared = Arc::new(Shared {
            tier1: Arc::clone(tier1),
            config: config.clone(),
            replication,
            incarnation: doppel_model::random_number(),
            begun: Instant::now(),
            kept,
            beat: Mutex::new(true),
            news: Condvar::new(),
            stopping: AtomicBool::new(false),
        });
        let mut threads = Vec::new();
        for at in 0..shared.kept.len() {
            let shared = Arc::clone(&shared);
            let name = format!("tier1-replica-{}", shared.replication.ranges[at].range);
            let keep = Box::new(move || shared.keep(at));
            threads.push(doppel_threads::spawn_vital(name, keep).map_err(Error::Thread)?);
        }
        let beating = Arc::clone(&shared);
        let beat = Box::new(move || beating.beat());
        threads.push(doppel_threads::spawn_vital("tier1-beats".to_owned(), beat).map_err(Error::Thread)?);
        Ok(Self { shared, threads: Mutex::new(threads) })
    }

    /// Has this node take a range over as soon as it can.
    ///
    /// # Errors
    /// When it has no replica of the range.
    pub fn take_over(&self, range: RangeId) -> Result<(), PeerError> {
        let at = self.shared.replication.ranges.iter().position(|of| of.range == range);
        let at = at.ok_or(PeerError::NotOwner(range))?;
        self.shared.kept[at].wanted.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Ends the threads, and tier 1 with them. What was accepted is committed if the log takes it in time.
    pub fn stop(&self) {
        self.shared.stopping.store(true, Ordering::Relaxed);
        self.shared.news.notify_all();
        let shared = Arc::clone(&self.shared);
        let (stopped, timer) = bounded::<()>(0);
        let timed = std::thread::spawn(move || {
            // Both are the end of the wait.
            let _ = timer.recv_timeout(LAST_COMMITS);
            shared.stop_replicas();
        });
        self.shared.tier1.stop();
        drop(stopped);
        if timed.join().is_err() {
            tracing::error!("the thread that ends replicas panicked");
        }
        for thread in lock(&self.threads).drain(..) {
            if thread.join().is_err() {
                tracing::error!("a thread that keeps a replica panicked");
            }
        }
        for kept in &self.shared.kept {
            if let Some(Err(error)) =
                lock(&kept.state).replica.as_ref().map(|replica| replica.database().rest())
            {
                tracing::warn!(%error, "the next start reads the log");
            }
        }
    }
}

impl Shared {
    fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    fn stop_replicas(&self) {
        for kept in &self.kept {
            if let Some(replica) = &lock(&kept.state).replica {
                replica.stop();
            }
        }
    }

    /// Tells a beat soon.
    fn tell_soon(&self) {
        *lock(&self.beat) = true;
        self.news.notify_all();
    }

    /// Tells what this node has, again and again.
    fn beat(&self) {
        while !self.is_stopping() {
            let ranges = self.replication.ranges.iter().zip(&self.kept);
            let ranges = ranges.map(|(of, kept)| {
                let state = lock(&kept.state);
                let replica = state.replica.as_ref();
                let epoch = replica.map_or(Epoch(0), |replica| replica.owner().0);
                Claim {
                    range: of.range,
                    epoch: state.owned.unwrap_or(epoch),
                    // Whoever takes no writes leaves the range to others.
                    owns: state.owned.is_some() && self.tier1.check().is_ok(),
                    index: replica.map_or(state.index, |replica| replica.index()),
                    trouble: state.trouble.clone(),
                }
            });
            let node = self.replication.node.clone();
            let beat = Beat { node, incarnation: self.incarnation, ranges: ranges.collect() };
            (self.replication.tell)(&beat);
            let soon = lock(&self.beat);
            let (mut soon, _) = self
                .news
                .wait_timeout_while(soon, BEAT, |soon| !*soon && !self.is_stopping())
                .unwrap_or_else(PoisonError::into_inner);
            *soon = false;
        }
    }

    /// Keeps one replica until the process stops.
    fn keep(&self, at: usize) {
        let (of, kept) = (&self.replication.ranges[at], &self.kept[at]);
        while !self.is_stopping() {
            let replica = lock(&kept.state).replica.clone();
            let failed = match replica {
                None => self.open(of, kept).map(|opened| lock(&kept.state).replica = Some(opened)),
                Some(replica) => self.turn(of, kept, &replica),
            };
            let is_failed = failed.is_err();
            let trouble = failed.err().map(|error| error.to_string());
            if is_failed {
                self.give_up(of, kept);
            }
            let mut state = lock(&kept.state);
            if let Some(trouble) = &trouble
                && state.trouble.as_ref() != Some(trouble)
                && !self.is_stopping()
            {
                tracing::warn!(range = %of.range, trouble, "the replica of a range does not go on");
            }
            state.trouble = trouble.or_else(|| Some(state.replica.as_ref()?.trouble()?.to_string()));
            drop(state);
            if is_failed {
                std::thread::sleep(PAUSE);
            }
        }
    }

    /// Lets a replica go whose database has failed, to open it anew.
    fn give_up(&self, of: &ReplicatedRange, kept: &Kept) {
        let failed = lock(&kept.state).replica.take_if(|replica| replica.has_failed());
        if failed.is_some() {
            self.end(of, kept);
        }
    }

    /// This node owns a range no longer.
    fn end(&self, of: &ReplicatedRange, kept: &Kept) {
        if lock(&kept.state).owned.take().is_some() {
            self.tier1.end_range(of.range);
            self.tell_soon();
            (self.replication.owned)(of.range, false);
        }
    }

    fn open(&self, of: &ReplicatedRange, kept: &Kept) -> Result<Arc<Replica>, Error> {
        let log = (of.log)()?;
        let id = log_id(&self.replication.cluster, of.range);
        let dir = self.dir(of.range);
        let database = Arc::new(Database::open_replica(&dir, id, self.share())?);
        lock(&kept.state).index = database.copied().0.index;
        let node = self.replication.node.clone();
        Ok(Arc::new(Replica::open((of.range, id), node, log, database)?))
    }

    fn dir(&self, range: RangeId) -> PathBuf {
        directory(&self.config.dir, range)
    }

    /// Databases that share the memory of the process.
    fn share(&self) -> u16 {
        u16::try_from(self.kept.len()).unwrap_or(u16::MAX)
    }

    /// Follows the log, or looks whether this node still owns the range; takes over where that is due.
    fn turn(&self, of: &ReplicatedRange, kept: &Kept, replica: &Arc<Replica>) -> Result<(), Error> {
        let owned = lock(&kept.state).owned;
        if let Some(owned) = owned {
            if !replica.has_contact(BEAT) {
                replica.look()?;
            }
            let (epoch, owner) = replica.owner();
            if epoch != owned {
                let owner = owner.map_or(Cow::Borrowed("another node"), Cow::Owned);
                tracing::warn!(range = %of.range, %owner, "the range is owned by another node now");
                self.end(of, kept);
                return Ok(());
            }
            kept.wanted.store(false, Ordering::Relaxed);
            std::thread::sleep(BEAT / 3);
            return Ok(());
        }
        if replica.follow()? && !kept.wanted.load(Ordering::Relaxed) {
            return Ok(());
        }
        if self.is_due(of, kept, replica) || kept.wanted.load(Ordering::Relaxed) {
            return self.take_over(of, kept, replica);
        }
        Ok(replica.hear(BEAT)?)
    }

    /// Whether it is for this node to take over: nobody has claimed the range for a while, and all that come before it in the
    /// list are silent or have had their time.
    fn is_due(&self, of: &ReplicatedRange, kept: &Kept, replica: &Replica) -> bool {
        if self.tier1.check().is_err()
            || lock(&kept.state).rests_until.is_some_and(|until| Instant::now() < until)
        {
            return false;
        }
        let (now, membership) = (Instant::now(), &self.replication.membership);
        let is_heard = |node: &&String| {
            **node == self.replication.node
                || membership.silence(node, now).is_some_and(|silence| silence < SILENCE)
        };
        let before = of.replicas.iter().filter(is_heard).take_while(|node| **node != self.replication.node);
        let mut wait = SILENCE + NEXT * u32::try_from(before.count()).unwrap_or(u32::MAX);
        let alive = now.saturating_duration_since(self.begun);
        let silence = membership.owner_silence(of.range, now);
        // While a cluster starts, each range is left to the node that is to have it.
        if silence.is_none() && of.replicas.first() != Some(&self.replication.node) {
            wait += START;
        }
        // Whoever has just taken over needs a moment before it claims the range.
        let silence = silence.unwrap_or(alive).min(replica.owned_for().unwrap_or(alive));
        silence.min(alive) >= wait
    }

    fn take_over(&self, of: &ReplicatedRange, kept: &Kept, replica: &Arc<Replica>) -> Result<(), Error> {
        kept.wanted.store(false, Ordering::Relaxed);
        let began = Instant::now();
        let replicas = self.replication.membership.replicas(of.range, began);
        // What they have said to have must be in the log.
        while replica.follow()? {}
        if let Some(ahead) = replicas.into_iter().find(|other| other.index > replica.index()) {
            return Err(ReplicaError::Ahead { range: of.range, node: ahead.node }.into());
        }
        let epoch = match replica.take_over() {
            Ok(epoch) => epoch,
            Err(ReplicaError::Outrun { owner, .. }) => {
                tracing::info!(range = %of.range, owner, "another node has taken the range over");
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        };
        if let Err(error) = self.begin(of.range, replica, epoch) {
            // The log says that this node owns it: others are to have their turn.
            lock(&kept.state).rests_until = Instant::now().checked_add(REST);
            return Err(error);
        }
        lock(&kept.state).owned = Some(epoch);
        self.tell_soon();
        let seconds = began.elapsed().as_secs_f64();
        tracing::info!(range = %of.range, epoch = epoch.0, seconds, "this node owns the range now");
        (self.replication.owned)(of.range, true);
        Ok(())
    }

    /// Begins to own a range that was taken over.
    fn begin(&self, id: RangeId, replica: &Arc<Replica>, epoch: Epoch) -> Result<(), Error> {
        let database = replica.database();
        // It has no snapshot of a table that others have changed rows under.
        database.keep_log(Reader::Statuses, None);
        let dir = self.dir(id);
        let opened = Opened {
            store: Arc::new(OwnedRows::new(Arc::clone(replica), epoch)),
            uncached_store: database.uncached(),
            database: Some(Arc::clone(database)),
            dir: Some(dir.clone()),
            saved_statuses: None,
            epoch: Some(epoch),
            lease: Some(Arc::new(LogLease(Arc::clone(replica)))),
        };
        let range = self.tier1.open_range(id, &opened)?;
        progress::verify(&dir, progress::of(&range.shards().metas)).map_err(Error::Store)?;
        self.tier1.begin_range(opened, range)
    }
}
