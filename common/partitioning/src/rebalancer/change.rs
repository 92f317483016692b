//! What it takes to come from one plan to the next, in partitions and contents.

/// The difference of two plans, and what it makes of the load.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PlanChange {
    /// The version of the plan that is left.
    pub plan_version: u64,
    /// Partitions that are cut in two.
    pub splits: u32,
    /// Pairs of partitions that become one.
    pub joins: u32,
    /// Partitions that go to another node, in the order of the map.
    pub moves: Vec<PlannedMove>,
    /// Contents that change their node, about.
    pub contents_moved: u64,
    /// All contents.
    pub contents: u64,
    /// Most over mean of contents per serving node, before.
    pub imbalance_before: f64,
    /// The same, of the nodes that serve then.
    pub imbalance_after: f64,
    /// Share of fan-out to nodes saved against comparing every content on every serving node, 0 to 1, before; none but
    /// for a map that is learned anew.
    pub fan_out_saved_before: Option<f64>,
    /// The same, after.
    pub fan_out_saved_after: Option<f64>,
}

/// A box that goes to another node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedMove {
    /// The partition's id in the new plan.
    pub partition: u32,
    /// The node it is on.
    pub from: u32,
    /// The node it goes to.
    pub to: u32,
    /// Its contents, about.
    pub contents: u64,
}
