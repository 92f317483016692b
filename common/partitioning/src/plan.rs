//! A partition map and the assignment of its partitions to nodes, on which several nodes agree.
//!
//! A node initially has the partitions of one box of the tree. These partitions are neighbours, so a content
//! that is compared in one partition is usually compared in the others too, and is sent to the node only
//! once. If partitions were assigned to nodes one by one, each content would be sent to almost all nodes.
//!
//! A partition has an id, which is never given to another box. If a partition has the same id in two plans of
//! one collection, then it has the same box and the same contents in both; only its node may differ. So a
//! plan can be changed with few moves, by [`split`](Plan::split), [`join`](Plan::join) and
//! [`place`](Plan::place).

use std::borrow::Borrow;
use std::collections::{HashMap, HashSet};

use serde::{Deserialize, Serialize};

use doppel_model::signature::Signature;
use doppel_model::{NodeId, PartitionId, Tau};

use crate::bounding_space::Bounds;
use crate::error::MappingError;
use crate::length_vector::LengthVector;
use crate::limits::{NODES_MAX, PARTITIONS_MAX, PlanSize};
use crate::load::MappingLoad;
use crate::partition_index::PartitionIndex;
use crate::partition_map::PartitionMap;

/// The version of the stored format.
const VERSION: u32 = 1;

/// A partition map, and the node of each of its partitions.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(try_from = "StoredPlan", into = "StoredPlan")]
pub struct Plan {
    map: PartitionMap,
    nodes: u32,
    /// Id and node of each partition, in the order of the map.
    assignments: Vec<PartitionAssignment>,
    /// Nodes that must not have partitions, in ascending order.
    drained: Vec<NodeId>,
    next_id: PartitionId,
}

/// The id and the node of a partition.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PartitionAssignment {
    /// The id of the partition. It stays the same as long as the box does.
    pub id: PartitionId,
    /// The node that stores the partition, counted from 0.
    pub node: NodeId,
}

impl Plan {
    /// Learns a plan of this size, for collections like `sample`. If the
    /// sample has too few different length vectors, some nodes have fewer partitions or none. The result
    /// depends only on the arguments.
    ///
    /// # Errors
    /// When `dimensions` or the total number of partitions is out of range.
    pub fn learn<S: Borrow<Signature>>(
        sample: &[S],
        size: PlanSize,
        tau: impl Into<Option<Tau>>,
        dimensions: usize,
        version: u64,
    ) -> Result<Self, MappingError> {
        let partitions = u64::from(size.nodes) * u64::from(size.each);
        if !(1..=PARTITIONS_MAX as u64).contains(&partitions) {
            return Err(MappingError::Partitions(usize::try_from(partitions).unwrap_or(usize::MAX)));
        }
        let (map, parts) = PartitionMap::learn_parts(sample, size, tau.into(), dimensions, version)?;
        Ok(Self::from_map(map, size.nodes, parts.into_iter().map(NodeId)))
    }

    /// Places all partitions of a map on the first of `nodes` nodes.
    ///
    /// # Errors
    /// When `nodes` is 0 or more than [`NODES_MAX`].
    pub fn on_first(map: PartitionMap, nodes: u32) -> Result<Self, MappingError> {
        if !(1..=NODES_MAX).contains(&nodes) {
            return Err(MappingError::Nodes(nodes));
        }
        Ok(Self::from_map(map, nodes, std::iter::repeat(NodeId(0))))
    }

    fn from_map(map: PartitionMap, nodes: u32, node: impl Iterator<Item = NodeId>) -> Self {
        let next_id = PartitionId(map.partitions() as u32);
        let ids = (0..next_id.0).map(PartitionId);
        let assignments = ids.zip(node).map(|(id, node)| PartitionAssignment { id, node }).collect();
        Self { map, nodes, assignments, drained: Vec::new(), next_id }
    }

    /// Replaces the ids by ids that `before` has not used; boxes and nodes stay the same. Use this for a plan
    /// that is learned anew and replaces `before`.
    #[must_use]
    pub fn after(mut self, before: &Self) -> Self {
        for assignment in &mut self.assignments {
            assignment.id.0 += before.next_id.0;
        }
        self.next_id.0 += before.next_id.0;
        self
    }

    /// Checks that this plan can replace `before`: equal ids have equal boxes, and the version is greater.
    ///
    /// # Errors
    /// [`MappingError::PlanVersion`], or [`MappingError::Id`] with the id that belongs to another box.
    pub fn check_succeeds(&self, before: &Self) -> Result<(), MappingError> {
        if self.map.version() <= before.map.version() {
            return Err(MappingError::PlanVersion(self.map.version()));
        }
        let lexicon_stays = self.map.lexicon() == before.map.lexicon();
        let boxes: HashMap<PartitionId, &Bounds> =
            before.assignments.iter().map(|assignment| assignment.id).zip(before.map.bounds()).collect();
        let stays = |(assignment, bounds): (&PartitionAssignment, &Bounds)| match boxes.get(&assignment.id) {
            Some(earlier) => lexicon_stays && *earlier == bounds,
            None => assignment.id >= before.next_id,
        };
        let wrong = self.assignments.iter().zip(self.map.bounds()).find(|pair| !stays(*pair));
        wrong.map_or(Ok(()), |(assignment, _)| Err(MappingError::Id(assignment.id)))
    }

    /// Partition map of the plan.
    #[must_use]
    pub fn map(&self) -> &PartitionMap {
        &self.map
    }

    /// Number of nodes of the plan.
    #[must_use]
    pub fn nodes(&self) -> u32 {
        self.nodes
    }

    /// Id and node of every partition, in the order of the map.
    #[must_use]
    pub fn assignments(&self) -> &[PartitionAssignment] {
        &self.assignments
    }

    /// The position in the map, id and node of every partition.
    pub fn partitions(&self) -> impl Iterator<Item = (PartitionIndex, &PartitionAssignment)> {
        PartitionIndex::first(self.assignments.len()).zip(&self.assignments)
    }

    /// The node of a partition.
    #[must_use]
    pub fn node(&self, partition: PartitionIndex) -> NodeId {
        self.assignments.get(partition.index()).map_or(NodeId(0), |assignment| assignment.node)
    }

    /// The position in the map of the partition with this id. `None` if the plan has no such partition.
    #[must_use]
    pub fn find(&self, id: PartitionId) -> Option<PartitionIndex> {
        self.partitions().find(|(_, assignment)| assignment.id == id).map(|(partition, _)| partition)
    }

    /// The drained nodes, which must not have partitions, in ascending order.
    #[must_use]
    pub fn drained(&self) -> &[NodeId] {
        &self.drained
    }

    /// The nodes that may have partitions, in ascending order.
    pub fn serving(&self) -> impl Iterator<Item = NodeId> + '_ {
        (0..self.nodes).map(NodeId).filter(|node| self.drained.binary_search(node).is_err())
    }

    fn check_node(&self, node: NodeId) -> Result<(), MappingError> {
        let nodes = self.nodes;
        if node.0 < nodes { Ok(()) } else { Err(MappingError::Node { node, nodes }) }
    }

    /// Sets whether a node is drained. The partitions of a drained node stay there until they are placed
    /// elsewhere.
    ///
    /// # Errors
    /// If the node does not exist, or no other node may have partitions.
    pub fn set_drained(&mut self, node: NodeId, drained: bool) -> Result<(), MappingError> {
        self.check_node(node)?;
        if drained && self.serving().all(|other| other == node) {
            return Err(MappingError::LastNode(node));
        }
        match (self.drained.binary_search(&node), drained) {
            (Ok(at), false) => drop(self.drained.remove(at)),
            (Err(at), true) => self.drained.insert(at, node),
            _ => {}
        }
        Ok(())
    }

    /// Adds nodes at the end until there are `nodes` nodes. It never removes nodes.
    ///
    /// # Errors
    /// When there would be more than [`NODES_MAX`].
    pub fn extend(&mut self, nodes: u32) -> Result<(), MappingError> {
        if nodes > NODES_MAX {
            return Err(MappingError::Nodes(nodes));
        }
        self.nodes = self.nodes.max(nodes);
        Ok(())
    }

    /// Changes the number of nodes to `nodes`. Partitions of removed nodes are assigned to the remaining
    /// nodes in turn.
    ///
    /// # Errors
    /// When `nodes` is 0 or more than [`NODES_MAX`].
    pub fn over_nodes(mut self, nodes: u32) -> Result<Self, MappingError> {
        if !(1..=NODES_MAX).contains(&nodes) {
            return Err(MappingError::Nodes(nodes));
        }
        self.drained.retain(|node| node.0 < nodes);
        if self.drained.len() == nodes as usize {
            self.drained.clear();
        }
        self.nodes = nodes;
        let serving: Vec<NodeId> = self.serving().collect();
        let orphaned = self.assignments.iter_mut().filter(|assignment| assignment.node.0 >= nodes);
        for (assignment, node) in orphaned.zip(serving.iter().cycle()) {
            assignment.node = *node;
        }
        Ok(self)
    }

    /// Sets the version of the map. Call it once, after all changes.
    pub fn set_version(&mut self, version: u64) {
        self.map.set_version(version);
    }

    /// Assigns a partition to a node.
    ///
    /// # Errors
    /// When the partition or the node does not exist.
    pub fn place(&mut self, partition: PartitionIndex, node: NodeId) -> Result<(), MappingError> {
        self.check_node(node)?;
        let assignment = self.assignments.get_mut(partition.index());
        assignment.ok_or(MappingError::Place(partition))?.node = node;
        Ok(())
    }

    /// Splits a partition in two: where the feature is at most `at`, and the rest. The new partitions have
    /// the position of the old partition and the next position, and are on the same node.
    ///
    /// # Errors
    /// When the partition or the feature does not exist, or there are already [`PARTITIONS_MAX`] partitions.
    pub fn split(&mut self, partition: PartitionIndex, feature: usize, at: i64) -> Result<(), MappingError> {
        self.map.split(partition, feature, at)?;
        let index = partition.index();
        let node = self.assignments[index].node;
        let new = [0, 1].map(|n| PartitionAssignment { id: PartitionId(self.next_id.0 + n), node });
        self.next_id.0 += 2;
        self.assignments.splice(index..=index, new);
        Ok(())
    }

    /// Joins `partition` and the next one into a new partition on the node of the first.
    ///
    /// # Errors
    /// When the two are not the two sides of one cut.
    pub fn join(&mut self, partition: PartitionIndex) -> Result<(), MappingError> {
        self.map.join(partition)?;
        let index = partition.index();
        let new = PartitionAssignment { id: self.next_id, node: self.assignments[index].node };
        self.next_id.0 += 1;
        self.assignments.splice(index..=index + 1, [new]);
        Ok(())
    }

    /// Writes the nodes on which contents with these lengths are compared to `out`, in ascending order.
    pub fn probed_nodes(&self, lengths: &LengthVector, out: &mut Vec<NodeId>) {
        out.clear();
        self.map.for_each_probed(lengths, |partition| out.push(self.node(partition)));
        out.sort_unstable();
        out.dedup();
    }

    /// The largest of the given loads of the serving nodes, divided by their mean. `by_node` is indexed by
    /// node.
    #[must_use]
    pub fn imbalance(&self, by_node: &[u64]) -> f64 {
        let stored = self.serving().map(|node| by_node[node.index()]).collect();
        MappingLoad { stored, received: Vec::new() }.imbalance()
    }

    /// The load of each node for contents with these lengths.
    #[must_use]
    pub fn measure(&self, lengths: &[LengthVector]) -> MappingLoad {
        let zero = vec![0; self.nodes as usize];
        let mut load = MappingLoad { stored: zero.clone(), received: zero };
        let mut probed_nodes = Vec::new();
        for vector in lengths {
            load.stored[self.node(self.map.home(vector)).index()] += 1;
            self.probed_nodes(vector, &mut probed_nodes);
            probed_nodes.iter().for_each(|node| load.received[node.index()] += 1);
        }
        load
    }
}

/// The stored form of a plan.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredPlan {
    doppel_plan: u32,
    nodes: u32,
    drained: Vec<NodeId>,
    next_id: PartitionId,
    partitions: Vec<PartitionAssignment>,
    map: PartitionMap,
}

impl From<Plan> for StoredPlan {
    fn from(plan: Plan) -> Self {
        let Plan { map, nodes, assignments: partitions, drained, next_id } = plan;
        Self { doppel_plan: VERSION, nodes, drained, next_id, partitions, map }
    }
}

impl TryFrom<StoredPlan> for Plan {
    type Error = MappingError;

    fn try_from(stored: StoredPlan) -> Result<Self, MappingError> {
        let StoredPlan { doppel_plan, nodes, drained, next_id, partitions: assignments, map } = stored;
        if doppel_plan != VERSION {
            return Err(MappingError::Version(doppel_plan));
        }
        if !(1..=NODES_MAX).contains(&nodes) {
            return Err(MappingError::Nodes(nodes));
        }
        if assignments.len() != map.partitions() {
            return Err(MappingError::Partitions(assignments.len()));
        }
        if let Some(node) = assignments
            .iter()
            .map(|assignment| assignment.node)
            .chain(drained.iter().copied())
            .find(|node| node.0 >= nodes)
        {
            return Err(MappingError::Node { node, nodes });
        }
        // Ids are never reused. Reject a plan that has used half of all ids, so that there are always enough
        // left.
        if next_id.0 > u32::MAX / 2 {
            return Err(MappingError::Id(next_id));
        }
        let mut used_ids = HashSet::new();
        if let Some(assignment) =
            assignments.iter().find(|assignment| assignment.id >= next_id || !used_ids.insert(assignment.id))
        {
            return Err(MappingError::Id(assignment.id));
        }
        let plan = Self { map, nodes, assignments, drained: Vec::new(), next_id };
        drained.into_iter().try_fold(plan, |mut plan, node| plan.set_drained(node, true).map(|()| plan))
    }
}

#[cfg(test)]
mod tests;
