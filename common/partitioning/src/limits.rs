//! The size of a plan, and upper bounds for the sizes of lexicons, maps and plans.

/// The maximum number of sub-dictionaries of a lexicon.
pub const DIMENSIONS_MAX: usize = 8;

/// The maximum number of partitions of a map.
pub const PARTITIONS_MAX: usize = 4_096;

/// The maximum number of nodes of a plan.
pub const NODES_MAX: u32 = PARTITIONS_MAX as u32;

/// The size of a plan, or of the paper's grid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlanSize {
    /// Number of nodes in the plan.
    pub nodes: u32,
    /// Number of partitions of each node, or of boxes of each node in the paper's grid.
    pub each: u32,
}
