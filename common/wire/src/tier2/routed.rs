//! The router of tier 2 when it may move: every call goes to its present node.

use std::sync::Arc;

use doppel_contract::{LoadReport, RebalanceOutcome, RebalancePlan, RebalanceProgress, RebalanceRequest};
use doppel_model::signature::Signature;
use doppel_partitioning::Plan;
use doppel_protocol::{IndexError, MappingApi, PartitionLookup, RebalanceError, Tier2Api, VerifiedPartner};

use super::RemoteTier2;

/// Implements the traits of a router by forwarding each call to the router that the type's method `present`
/// returns.
macro_rules! ask_present_router {
    ($type:ty) => {
        impl Tier2Api for $type {
            fn probe(&self, signature: &Signature) -> Result<Vec<VerifiedPartner>, IndexError> {
                self.present()?.probe(signature)
            }

            fn locate(&self, signature: &Signature) -> Result<PartitionLookup, IndexError> {
                self.present()?.locate(signature)
            }

            fn load(&self) -> Result<LoadReport, IndexError> {
                self.present()?.load()
            }

            fn waiting(&self) -> Result<usize, IndexError> {
                self.present()?.waiting()
            }

            fn flush_batch(&self) -> Result<(), IndexError> {
                self.present()?.flush_batch()
            }
        }

        impl MappingApi for $type {
            fn plan(&self) -> Result<Plan, IndexError> {
                self.present()?.plan()
            }

            fn sample(&self, limit: usize) -> Result<Vec<Arc<Signature>>, IndexError> {
                self.present()?.sample(limit)
            }

            fn rebalance(
                &self,
                request: RebalanceRequest,
                dry_run: bool,
            ) -> Result<RebalancePlan, RebalanceError> {
                self.present()?.rebalance(request, dry_run)
            }

            fn cancel(&self) -> Result<RebalanceOutcome, RebalanceError> {
                self.present()?.cancel()
            }

            fn progress(&self) -> Result<Option<RebalanceProgress>, IndexError> {
                self.present()?.progress()
            }

            fn request(&self) -> Result<Option<RebalanceRequest>, IndexError> {
                self.present()?.request()
            }

            fn outcome(&self) -> Result<Option<RebalanceOutcome>, IndexError> {
                self.present()?.outcome()
            }
        }
    };
}
pub(crate) use ask_present_router;

/// The router of tier 2, which is on one node of a list.
pub struct RoutedTier2 {
    nodes: Vec<RemoteTier2>,
    place: Box<dyn Fn() -> Option<usize> + Send + Sync>,
}

impl RoutedTier2 {
    /// Creates a client of the router. `place` returns the index in `nodes` of the router's present node. It
    /// is called for every call and must not block.
    #[must_use]
    pub fn new(nodes: Vec<RemoteTier2>, place: impl Fn() -> Option<usize> + Send + Sync + 'static) -> Self {
        Self { nodes, place: Box::new(place) }
    }

    /// Returns the client of the present router.
    ///
    /// # Errors
    /// [`IndexError::Unavailable`] if the node of the router is unknown.
    pub fn present(&self) -> Result<&RemoteTier2, IndexError> {
        let node = (self.place)().and_then(|place| self.nodes.get(place));
        node.ok_or_else(|| {
            IndexError::Unavailable("it is not known where the router of the index is".to_owned())
        })
    }
}

ask_present_router!(RoutedTier2);
