//! The fake as the interface to the partition map.

use std::sync::Arc;

use doppel_contract::{RebalanceOutcome, RebalancePlan, RebalanceProgress, RebalanceRequest};
use doppel_model::signature::Signature;
use doppel_partitioning::{LengthVector, MappingError, Plan, Rebalancer};
use doppel_protocol::{IndexError, MappingApi, RebalanceError};

use super::Fake;

impl MappingApi for Fake {
    fn plan(&self) -> Result<Plan, IndexError> {
        Ok(self.state().plan.clone().unwrap())
    }

    fn sample(&self, limit: usize) -> Result<Vec<Arc<Signature>>, IndexError> {
        self.gate.pass("sample");
        Ok(self.state().pages.values().filter_map(|page| page.signature.clone()).take(limit).collect())
    }

    /// Applies a change of the map at once.
    fn rebalance(&self, request: RebalanceRequest, dry_run: bool) -> Result<RebalancePlan, RebalanceError> {
        if let Some(progress) = &self.state().progress {
            return Err(RebalanceError::Busy(progress.next_version));
        }
        let (mut plan, sample) = (self.plan()?, self.sample(usize::MAX)?);
        match request {
            RebalanceRequest::Balance | RebalanceRequest::Learn => {}
            RebalanceRequest::Drain { node } => plan.set_drained(node, true)?,
            RebalanceRequest::Join { node } => plan.set_drained(node, false)?,
            RebalanceRequest::Move { partition, node } => {
                let place = plan.find(partition).ok_or(MappingError::Partition(partition))?;
                plan.place(place, node)?;
            }
        }
        let lengths: Vec<LengthVector> = sample.iter().map(|s| plan.map().lexicon().lengths(s)).collect();
        let followed = Rebalancer::default().requested().next(&plan, &lengths, 1).unwrap();
        if !dry_run {
            self.state().plan = Some(followed.plan);
        }
        Ok(RebalancePlan { started: !dry_run, ..followed.change.into() })
    }

    fn cancel(&self) -> Result<RebalanceOutcome, RebalanceError> {
        let mut state = self.state();
        let RebalanceProgress { plan_version, copied, seconds, .. } =
            state.progress.take().ok_or(RebalanceError::NothingToCancel)?;
        let (request, failed) = (RebalanceRequest::Balance, Some("it was cancelled".to_owned()));
        let outcome = RebalanceOutcome { request, failed, cancelled: true, plan_version, copied, seconds };
        state.outcome = Some(outcome.clone());
        Ok(outcome)
    }

    fn request(&self) -> Result<Option<RebalanceRequest>, IndexError> {
        Ok(None)
    }

    fn outcome(&self) -> Result<Option<RebalanceOutcome>, IndexError> {
        Ok(self.state().outcome.clone())
    }

    fn progress(&self) -> Result<Option<RebalanceProgress>, IndexError> {
        Ok(self.state().progress.clone())
    }
}
