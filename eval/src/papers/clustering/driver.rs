//! Driver of the product's engine: feeds it in batches in a temporary directory, and reads its groups at
//! chosen moments.

use std::collections::HashMap;
use std::thread;
use std::time::Duration;

use anyhow::anyhow;
use clap::Parser;
use doppel_contract::SubmissionOutcome;
use doppel_model::{GroupId, PageUrl, Tau};
use doppel_node::args::{EngineArgs, PolicyArgs, TuningArgs};
use doppel_node::engine::LocalEngine;
use doppel_protocol::{BATCH_PAGES_MAX, GroupState, PageScan, Submission, Tier1Api, Tier1Reads as _};
use doppel_terminal::scratch::Scratch;
use doppel_tier1::Rules;

/// Pause between two checks whether a page is pending.
const POLL: Duration = Duration::from_millis(1);
/// Maximum duration of one wait for quiescence, before the next one begins.
const FLUSH_STEP: Duration = Duration::from_secs(60);
/// Maximum number of forwards that are followed from a group. Each forward leads to a smaller id.
const FORWARDS_MAX: usize = 64;

/// Engine in a temporary directory. Dropping the driver removes the directory.
pub(crate) struct Driver {
    pub(crate) engine: LocalEngine,
    pub(crate) scratch: Scratch,
}

/// Command line without options, which gives the default configuration of the engine.
#[derive(Parser)]
struct Defaults {
    #[command(flatten)]
    engine: EngineArgs,
}

impl Driver {
    /// Starts an empty collection. The engine syncs no data to disk, as in `doppel dedup` without --data.
    ///
    /// # Errors
    /// If the engine cannot be opened.
    pub(crate) fn new(tau: Tau, partitions: u32, rules: Rules) -> anyhow::Result<Self> {
        let scratch = Scratch::new()?;
        let defaults = Defaults::parse_from(["doppel"]).engine;
        let tuning = defaults.tuning.clone();
        let args = EngineArgs {
            policy: PolicyArgs { tau: Some(tau), ..PolicyArgs::default() },
            tuning: TuningArgs {
                partitions: Some(partitions),
                // The driver limits the pending pages itself. Every group takes part in the comparison,
                // whatever its size.
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

    /// Submits a batch. Returns the outcome of each submission.
    ///
    /// # Errors
    /// If tier 1 has failed.
    pub(crate) fn submit(&self, mut submissions: Vec<Submission>) -> anyhow::Result<Vec<SubmissionOutcome>> {
        let mut outcomes = Vec::with_capacity(submissions.len());
        while !submissions.is_empty() {
            let rest = submissions.split_off(submissions.len().min(BATCH_PAGES_MAX));
            outcomes.extend(self.engine.tier1.submit(std::mem::replace(&mut submissions, rest))?);
        }
        Ok(outcomes)
    }

    /// Waits until no page is pending. Background work continues at its normal pace.
    ///
    /// # Errors
    /// If tier 1 has failed.
    pub(crate) fn wait_until_answered(&self) -> anyhow::Result<()> {
        while self.engine.tier1.totals()?.backlog.pending > 0 {
            self.engine.tier1.writable()?;
            thread::sleep(POLL);
        }
        Ok(())
    }

    /// Waits until no work is left.
    ///
    /// # Errors
    /// If tier 1 has failed.
    pub(crate) fn wait_until_quiescent(&self) -> anyhow::Result<()> {
        while !self.engine.tier1.flush(FLUSH_STEP)? {}
        Ok(())
    }

    /// Returns every live page with its group, after forwards. A page without a group has `None`.
    ///
    /// # Errors
    /// If a record is damaged.
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

    /// Follows forwards to the group that has the members of `group` now.
    fn follow(&self, group: GroupId) -> anyhow::Result<GroupId> {
        let mut at = group;
        for _ in 0..FORWARDS_MAX {
            match self.engine.tier1.group_summary(at)?.map(|summary| summary.state) {
                Some(GroupState::MergedInto { group }) => at = group,
                Some(GroupState::Active) | None => return Ok(at),
            }
        }
        Err(anyhow!("group {group} has a chain of more than {FORWARDS_MAX} forwards"))
    }

    /// Stops the engine.
    pub(crate) fn stop(self) {
        self.engine.stop();
    }
}
