//! Snapshots of the nodes: when they are written, and which moment of each range they are of.
//!
//! Tier 1 names a moment of a range by a record of its log, and by the last order that was handed over before
//! that record. The moment is reached once all nodes have applied the order. Then the nodes may write a
//! snapshot of it. Until that snapshot is on disk, tier 1 keeps the records after the previous one. So the
//! next start can read from the log what has changed since.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::Instant;

use doppel_model::{PlanVersion, RangeId};
use doppel_protocol::index_node::CallContext;
use doppel_protocol::{LogPosition, Moment};
use doppel_snapshot::{LOOK, is_due};

use super::{Router, RouterError, lock, version};

/// What the router knows about snapshots.
pub(super) struct Snapshots {
    ranges: BTreeMap<RangeId, RangeMoments>,
    /// Plan at the start of this router. A snapshot from before the start is of this plan.
    initial_plan: PlanVersion,
    last_check: Instant,
    last_save: Instant,
    /// Plan of the last snapshot. `None` before the first.
    plan: Option<PlanVersion>,
    /// Number of orders carried out when the last snapshot was written.
    orders: u64,
}

/// The moments of one range.
#[derive(Default)]
struct RangeMoments {
    /// A moment that the nodes have not reached yet.
    awaited: Option<Moment>,
    /// The latest moment that all nodes have reached.
    reached: Option<LogPosition>,
    /// The moment of the last snapshot.
    written: Option<LogPosition>,
    /// The record after which tier 1 was last asked to keep the log.
    log_kept_after: Option<Option<u64>>,
}

impl Snapshots {
    pub(super) fn new(initial_plan: PlanVersion) -> Self {
        let now = Instant::now();
        Self { ranges: BTreeMap::new(), initial_plan, last_check: now, last_save: now, plan: None, orders: 0 }
    }
}

impl Router {
    /// Writes a snapshot if one is due.
    pub(super) fn save_if_due(&self) {
        let mut snapshots = lock(&self.snapshots);
        if self.has_lost_nodes() || snapshots.last_check.elapsed() < LOOK.min(self.config.snapshot_pause) {
            return;
        }
        snapshots.last_check = Instant::now();
        let result = self.update_moments(&mut snapshots).and_then(|()| {
            let (age, contents) = (snapshots.last_save.elapsed(), self.contents());
            let is_same_plan = snapshots.plan == Some(version(&self.plan()));
            let changed =
                if is_same_plan { self.orders_done().saturating_sub(snapshots.orders) } else { contents };
            let is_due = is_due(age, self.config.snapshot_pause, changed, contents);
            if is_due { self.save(&mut snapshots) } else { Ok(()) }
        });
        if let Err(error) = result {
            tracing::debug!(%error, "cannot write a snapshot of the index now; trying again later");
        }
    }

    /// Writes a snapshot of the latest moments that were reached, unless it would equal the last one. The
    /// router also calls this when it stops.
    pub(crate) fn save_now(&self) -> Result<(), RouterError> {
        if self.has_lost_nodes() {
            return Ok(());
        }
        let mut snapshots = lock(&self.snapshots);
        self.update_moments(&mut snapshots)?;
        self.save(&mut snapshots)
    }

    /// Updates which moments are reached, and has tier 1 keep the log since the last snapshot.
    fn update_moments(&self, snapshots: &mut Snapshots) -> Result<(), RouterError> {
        for range in self.ranges() {
            let range_moments = snapshots.ranges.entry(range).or_default();
            if range_moments.awaited.is_none() {
                range_moments.awaited = self.source.moment(range)?;
            }
            let mut saved: Vec<Option<LogPosition>> = Vec::with_capacity(self.nodes.len());
            let mut done: Option<u64> = Some(u64::MAX);
            for handle in &self.nodes {
                let applied =
                    handle.node.applied(range).map_err(|error| RouterError::Node(handle.id, error))?;
                saved.push(applied.saved);
                done = done.zip(applied.position).map(|(done, (_, index))| done.min(index));
            }
            // Orders that cannot be sent again may never have reached a node. Only the positions of all nodes
            // count.
            if let Some(reached) =
                range_moments.awaited.take_if(|moment| done.is_some_and(|done| moment.order <= done))
            {
                range_moments.reached = Some(reached.log);
            }
            // After a start, there may be a snapshot from before the start.
            if let (None, [Some(first), others @ ..]) = (range_moments.written, &*saved)
                && others.iter().all(|other| *other == Some(*first))
            {
                range_moments.written = Some(*first);
                snapshots.plan.get_or_insert(snapshots.initial_plan);
            }
            let on_disk: Option<Vec<u64>> = saved.iter().map(|one| one.map(|saved| saved.index)).collect();
            let least = on_disk.and_then(|on_disk| on_disk.into_iter().min());
            self.keep_log(
                range,
                range_moments,
                least.or(range_moments.written.map(|written| written.index)),
            )?;
        }
        Ok(())
    }

    /// Has tier 1 keep the log of a range after this record.
    fn keep_log(
        &self,
        range: RangeId,
        range_moments: &mut RangeMoments,
        after: Option<u64>,
    ) -> Result<(), RouterError> {
        if range_moments.log_kept_after != Some(after) {
            self.source.keep_log(range, after)?;
            range_moments.log_kept_after = Some(after);
        }
        Ok(())
    }

    /// Has all nodes write a snapshot of the latest moments, unless it would equal the last one.
    fn save(&self, snapshots: &mut Snapshots) -> Result<(), RouterError> {
        let plan = version(&self.plan());
        let same = |range_moments: &RangeMoments| range_moments.reached == range_moments.written;
        if snapshots.plan == Some(plan) && snapshots.ranges.values().all(same) {
            return Ok(());
        }
        let reached: Option<Vec<(RangeId, LogPosition)>> = snapshots
            .ranges
            .iter()
            .map(|(range, range_moments)| Some((*range, range_moments.reached?)))
            .collect();
        // Without a moment for every range there is no snapshot. A range has none if its log is not kept, or
        // if the nodes have not reached its first one.
        let Some(moments) = reached.filter(|moments| !moments.is_empty()) else { return Ok(()) };
        for (range, moment) in &moments {
            let range_moments = snapshots.ranges.entry(*range).or_default();
            if range_moments.log_kept_after.flatten().is_none() {
                self.keep_log(*range, range_moments, Some(moment.index))?;
            }
        }
        let begun = Instant::now();
        snapshots.last_save = begun;
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
