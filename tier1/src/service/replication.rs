//! Keeps the replicas of a node. Each replica follows the log of its range. It takes the range over when the
//! owner has fallen silent, and gives the range up when another node has taken it over.
//!
//! Clocks decide when a node tries to take over, and the log decides who succeeds. If the servers of the log
//! may lose acknowledged entries, enough other replicas must first report how far they are.
//!
//! Invariant: the files of a replica are wiped only if they contradict the log or the log does not reach back
//! to them, never because they are behind or ahead. A copy from another node is on the disk before.

mod beats;
mod configuration;
mod contradiction;
mod copying;
mod history;
mod opening;
mod take_over;
mod trimming;

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam::channel::bounded;
use doppel_model::{Epoch, RangeId};
use doppel_protocol::range_owner::PeerError;
use doppel_shared_log::LogError;

use crate::replica::{Replica, ReplicaError};
use crate::service::Tier1;
use crate::service::open::{Config, Error};
use crate::service::ownership::ranges::RangeRegistry;
use crate::service::ownership::refusals::Refusals;
use crate::storage::database::LogConsumer;
use crate::storage::range_files::directory;
use crate::storage::store::StoreError;
pub use configuration::{ReplicatedRange, ReplicationConfig};
use history::ValueHistory;
use trimming::Trimming;

/// Time between two beats, and between two looks of an owner at the log when it appends nothing.
const BEAT: Duration = Duration::from_millis(300);

/// How long copies of log entries are kept, while there is room, in case the log loses them.
///
/// Servers of the log write to their disks more often than that, and most backups of their directories are
/// deliberately older. With the time between two snapshots of the index it is an hour, so a new owner can
/// tell the index what has changed since its last snapshot.
const LOG_COPIES_KEPT: Duration = Duration::from_secs(75 * 60);

/// How long accepted tasks wait for the log when the process ends.
const LAST_COMMITS: Duration = Duration::from_secs(5);

/// Pause after a failure.
const PAUSE: Duration = Duration::from_millis(500);

/// Keeps the replicas of a node, with one thread for each. Ends with [`stop`](Self::stop).
pub struct Keeper {
    shared: Arc<KeeperState>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

struct KeeperState {
    /// The service, which begins and ends to own ranges.
    tier1: Arc<Tier1>,
    ranges: Arc<RangeRegistry>,
    refusals: Arc<Refusals>,
    config: Config,
    replication: ReplicationConfig,
    /// A random number for each life of the process.
    incarnation: u64,
    begun: Instant,
    kept: Vec<KeptReplica>,
    /// Whether the next beat is sent at once.
    beat: Mutex<bool>,
    news: Condvar,
    stopping: AtomicBool,
}

/// A replica and what its thread knows of it.
#[derive(Default)]
struct KeptReplica {
    state: Mutex<ReplicaState>,
    /// When an operator last asked this node to take over.
    requested_at: Mutex<Option<Instant>>,
    /// Whether this node must not take the range over, because the description of the cluster gives the range
    /// to other nodes.
    barred: AtomicBool,
    trimming: Mutex<Trimming>,
    /// Number of records in the log over time.
    records: Mutex<ValueHistory<u64>>,
}

#[derive(Default)]
struct ReplicaState {
    replica: Option<Arc<Replica>>,
    /// Epoch under which this node owns the range. `None` if it does not.
    owned: Option<Epoch>,
    /// Whether the ownership was announced.
    is_announced: bool,
    /// Whether it is known what is on the disk.
    is_known: bool,
    /// Why the replica does not follow the log.
    trouble: Option<String>,
    /// Index of the last record when the database was last opened, even if the replica does not follow.
    index: u64,
    /// Sequence after which the log is needed while no replica is open.
    needs: u64,
    /// Whether the files contradict the log. If the log loses nothing by itself, they may be the only copy,
    /// and nothing replaces them.
    contradicts: bool,
    /// Whether the contradiction is noted in the directory.
    is_noted: bool,
    /// Whether the disk was full, so that there must be room before the database is opened anew.
    needs_room: bool,
    /// Earliest time at which the next copy begins, after a copy has filled the disk.
    room_from: Option<Instant>,
    /// Earliest time at which this node takes the range over again.
    rests_until: Option<Instant>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Keeper {
    /// Starts one thread for each replicated range. `tier1` must be opened with `config`, be started, and own no range yet.
    ///
    /// # Errors
    ///
    /// If a thread cannot be started.
    pub fn start(tier1: &Arc<Tier1>, config: &Config, replication: ReplicationConfig) -> Result<Self, Error> {
        let kept = replication.ranges.iter().map(|_| KeptReplica::default()).collect();
        let shared = Arc::new(KeeperState {
            tier1: Arc::clone(tier1),
            ranges: Arc::clone(&tier1.owned.ranges),
            refusals: Arc::clone(&tier1.owned.refusals),
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
            let keep = Box::new(move || shared.keep_replica(at));
            threads.push(doppel_threads::spawn_vital(name, keep).map_err(Error::Thread)?);
        }
        let beating = Arc::clone(&shared);
        let beat = Box::new(move || beating.send_beats());
        threads.push(doppel_threads::spawn_vital("tier1-beats".to_owned(), beat).map_err(Error::Thread)?);
        Ok(Self { shared, threads: Mutex::new(threads) })
    }

    /// Asks this node to take a range over as soon as it can.
    ///
    /// # Errors
    ///
    /// If the node has no replica of the range, must not take it over, or accepts no writes.
    pub fn take_over(&self, range: RangeId) -> Result<(), PeerError> {
        let at = self.shared.replication.ranges.iter().position(|replicated| replicated.range == range);
        let at = at.filter(|at| !self.shared.kept[*at].barred.load(Ordering::Relaxed));
        let at = at.ok_or(PeerError::NotOwner(range))?;
        self.shared.refusals.check()?;
        *lock(&self.shared.kept[at].requested_at) = Some(Instant::now());
        Ok(())
    }

    /// Limits the ranges that this node takes over to `ranges`. The node keeps every range that it owns until
    /// another node takes it over.
    pub fn keep_to(&self, ranges: &[RangeId]) {
        for (replicated, kept) in self.shared.replication.ranges.iter().zip(&self.shared.kept) {
            kept.barred.store(!ranges.contains(&replicated.range), Ordering::Relaxed);
        }
    }

    /// Ends the threads, and tier 1 with them. Accepted tasks are committed if the log takes them in time.
    pub fn stop(&self) {
        self.shared.stopping.store(true, Ordering::Relaxed);
        self.shared.news.notify_all();
        let shared = Arc::clone(&self.shared);
        let (stopped, timer) = bounded::<()>(0);
        let timed = std::thread::spawn(move || {
            // A timeout and a dropped sender both end the wait.
            let _ = timer.recv_timeout(LAST_COMMITS);
            shared.stop_replicas();
        });
        self.shared.tier1.stop();
        drop(stopped);
        if timed.join().is_err() {
            tracing::error!("the thread that stops the replicas panicked");
        }
        for thread in lock(&self.threads).drain(..) {
            if thread.join().is_err() {
                tracing::error!("a thread that keeps a replica panicked");
            }
        }
        for kept in &self.shared.kept {
            if let Some(Err(error)) =
                lock(&kept.state).replica.as_ref().map(|replica| replica.database().move_all_rows())
            {
                tracing::warn!(%error, "the next start reads the log");
            }
        }
    }
}

impl KeeperState {
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

    /// Keeps one replica until the process stops.
    fn keep_replica(&self, at: usize) {
        let (replicated, kept) = (&self.replication.ranges[at], &self.kept[at]);
        while !self.is_stopping() {
            let replica = lock(&kept.state).replica.clone();
            let failed = match replica {
                None => self.open_replica(replicated, kept).map(|opened| {
                    self.ranges.register_replica(&opened);
                    lock(&kept.state).replica = Some(opened);
                }),
                Some(replica) => self
                    .take_turn(replicated, kept, &replica)
                    .and_then(|()| self.note_agreement(replicated, kept)),
            };
            let failed = match failed {
                Err(Error::Replica(ReplicaError::Log(LogError::Trimmed { .. }))) => {
                    if lock(&kept.state).contradicts {
                        Err(ReplicaError::PastContradiction {
                            range: replicated.range,
                            dir: self.dir(replicated.range),
                        }
                        .into())
                    } else {
                        self.transfer(replicated, kept)
                    }
                }
                Err(Error::Replica(error @ ReplicaError::Contradiction { .. })) => {
                    self.handle_contradiction(replicated, kept, error)
                }
                other => other,
            };
            let is_failed = failed.is_err();
            let trouble = failed.err().map(|error| error.to_string());
            if is_failed {
                self.close_failed(replicated, kept);
            }
            let mut state = lock(&kept.state);
            if let Some(trouble) = &trouble
                && state.trouble.as_ref() != Some(trouble)
                && !self.is_stopping()
            {
                tracing::warn!(
                    range = replicated.range.0,
                    trouble,
                    "the replica of a range is stopped; it is tried again"
                );
            }
            state.trouble = trouble.or_else(|| state.replica.as_ref()?.wait_reason());
            drop(state);
            if is_failed {
                std::thread::sleep(PAUSE);
            }
        }
    }

    fn dir(&self, range: RangeId) -> PathBuf {
        directory(&self.config.dir, range)
    }

    /// Number of databases that share the memory of the process.
    fn share(&self) -> u16 {
        u16::try_from(self.kept.len()).unwrap_or(u16::MAX)
    }

    /// Takes one turn: follows the log, or checks that this node still owns the range. Takes the range over
    /// if that is due.
    fn take_turn(
        &self,
        replicated: &ReplicatedRange,
        kept: &KeptReplica,
        replica: &Arc<Replica>,
    ) -> Result<(), Error> {
        if replica.has_full_disk() {
            return Err(StoreError::DiskFull.into());
        }
        lock(&kept.trimming).mark(Instant::now(), self.replication.log_window, replica.sequence());
        {
            let (now, mut records) = (Instant::now(), lock(&kept.records));
            records.record(now, LOG_COPIES_KEPT, replica.index());
            if let Some(index) = records.before(now, LOG_COPIES_KEPT) {
                replica.database().keep_log(LogConsumer::SharedLog, Some(index));
            }
        }
        let owned = lock(&kept.state).owned;
        if let Some(owned) = owned {
            let looked = if replica.has_contact(BEAT) { Ok(()) } else { replica.check_log() };
            let (epoch, owner) = replica.owner();
            if epoch != owned {
                let owner = owner.map_or(Cow::Borrowed("another node"), Cow::Owned);
                tracing::warn!(range = replicated.range.0, %owner, "another node owns the range now");
                self.end_ownership(replicated, kept);
                return Ok(());
            }
            if replica.is_ownership_over() {
                let why =
                    looked.as_ref().err().map_or("the log has lost its end".to_owned(), ToString::to_string);
                tracing::warn!(
                    range = replicated.range.0,
                    why,
                    "the ownership of the range is over; the range has to be taken over again"
                );
                self.end_ownership(replicated, kept);
            }
            looked?;
            if replica.is_ownership_over() {
                return Ok(());
            }
            // An operator's request that came before this node was seen to own the range may have asked for
            // just that.
            *lock(&kept.requested_at) = None;
            self.announce_ownership(replicated, kept, (replica, owned));
            self.trim(replicated, kept, replica);
            std::thread::sleep(BEAT / 3);
            return Ok(());
        }
        if replica.catch_up()? && !kept.is_wanted() {
            return Ok(());
        }
        if self.is_due(replicated, kept, replica) || kept.is_wanted() {
            return self.take_over(replicated, kept, replica);
        }
        Ok(replica.follow_announced(BEAT)?)
    }
}
