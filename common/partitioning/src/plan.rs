//! A partition map and where its partitions are: what several nodes agree on.
//!
//! A node has the partitions of one box of the tree, which are neighbours: a content that is compared in
//! one of them is mostly compared in others of them, and is sent once. Dealing partitions out one by one would
//! send it everywhere.
//!
//! A partition has an id, which is never given to another box: between two plans of one collection, a partition
//! of the same id has the same box and the same contents, and only its node may differ. That is how a plan is changed
//! with few moves: by [`split`](Plan::split), [`join`](Plan::join) and [`place`](Plan::place).

use std::borrow::Borrow;
use std::collections::{HashMap, HashSet};

use serde::{Deserialize, Serialize};

use super::{Bounds, LengthVector, MappingError, MappingLoad, PARTITIONS_MAX, PartitionMap};
use doppel_model::Tau;
use doppel_model::signature::Signature;

/// The version of the document.
const VERSION: u32 = 1;

/// The most nodes of a plan.
pub const NODES_MAX: u32 = PARTITIONS_MAX as u32;

/// A map, and the node of each of its partitions.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(try_from = "PlanDocument", into = "PlanDocument")]
pub struct Plan {
    map: PartitionMap,
    nodes: u32,
    /// By the partition's number in the map.
    assignments: Vec<PartitionAssignment>,
    /// Nodes that are to have no partitions, ascending.
    drained: Vec<u32>,
    next_id: u32,
}

/// What a plan says of a partition beside its box.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PartitionAssignment {
    /// Its name for as long as its box is the same.
    pub id: u32,
    /// The node that has it, from 0.
    pub node: u32,
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
        version: u64,
    ) -> Result<Self, MappingError> {
        let partitions = u64::from(nodes) * u64::from(each);
        if !(1..=PARTITIONS_MAX as u64).contains(&partitions) {
            return Err(MappingError::Partitions(usize::try_from(partitions).unwrap_or(usize::MAX)));
        }
        let (map, node) = PartitionMap::learn_parts(sample, (nodes, each), tau, dimensions, version)?;
        Ok(Self::over(map, nodes, &node))
    }

    /// A map on the first of `nodes` nodes.
    ///
    /// # Errors
    /// When `nodes` is 0 or more than [`NODES_MAX`].
    pub fn on_first(map: PartitionMap, nodes: u32) -> Result<Self, MappingError> {
        if !(1..=NODES_MAX).contains(&nodes) {
            return Err(MappingError::Nodes(nodes));
        }
        let node = vec![0; map.partitions()];
        Ok(Self::over(map, nodes, &node))
    }

    fn over(map: PartitionMap, nodes: u32, node: &[u32]) -> Self {
        let assignments = (0..).zip(node).map(|(id, node)| PartitionAssignment { id, node: *node }).collect();
        let next_id = map.partitions() as u32;
        Self { map, nodes, assignments, drained: Vec::new(), next_id }
    }

    /// The same boxes and nodes with ids that `before` has not given to other boxes: the plan that follows it when
    /// everything is mapped anew.
    #[must_use]
    pub fn after(mut self, before: &Self) -> Self {
        for assignment in &mut self.assignments {
            assignment.id += before.next_id;
        }
        self.next_id += before.next_id;
        self
    }

    /// Whether this plan can take the place of `before`: partitions of one id have one box, and the version is later.
    ///
    /// # Errors
    /// [`MappingError::PlanVersion`], or [`MappingError::Id`] with the id that names another box.
    pub fn check_succeeds(&self, before: &Self) -> Result<(), MappingError> {
        if self.map.version() <= before.map.version() {
            return Err(MappingError::PlanVersion(self.map.version()));
        }
        let lexicon_stays = self.map.lexicon() == before.map.lexicon();
        let boxes: HashMap<u32, &Bounds> =
            before.assignments.iter().map(|assignment| assignment.id).zip(before.map.bounds()).collect();
        let stays = |(assignment, bounds): (&PartitionAssignment, &Bounds)| match boxes.get(&assignment.id) {
            Some(earlier) => lexicon_stays && *earlier == bounds,
            None => assignment.id >= before.next_id,
        };
        let wrong = self.assignments.iter().zip(self.map.bounds()).find(|pair| !stays(*pair));
        wrong.map_or(Ok(()), |(assignment, _)| Err(MappingError::Id(assignment.id)))
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

    /// Id and node of every partition, by its number in the map.
    #[must_use]
    pub fn assignments(&self) -> &[PartitionAssignment] {
        &self.assignments
    }

    /// The node of a partition, by its number in the map.
    #[must_use]
    pub fn node(&self, partition: u32) -> u32 {
        self.assignments.get(partition as usize).map_or(0, |assignment| assignment.node)
    }

    /// The number in the map of the partition with this id.
    #[must_use]
    pub fn number(&self, id: u32) -> Option<u32> {
        self.assignments.iter().position(|assignment| assignment.id == id).map(|number| number as u32)
    }

    /// Nodes that are to have no partitions, ascending.
    #[must_use]
    pub fn drained(&self) -> &[u32] {
        &self.drained
    }

    /// The nodes that may have partitions, ascending.
    pub fn serving(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.nodes).filter(|node| self.drained.binary_search(node).is_err())
    }

    fn check_node(&self, node: u32) -> Result<(), MappingError> {
        let nodes = self.nodes;
        if node < nodes { Ok(()) } else { Err(MappingError::Node { node, nodes }) }
    }

    /// Says whether a node may have partitions. Those that it has stay until they are placed elsewhere.
    ///
    /// # Errors
    /// When there is no such node, or no other one that may have partitions.
    pub fn set_drained(&mut self, node: u32, drained: bool) -> Result<(), MappingError> {
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

    /// Adds nodes at the end until there are so many; there are never fewer than before.
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

    /// The same over so many nodes: partitions of nodes that there are no more are dealt to the others in turn.
    ///
    /// # Errors
    /// When `nodes` is 0 or more than [`NODES_MAX`].
    pub fn over_nodes(mut self, nodes: u32) -> Result<Self, MappingError> {
        if !(1..=NODES_MAX).contains(&nodes) {
            return Err(MappingError::Nodes(nodes));
        }
        self.drained.retain(|node| *node < nodes);
        if self.drained.len() == nodes as usize {
            self.drained.clear();
        }
        self.nodes = nodes;
        let serving: Vec<u32> = self.serving().collect();
        let homeless = self.assignments.iter_mut().filter(|assignment| assignment.node >= nodes);
        for (assignment, node) in homeless.zip(serving.iter().cycle()) {
            assignment.node = *node;
        }
        Ok(self)
    }

    /// Gives the map its next version, once the changes to it are done.
    pub fn set_version(&mut self, version: u64) {
        self.map.set_version(version);
    }

    /// Places a partition, by its number in the map, on a node.
    ///
    /// # Errors
    /// When there is no such partition or node.
    pub fn place(&mut self, partition: u32, node: u32) -> Result<(), MappingError> {
        self.check_node(node)?;
        let assignment = self.assignments.get_mut(partition as usize);
        assignment.ok_or(MappingError::Partition(partition))?.node = node;
        Ok(())
    }

    /// Splits a partition where a feature is at most `at`: two new ones in its place, of the numbers `partition` and
    /// `partition + 1`, both on its node.
    ///
    /// # Errors
    /// When there is no such partition or feature, or there are [`PARTITIONS_MAX`] already.
    pub fn split(&mut self, partition: u32, feature: usize, at: i64) -> Result<(), MappingError> {
        self.map.split(partition, feature, at)?;
        let number = partition as usize;
        let node = self.assignments[number].node;
        let new = [0, 1].map(|n| PartitionAssignment { id: self.next_id + n, node });
        self.next_id += 2;
        self.assignments.splice(number..=number, new);
        Ok(())
    }

    /// Makes one new partition of `partition` and the next one, on the node of the first.
    ///
    /// # Errors
    /// When they are not the two sides of one cut.
    pub fn join(&mut self, partition: u32) -> Result<(), MappingError> {
        self.map.join(partition)?;
        let number = partition as usize;
        let new = PartitionAssignment { id: self.next_id, node: self.assignments[number].node };
        self.next_id += 1;
        self.assignments.splice(number..=number + 1, [new]);
        Ok(())
    }

    /// Writes the nodes that contents of these lengths are compared on to `out`, ascending.
    pub fn probed_nodes(&self, lengths: &LengthVector, out: &mut Vec<u32>) {
        self.map.probed_partitions(lengths, out);
        out.iter_mut().for_each(|partition| *partition = self.node(*partition));
        out.sort_unstable();
        out.dedup();
    }

    /// Most over mean of what the nodes that may have partitions have, given by node.
    #[must_use]
    pub fn imbalance(&self, by_node: &[u64]) -> f64 {
        let stored = self.serving().map(|node| by_node[node as usize]).collect();
        MappingLoad { stored, received: Vec::new() }.imbalance()
    }

    /// What the plan makes of contents of these lengths, by node.
    #[must_use]
    pub fn measure(&self, lengths: &[LengthVector]) -> MappingLoad {
        let zero = vec![0; self.nodes as usize];
        let mut load = MappingLoad { stored: zero.clone(), received: zero };
        let mut probed_nodes = Vec::new();
        for vector in lengths {
            load.stored[self.node(self.map.home(vector)) as usize] += 1;
            self.probed_nodes(vector, &mut probed_nodes);
            probed_nodes.iter().for_each(|node| load.received[*node as usize] += 1);
        }
        load
    }
}

/// A plan as it is stored.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PlanDocument {
    doppel_plan: u32,
    nodes: u32,
    drained: Vec<u32>,
    next_id: u32,
    partitions: Vec<PartitionAssignment>,
    map: PartitionMap,
}

impl From<Plan> for PlanDocument {
    fn from(plan: Plan) -> Self {
        let Plan { map, nodes, assignments: partitions, drained, next_id } = plan;
        Self { doppel_plan: VERSION, nodes, drained, next_id, partitions, map }
    }
}

impl TryFrom<PlanDocument> for Plan {
    type Error = MappingError;

    fn try_from(document: PlanDocument) -> Result<Self, MappingError> {
        let PlanDocument { doppel_plan, nodes, drained, next_id, partitions: assignments, map } = document;
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
            .find(|n| *n >= nodes)
        {
            return Err(MappingError::Node { node, nodes });
        }
        // Ids are never used again, and enough are left for all that may come.
        if next_id > u32::MAX / 2 {
            return Err(MappingError::Id(next_id));
        }
        let mut seen = HashSet::new();
        if let Some(assignment) =
            assignments.iter().find(|assignment| assignment.id >= next_id || !seen.insert(assignment.id))
        {
            return Err(MappingError::Id(assignment.id));
        }
        let plan = Self { map, nodes, assignments, drained: Vec::new(), next_id };
        drained.into_iter().try_fold(plan, |mut plan, node| plan.set_drained(node, true).map(|()| plan))
    }
}
