//! A partition map and where its partitions are: what several nodes agree on.
//!
//! A node has the partitions of one box of the tree, which are neighbours: a content that is compared in
//! one of them is mostly compared in others of them, and is sent once. Dealing partitions out one by one would
//! send it everywhere.

use std::borrow::Borrow;

use serde::Serialize;

use super::{LengthVector, MappingError, MappingLoad, PARTITIONS_MAX, PartitionMap};
use crate::model::Tau;
use crate::signature::Signature;

/// A map, and the node of each of its partitions.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Plan {
    map: PartitionMap,
    /// Number of nodes.
    nodes: u32,
    /// Ascending.
    node: Vec<u32>,
}

impl Plan {
    /// A plan for `nodes` nodes of `each` partitions, for collections like `sample`. Where the sample has too few
    /// different length vectors, some nodes have fewer partitions or none. A function of its arguments alone.
    ///
    /// # Errors
    /// When `dimensions`, or the number of all partitions, is out of range.
    pub fn learn<S: Borrow<Signature>>(
        sample: &[S],
        (nodes, each): (u32, u32),
        tau: Tau,
        dimensions: usize,
        epoch: u64,
    ) -> Result<Self, MappingError> {
        let partitions = u64::from(nodes) * u64::from(each);
        if !(1..=PARTITIONS_MAX as u64).contains(&partitions) {
            return Err(MappingError::Partitions(usize::try_from(partitions).unwrap_or(usize::MAX)));
        }
        let (map, node) = PartitionMap::learn_parts(sample, (nodes, each), tau, dimensions, epoch)?;
        Ok(Self { map, nodes, node })
    }

    /// The map.
    #[must_use]
    pub fn map(&self) -> &PartitionMap {
        &self.map
    }

    /// Number of nodes.
    #[must_use]
    pub fn nodes(&self) -> u32 {
        self.nodes
    }

    /// The node of a partition.
    #[must_use]
    pub fn node(&self, partition: u32) -> u32 {
        self.node.get(partition as usize).copied().unwrap_or_default()
    }

    /// Writes the nodes that contents of these lengths are compared on to `out`, ascending.
    pub fn contacts(&self, lengths: &LengthVector, out: &mut Vec<u32>) {
        self.map.contacts(lengths, out);
        out.iter_mut().for_each(|partition| *partition = self.node(*partition));
        out.dedup();
    }

    /// What the plan makes of contents of these lengths, by node.
    #[must_use]
    pub fn measure(&self, lengths: &[LengthVector]) -> MappingLoad {
        let zero = vec![0; self.nodes as usize];
        let mut load = MappingLoad { stored: zero.clone(), received: zero };
        let mut contacts = Vec::new();
        for vector in lengths {
            load.stored[self.node(self.map.home(vector)) as usize] += 1;
            self.contacts(vector, &mut contacts);
            contacts.iter().for_each(|node| load.received[*node as usize] += 1);
        }
        load
    }
}
