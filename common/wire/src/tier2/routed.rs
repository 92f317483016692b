//! The router of tier 2 that moves: every question goes to where it is at present.

use std::sync::Arc;

use doppel_model::signature::Signature;
use doppel_partitioning::Plan;
use doppel_protocol::{
    IndexError, LoadReport, MappingApi, Pair, PartitionLookup, RebalanceError, RebalanceOutcome,
    RebalancePlan, RebalanceProgress, RebalanceRequest, Tier2Api,
};

use super::RemoteTier2;

/// Answers with what `present` of a type gives: a router, or that there is none.
macro_rules! ask_present_router {
    ($type:ty) => {
        impl Tier2Api for $type {
            fn probe(&self, signature: &Signature) -> Result<Vec<Pair>, IndexError> {
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

/// The router of tier 2 at one of some nodes.
pub struct RoutedTier2 {
    nodes: Vec<RemoteTier2>,
    place: Box<dyn Fn() -> Option<usize> + Send + Sync>,
}

impl RoutedTier2 {
    /// The router at one of these nodes. `place` tells at which of them it is at present, and is asked for every call; it does
    /// not block.
    #[must_use]
    pub fn new(nodes: Vec<RemoteTier2>, place: impl Fn() -> Option<usize> + Send + Sync + 'static) -> Self {
        Self { nodes, place: Box::new(place) }
    }

    /// Where the router is at present.
    ///
    /// # Errors
    /// [`IndexError::Unavailable`] when that is not known.
    pub fn present(&self) -> Result<&RemoteTier2, IndexError> {
        let node = (self.place)().and_then(|place| self.nodes.get(place));
        node.ok_or_else(|| {
            IndexError::Unavailable("it is not known where the router of the index is".to_owned())
        })
    }
}

ask_present_router!(RoutedTier2);
