//! The nodes of tier 2 and the plan that says which of them stores and compares what.
//!
//! A node has tables and a signature file of its own and knows nothing of the others. A content is stored on one node;
//! a search goes to every node that has a partition it meets, and its answer is all of theirs together. Stars and query
//! orders ([`search`](crate::search)) are a matter of one node: to another one, the page that searches is a stranger.

use std::sync::Arc;

use doppel_model::signature::Signature;
use doppel_model::{ContentHash, PageId};
use doppel_partitioning::{LengthVector, Plan};

use crate::index::{Fetch, Index};
use crate::map_file::LearnedFrom;
use crate::search::{Found, Scratch};
use crate::tables::EntryRef;

/// Where an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Address {
    /// The node's number in the plan.
    pub(crate) node: u32,
    pub(crate) entry: EntryRef,
}

/// Contents that changed their node since there were `since` contents.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Moved {
    pub(crate) since: usize,
    pub(crate) contents: u64,
}

/// All nodes of a process.
pub(crate) struct Cluster {
    pub(crate) plan: Arc<Plan>,
    /// By their numbers in the plan.
    pub(crate) nodes: Vec<Index>,
    pub(crate) fetch: Fetch,
    /// When and for what the map was learned.
    pub(crate) learned: Option<LearnedFrom>,
    /// Contents when the load last asked for a plan in vain.
    pub(crate) declined_at: usize,
    /// What the load has moved for a while.
    pub(crate) moved: Moved,
    /// Searches made under this plan, and partitions and nodes they were sent to.
    pub(crate) searches: u64,
    pub(crate) fan_out: u64,
    pub(crate) node_fan_out: u64,
}

impl Cluster {
    pub(crate) fn new(
        plan: Arc<Plan>,
        nodes: Vec<Index>,
        fetch: Fetch,
        learned: Option<LearnedFrom>,
    ) -> Self {
        Self {
            plan,
            nodes,
            fetch,
            learned,
            declined_at: 0,
            moved: Moved::default(),
            searches: 0,
            fan_out: 0,
            node_fan_out: 0,
        }
    }

    pub(crate) fn node(&self, node: u32) -> &Index {
        &self.nodes[node as usize]
    }

    pub(crate) fn node_mut(&mut self, node: u32) -> &mut Index {
        &mut self.nodes[node as usize]
    }

    /// The node of a signature, and its home there.
    pub(crate) fn home(&self, signature: &Signature) -> (u32, (u32, LengthVector)) {
        let lengths = self.plan.map().lexicon().lengths(signature);
        let number = self.plan.map().home(&lengths);
        let node = self.plan.node(number);
        let local = self.node(node).tables.local(number);
        (node, (local.unwrap_or_default(), lengths))
    }

    /// `page` has this content. Contents without tokens are nobody's duplicate and are not kept.
    pub(crate) fn put(&mut self, page: PageId, signature: &Signature) {
        if signature.tokens() > 0 {
            let (node, home) = self.home(signature);
            self.node_mut(node).put(page, signature, home);
        }
    }

    /// Where a content is.
    pub(crate) fn find(&self, content: ContentHash) -> Option<Address> {
        let mut nodes = (0..).zip(&self.nodes);
        nodes.find_map(|(node, index)| index.tables.find(content).map(|entry| Address { node, entry }))
    }

    /// Whether a page has a content.
    pub(crate) fn has(&self, page: PageId, content: ContentHash) -> bool {
        self.nodes.iter().any(|index| index.tables.has(page, content))
    }

    /// Searches for the partners of `signature`, which is stored at `own`, or nowhere. What every node found.
    pub(crate) fn search(
        &self,
        signature: &Signature,
        own: Option<Address>,
        scratch: &mut Scratch,
    ) -> Vec<(u32, Found)> {
        let lengths = self.plan.map().lexicon().lengths(signature);
        let mut probed_partitions = std::mem::take(&mut scratch.probed_partitions);
        self.plan.map().probed_partitions(&lengths, &mut probed_partitions);
        let mut found = Vec::new();
        for (number, index) in (0..).zip(&self.nodes) {
            let mut here =
                probed_partitions.iter().filter_map(|number| index.tables.local(*number)).peekable();
            if here.peek().is_some() {
                let own = own.filter(|own| own.node == number).map(|own| own.entry);
                found.push((number, index.search(signature, lengths, here, own, scratch)));
            }
        }
        scratch.probed_partitions = probed_partitions;
        found
    }

    /// Takes in what a search found out.
    pub(crate) fn learn(&mut self, found: &[(u32, Found)]) {
        self.searches += 1;
        self.node_fan_out += found.len() as u64;
        for (node, found) in found {
            self.fan_out += found.probed_partitions.len() as u64;
            self.node_mut(*node).learn(found);
        }
    }

    /// Contents stored.
    pub(crate) fn len(&self) -> usize {
        self.nodes.iter().map(|index| index.tables.len()).sum()
    }

    /// Memory of all columns and tables, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.nodes.iter().map(|index| index.tables.bytes()).sum()
    }

    /// The next plan is the present one.
    pub(crate) fn adopt(&mut self, plan: Arc<Plan>) {
        for index in &mut self.nodes {
            index.tables.adopt(Arc::clone(&plan));
        }
        self.plan = plan;
        (self.searches, self.fan_out, self.node_fan_out) = (0, 0, 0);
    }
}
