//! Snapshots of the nodes: when they are written, and of which moment of each range.
//!
//! Tier 1 names a moment of a range by a record of its log and the last order that was handed over by then. When all
//! nodes have applied that order, the moment is reached, and a snapshot may be written of it. Until it is on disk, tier 1
//! is asked to keep the records after the one before, so that a start finds in the log what has changed since.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::Instant;

use doppel_model::{PlanVersion, RangeId};
use doppel_protocol::index_node::CallContext;
use doppel_protocol::{LogPosition, Moment};
use doppel_snapshot::{LOOK, is_due};

use super::{Router, RouterError, lock, version};

/// What is known of snapshots.
pub(super) struct Snapshots {
    ranges: BTreeMap<RangeId, Watched>,
    /// The plan of the start: a snapshot of an earlier life is of that one.
    begun: PlanVersion,
    last_look: Instant,
    last: Instant,
    /// The plan of the last snapshot, and the orders carried out by then.
    plan: Option<PlanVersion>,
    orders: u64,
}

/// A range.
#[derive(Default)]
struct Watched {
    /// A moment that is not reached yet.
    awaited: Option<Moment>,
    /// The last moment that is.
    reached: Option<LogPosition>,
    /// What the last snapshot was of.
    written: Option<LogPosition>,
    /// What tier 1 was last told to keep.
    kept: Option<Option<u64>>,
}

impl Snapshots {
    pub(super) fn new(begun: PlanVersion) -> Self {
        let now = Instant::now();
        Self { ranges: BTreeMap::new(), begun, last_look: now, last: now, plan: None, orders: 0 }
    }
}

impl Router {
    /// Writes a snapshot when one is due.
    pub(super) fn tend_snapshots(&self) {
        let mut snapshots = lock(&self.snapshots);
        if self.has_lost() || snapshots.last_look.elapsed() < LOOK.min(self.config.snapshot_pause) {
            return;
        }
        snapshots.last_look = Instant::now();
        let tended = self.watch(&mut snapshots).and_then(|()| {
            let (age, contents) = (snapshots.last.elapsed(), self.contents());
            let is_same_plan = snapshots.plan == Some(version(&self.plan()));
            let changed =
                if is_same_plan { self.orders_done().saturating_sub(snapshots.orders) } else { contents };
            let is_due = is_due(age, self.config.snapshot_pause, changed, contents);
            if is_due { self.save(&mut snapshots) } else { Ok(()) }
        });
        if let Err(error) = tended {
            tracing::debug!(%error, "no snapshot is written now");
        }
    }

    /// Writes a snapshot of the last moments that were reached, unless it would be the same as the last one. Also at the
    /// end, when nothing else is done any more.
    pub(crate) fn save_now(&self) -> Result<(), RouterError> {
        if self.has_lost() {
            return Ok(());
        }
        let mut snapshots = lock(&self.snapshots);
        self.watch(&mut snapshots)?;
        self.save(&mut snapshots)
    }

    /// Sees which moments are reached, and has tier 1 keep the log from the last snapshot on.
    fn watch(&self, snapshots: &mut Snapshots) -> Result<(), RouterError> {
        for range in self.ranges() {
            let watched = snapshots.ranges.entry(range).or_default();
            if watched.awaited.is_none() {
                watched.awaited = self.source.moment(range)?;
            }
            let mut saved: Vec<Option<LogPosition>> = Vec::with_capacity(self.nodes.len());
            let mut done: Option<u64> = Some(u64::MAX);
            for handle in &self.nodes {
                let applied =
                    handle.node.applied(range).map_err(|error| RouterError::Node(handle.id, error))?;
                saved.push(applied.saved);
                done = done.zip(applied.position).map(|(done, (_, index))| done.min(index));
            }
            // What is not sent any more may never have been: only what every node has counts.
            if let Some(reached) =
                watched.awaited.take_if(|moment| done.is_some_and(|done| moment.order <= done))
            {
                watched.reached = Some(reached.log);
            }
            // After a start there may be one of an earlier life.
            if let (None, [Some(first), others @ ..]) = (watched.written, &*saved)
                && others.iter().all(|other| *other == Some(*first))
            {
                watched.written = Some(*first);
                snapshots.plan.get_or_insert(snapshots.begun);
            }
            let on_disk: Option<Vec<u64>> = saved.iter().map(|one| one.map(|saved| saved.index)).collect();
            let least = on_disk.and_then(|on_disk| on_disk.into_iter().min());
            self.keep(range, watched, least.or(watched.written.map(|written| written.index)))?;
        }
        Ok(())
    }

    /// Has tier 1 keep the log of a range after a record.
    fn keep(&self, range: RangeId, watched: &mut Watched, after: Option<u64>) -> Result<(), RouterError> {
        if watched.kept != Some(after) {
            self.source.keep_log(range, after)?;
            watched.kept = Some(after);
        }
        Ok(())
    }

    fn save(&self, snapshots: &mut Snapshots) -> Result<(), RouterError> {
        let plan = version(&self.plan());
        let same = |watched: &Watched| watched.reached == watched.written;
        if snapshots.plan == Some(plan) && snapshots.ranges.values().all(same) {
            return Ok(());
        }
        let reached: Option<Vec<(RangeId, LogPosition)>> =
            snapshots.ranges.iter().map(|(range, watched)| Some((*range, watched.reached?))).collect();
        // A range whose log is not kept, or of which nothing is known yet.
        let Some(moments) = reached.filter(|moments| !moments.is_empty()) else { return Ok(()) };
        for (range, moment) in &moments {
            let watched = snapshots.ranges.entry(*range).or_default();
            if watched.kept.flatten().is_none() {
                self.keep(*range, watched, Some(moment.index))?;
            }
        }
        let begun = Instant::now();
        snapshots.last = begun;
        for handle in &self.nodes {
            let Some(incarnation) = *lock(&handle.incarnation) else { return Ok(()) };
            let saved = handle.node.save(CallContext { plan, incarnation }, moments.clone());
            saved.map_err(|error| RouterError::Node(handle.id, error))?;
        }
        for (range, moment) in moments {
            snapshots.ranges.entry(range).or_default().written = Some(moment);
        }
        (snapshots.plan, snapshots.orders) = (Some(plan), self.orders_done());
        let seconds = begun.elapsed().as_secs_f64();
        tracing::info!(contents = self.contents(), seconds, "wrote a snapshot of the index");
        Ok(())
    }

    fn orders_done(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }
}
