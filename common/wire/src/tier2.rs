//! Calls to the router of tier 2 in another process, as a coordinator sees it: questions to the index, and
//! its mapping.
//!
//! Requests of operators and their results are JSON inside the body.

mod routed;

use std::sync::Arc;
use std::time::Duration;

use doppel_contract::{LoadReport, RebalanceOutcome, RebalancePlan, RebalanceProgress, RebalanceRequest};
use doppel_model::signature::Signature;
use doppel_partitioning::Plan;
use doppel_protocol::{IndexError, MappingApi, PartitionLookup, RebalanceError, Tier2Api, VerifiedPartner};

use crate::transport::call::{calls, with};
use crate::transport::json::Json;
use crate::transport::listener::CallListener;
use crate::transport::peer::Peer;
use crate::transport::wire_error::WireError;

pub use routed::RoutedTier2;
pub(crate) use routed::ask_present_router;

/// Maximum size of a body with one signature, in bytes.
const SIGNATURE_BYTES_MAX: usize = 64 << 20;

/// Maximum size of a plan or a load report with the maximum number of partitions, in bytes.
const PLAN_BYTES_MAX: usize = 32 << 20;

/// Maximum size of a sample of signatures, in bytes.
const SAMPLE_BYTES_MAX: usize = 512 << 20;

/// Number of concurrent calls.
const CALLS: usize = 32;

/// Deadline for planning the mapping of a large collection.
const PLANNING: Duration = Duration::from_secs(600);

type Answer<T> = Result<T, IndexError>;

calls! {
    Probe = "tier2/probe": Arc<Signature> => Answer<Vec<VerifiedPartner>>
        { REQUEST_BYTES_MAX: usize = SIGNATURE_BYTES_MAX, ANSWER_BYTES_MAX: usize = 16 << 20 };
    Locate = "tier2/locate": Arc<Signature> => Answer<PartitionLookup>
        { REQUEST_BYTES_MAX: usize = SIGNATURE_BYTES_MAX };
    Load = "tier2/load": () => Answer<LoadReport>
        { ANSWER_BYTES_MAX: usize = PLAN_BYTES_MAX };
    Waiting = "tier2/waiting": () => Answer<u64>;
    FlushBatch = "tier2/flush-batch": () => Answer<()>;
    PlanCall = "tier2/plan": () => Answer<Json<Plan>>
        { ANSWER_BYTES_MAX: usize = PLAN_BYTES_MAX };
    Sample = "tier2/sample": u64 => Answer<Vec<Arc<Signature>>>
        { ANSWER_BYTES_MAX: usize = SAMPLE_BYTES_MAX, DEADLINE: Duration = PLANNING };
    Rebalance = "tier2/rebalance": (Json<RebalanceRequest>, bool) => Result<Json<RebalancePlan>, RebalanceError>
        { ANSWER_BYTES_MAX: usize = PLAN_BYTES_MAX, DEADLINE: Duration = PLANNING, REPEATABLE: bool = false };
    Cancel = "tier2/cancel": () => Result<Json<RebalanceOutcome>, RebalanceError>
        { REPEATABLE: bool = false };
    Progress = "tier2/progress": () => Answer<Option<Json<RebalanceProgress>>>;
    Request = "tier2/request": () => Answer<Option<Json<RebalanceRequest>>>;
    OutcomeCall = "tier2/outcome": () => Answer<Option<Json<RebalanceOutcome>>>;
}

/// The router of tier 2 in another process.
#[derive(Debug, Clone)]
pub struct RemoteTier2(Peer);

impl RemoteTier2 {
    /// Creates a client of the router behind `peer`.
    #[must_use]
    pub fn new(peer: Peer) -> Self {
        Self(peer)
    }
}

impl From<WireError> for IndexError {
    fn from(error: WireError) -> Self {
        Self::Unavailable(error.to_string())
    }
}

impl From<WireError> for RebalanceError {
    fn from(error: WireError) -> Self {
        IndexError::from(error).into()
    }
}

impl Tier2Api for RemoteTier2 {
    fn probe(&self, signature: &Signature) -> Answer<Vec<VerifiedPartner>> {
        self.0.call::<Probe>(&Arc::new(signature.clone()))?
    }

    fn locate(&self, signature: &Signature) -> Answer<PartitionLookup> {
        self.0.call::<Locate>(&Arc::new(signature.clone()))?
    }

    fn load(&self) -> Answer<LoadReport> {
        self.0.call::<Load>(&())?
    }

    fn waiting(&self) -> Answer<usize> {
        let waiting = self.0.call::<Waiting>(&())??;
        Ok(usize::try_from(waiting).unwrap_or(usize::MAX))
    }

    fn flush_batch(&self) -> Answer<()> {
        self.0.call::<FlushBatch>(&())?
    }
}

impl MappingApi for RemoteTier2 {
    fn plan(&self) -> Answer<Plan> {
        let answer = self.0.call::<PlanCall>(&())?;
        answer.map(|Json(plan)| plan)
    }

    fn sample(&self, limit: usize) -> Answer<Vec<Arc<Signature>>> {
        self.0.call::<Sample>(&(limit as u64))?
    }

    fn rebalance(&self, request: RebalanceRequest, dry_run: bool) -> Result<RebalancePlan, RebalanceError> {
        let answer = self.0.call::<Rebalance>(&(Json(request), dry_run));
        answer?.map(|Json(plan)| plan)
    }

    fn cancel(&self) -> Result<RebalanceOutcome, RebalanceError> {
        let answer = self.0.call::<Cancel>(&())?;
        answer.map(|Json(outcome)| outcome)
    }

    fn progress(&self) -> Answer<Option<RebalanceProgress>> {
        let answer = self.0.call::<Progress>(&())?;
        answer.map(|progress| progress.map(|Json(progress)| progress))
    }

    fn request(&self) -> Answer<Option<RebalanceRequest>> {
        let answer = self.0.call::<Request>(&())?;
        answer.map(|request| request.map(|Json(request)| request))
    }

    fn outcome(&self) -> Answer<Option<RebalanceOutcome>> {
        let answer = self.0.call::<OutcomeCall>(&())?;
        answer.map(|outcome| outcome.map(|Json(outcome)| outcome))
    }
}

/// Adds the calls of a coordinator to a listener. If the router may move, pass its
/// [slot](crate::router_slot::RouterSlot) as both `tier2` and `mapping`.
#[must_use]
pub fn serve(
    listener: CallListener,
    tier2: &Arc<dyn Tier2Api>,
    mapping: &Arc<dyn MappingApi>,
) -> CallListener {
    // These calls wait for nodes, and some wait for a change of the plan.
    listener
        .at_once(CALLS)
        .answer::<Probe>(with!(tier2, |tier2, signature| tier2.probe(&signature)))
        .answer::<Locate>(with!(tier2, |tier2, signature| tier2.locate(&signature)))
        .answer::<Load>(with!(tier2, |tier2, ()| tier2.load()))
        .answer::<Waiting>(with!(tier2, |tier2, ()| tier2.waiting().map(|waiting| waiting as u64)))
        .answer::<FlushBatch>(with!(tier2, |tier2, ()| tier2.flush_batch()))
        .answer::<PlanCall>(with!(mapping, |mapping, ()| mapping.plan().map(Json)))
        .answer::<Sample>(with!(mapping, |mapping, limit| {
            mapping.sample(usize::try_from(limit).unwrap_or(usize::MAX))
        }))
        .answer::<Rebalance>(with!(mapping, |mapping, (request, dry_run)| {
            let Json(request) = request;
            mapping.rebalance(request, dry_run).map(Json)
        }))
        .answer::<Cancel>(with!(mapping, |mapping, ()| mapping.cancel().map(Json)))
        .answer::<Progress>(with!(mapping, |mapping, ()| mapping
            .progress()
            .map(|progress| progress.map(Json))))
        .answer::<Request>(with!(mapping, |mapping, ()| mapping.request().map(|request| request.map(Json))))
        .answer::<OutcomeCall>(with!(mapping, |mapping, ()| mapping
            .outcome()
            .map(|outcome| outcome.map(Json))))
}
