//! The real engine in a temporary directory, fed in batches and read at chosen moments.

use std::collections::HashMap;
use std::thread;
use std::time::Duration;

use anyhow::anyhow;
use clap::Parser;
use doppel_contract::SubmissionOutcome;
use doppel_model::{GroupId, PageUrl, Tau};
use doppel_node::args::{EngineArgs, PolicyArgs, TuningArgs};
use doppel_node::engine::LocalEngine;
use doppel_protocol::{BATCH_MAX, GroupState, PageScan, Submission, Tier1Api, Tier1Reads as _};
use doppel_terminal::scratch::Scratch;
use doppel_tier1::Rules;

/// The pause between two checks whether anything is pending.
const POLL: Duration = Duration::from_millis(1);
/// The maximum duration of one wait for quiescence, before the next one begins.
const FLUSH_STEP: Duration = Duration::from_secs(60);
/// The maximum number of forwards that are followed from a group. They lead to ever smaller ids.
const FORWARDS_MAX: usize = 64;

/// An engine in a temporary directory that is removed with it.
pub(crate) struct Driver {
    pub(crate) engine: LocalEngine,
    pub(crate) scratch: Scratch,
}

/// The default configuration of the engine.
#[derive(Parser)]
struct Defaults {
    #[command(flatten)]
    engine: EngineArgs,
}

impl Driver {
    /// Starts an empty collection. Nothing is flushed to disk, as in `doppel dedup` without --data.
    ///
    /// # Errors
    /// When the engine cannot be opened.
    pub(crate) fn new(tau: Tau, partitions: u32, rules: Rules) -> anyhow::Result<Self> {
        let scratch = Scratch::new()?;
        let defaults = Defaults::parse_from(["doppel"]).engine;
        let tuning = defaults.tuning.clone();
        let args = EngineArgs {
            policy: PolicyArgs { tau: Some(tau), ..PolicyArgs::default() },
            tuning: TuningArgs {
                partitions: Some(partitions),
                // The driver limits the pending pages itself, and no group may be left out of the comparison.
                pending_max: u64::MAX,
                group_members_max: u64::MAX,
                low_cohesion_percent: if rules.recomputation { tuning.low_cohesion_percent } else { 0 },
                ..tuning
            },
            ..defaults
        };
        let engine = LocalEngine::open_to_compare(scratch.path(), &args, rules)?;
        Ok(Self { engine, scratch })
    }

    /// Hands over a batch. Returns the outcome of each submission.
    ///
    /// # Errors
    /// When tier 1 failed.
    pub(crate) fn submit(&self, mut submissions: Vec<Submission>) -> anyhow::Result<Vec<SubmissionOutcome>> {
        let mut outcomes = Vec::with_capacity(submissions.len());
        while !submissions.is_empty() {
            let rest = submissions.split_off(submissions.len().min(BATCH_MAX));
            outcomes.extend(self.engine.tier1.submit(std::mem::replace(&mut submissions, rest))?);
        }
        Ok(outcomes)
    }

    /// Waits until no page is pending; background work goes on at its normal pace.
    ///
    /// # Errors
    /// When tier 1 failed.
    pub(crate) fn answered(&self) -> anyhow::Result<()> {
        while self.engine.tier1.totals()?.backlog.pending > 0 {
            self.engine.tier1.writable()?;
            thread::sleep(POLL);
        }
        Ok(())
    }

    /// Waits until nothing is left to do.
    ///
    /// # Errors
    /// When tier 1 failed.
    pub(crate) fn quiescent(&self) -> anyhow::Result<()> {
        while !self.engine.tier1.flush(FLUSH_STEP)? {}
        Ok(())
    }

    /// Every live page with its group after following merges; none for a page without a group.
    ///
    /// # Errors
    /// When a record is damaged.
    pub(crate) fn groups(&self) -> anyhow::Result<HashMap<PageUrl, Option<GroupId>>> {
        let lines = PageScan::new(&*self.engine.tier1).map(|line| line.map(|line| (line.url, line.group)));
        let mut groups = lines.collect::<Result<HashMap<_, _>, _>>()?;
        let mut survivors: HashMap<GroupId, GroupId> = HashMap::new();
        for group in groups.values_mut().flatten() {
            *group = match survivors.get(group) {
                Some(known) => *known,
                None => {
                    let survivor = self.follow(*group)?;
                    survivors.insert(*group, survivor);
                    survivor
                }
            };
        }
        Ok(groups)
    }

    /// The group that has the members of `group` now.
    fn follow(&self, group: GroupId) -> anyhow::Result<GroupId> {
        let mut at = group;
        for _ in 0..FORWARDS_MAX {
            match self.engine.tier1.group_summary(at)?.map(|summary| summary.state) {
                Some(GroupState::MergedInto { group }) => at = group,
                Some(GroupState::Active) | None => return Ok(at),
            }
        }
        Err(anyhow!("group {group} was merged more than {FORWARDS_MAX} times over"))
    }

    /// Ends the engine.
    pub(crate) fn stop(self) {
        self.engine.stop();
    }
}
