//! The fake as tier 2, the index.

use std::sync::Arc;

use doppel_contract::{LengthBox, LoadReport, PartitionLoad};
use doppel_model::pairwise::Policy;
use doppel_model::signature::Signature;
use doppel_model::{NodeId, PageId, PartitionId};
use doppel_protocol::{IndexError, PartitionLookup, Tier2Api, VerifiedPartner};

use super::Fake;

impl Tier2Api for Fake {
    fn waiting(&self) -> Result<usize, IndexError> {
        Ok(0)
    }

    fn probe(&self, signature: &Signature) -> Result<Vec<VerifiedPartner>, IndexError> {
        self.gate.pass("probe");
        let state = self.state();
        state.index()?;
        let stored = state.pages.iter().filter_map(|(id, page)| Some((*id, page.signature.as_ref()?)));
        let pair = |(page, other): (PageId, &Arc<Signature>)| {
            let comparison = Policy::default().compare(signature, other);
            comparison.similar.then(|| VerifiedPartner {
                page,
                content: other.content(),
                similarity: comparison.similarity,
            })
        };
        Ok(stored.filter_map(pair).collect())
    }

    fn locate(&self, signature: &Signature) -> Result<PartitionLookup, IndexError> {
        self.state().index()?;
        let (home, probed_partitions) = (PartitionId(1), vec![PartitionId(0), PartitionId(1)]);
        Ok(PartitionLookup { lengths: vec![signature.size(), 0, 0], home, probed_partitions })
    }

    fn load(&self) -> Result<LoadReport, IndexError> {
        self.state().index()?;
        let partition = |partition, node, contents| PartitionLoad {
            partition: PartitionId(partition),
            node: NodeId(node),
            bounds: LengthBox { lo: vec![None; 4], hi: vec![Some(9); 4] },
            contents,
            pages: contents + 1,
            received: 10,
            comparisons: 20,
            bytes: 100,
        };
        Ok(LoadReport {
            plan_version: 4,
            dimensions: 3,
            partitions: vec![partition(0, 0, 5), partition(1, 3, 6), partition(2, 0, 7)],
            searches: 10,
            fan_out: 15,
            imbalance: 1.17,
            imbalance_floor: 1.1,
            fan_out_saved: Some(0.5),
            serving_nodes: 3,
            node_fan_out: 12,
            node_imbalance: 2.0,
            node_imbalance_floor: 1.2,
            node_fan_out_saved: Some(0.6),
            file_bytes: 4_096,
        })
    }

    fn flush_batch(&self) -> Result<(), IndexError> {
        let mut state = self.state();
        state.index()?;
        state.flushes += 1;
        Ok(())
    }
}
