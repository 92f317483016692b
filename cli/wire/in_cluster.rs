//! A node of tier 1 in a cluster: its ranges, the way to those of the others, and the router of the index or the way to it.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use doppel_model::pairwise::Policy;
use doppel_protocol::index_node::IndexNode;
use doppel_protocol::{ContentSource, IndexOrders};
use doppel_tier1::{OtherRanges, Rules, Tier1};
use doppel_tier2::Tier2;
use doppel_wire::Peer;
use doppel_wire::index_node::RemoteNode;
use doppel_wire::orders::RemoteOrders;
use doppel_wire::tier1::Collection;

use super::{DEFAULTS, Purpose, ensure_not_lost, index, open_tier1};
use crate::args::TuningArgs;
use crate::manifest::{Manifest, Wanted};

/// A node of tier 1, started.
pub(crate) struct RecordNode {
    pub(crate) tier1: Arc<Tier1>,
    pub(crate) index: Index,
    pub(crate) collection: Collection,
}

/// Where the router of the index is.
pub(crate) enum Index {
    /// In this process.
    Here(Arc<Tier2>),
    /// In that of the owner of the first range.
    There(Arc<RemoteOrders>),
}

/// How the router is reached.
pub(crate) enum Router {
    /// It is in this process, and these are the nodes of the index.
    Here(Vec<Peer>),
    /// It is there.
    There(Peer),
}

impl RecordNode {
    /// Opens or creates the collection of a node, recovers it, and starts it. The nodes of the index and the other ranges need
    /// not be there.
    ///
    /// # Errors
    /// When the directory cannot be used as asked, or a tier does not open.
    pub(crate) fn open(
        dir: &Path,
        wanted: Wanted,
        args: &TuningArgs,
        others: OtherRanges,
        router: Router,
    ) -> anyhow::Result<Self> {
        let purpose = Purpose { durable: true, answers: true, rules: Rules::EXACT };
        let manifest = Manifest::open_or_create(dir, wanted, DEFAULTS)?;
        let tier1 = open_tier1(dir, &manifest, args, purpose, others)?;
        let index = match router {
            Router::Here(nodes) => {
                ensure_not_lost(dir, &tier1)?;
                let nodes =
                    nodes.into_iter().map(|peer| Arc::new(RemoteNode::new(peer)) as Arc<dyn IndexNode>);
                let source = Arc::clone(&tier1) as Arc<dyn ContentSource>;
                let tier2 = Tier2::open_over(index(dir, &manifest, args), source, nodes.collect());
                Index::Here(tier2.with_context(|| format!("cannot open the index in {}", dir.display()))?)
            }
            Router::There(peer) => {
                Index::There(RemoteOrders::start(peer).context("cannot start the thread of orders")?)
            }
        };
        tier1.start(index.orders()).context("cannot start tier 1")?;
        let policy = Policy { tau: manifest.policy.tau };
        let collection = Collection { policy, winners: manifest.winners, shards: manifest.shards };
        Ok(Self { tier1, index, collection })
    }

    /// Ends it; what is pending is decided after the next start.
    pub(crate) fn stop(self) {
        self.tier1.stop();
        match self.index {
            Index::Here(tier2) => tier2.stop(),
            Index::There(orders) => orders.stop(),
        }
    }
}

impl Index {
    fn orders(&self) -> Arc<dyn IndexOrders> {
        match self {
            Self::Here(tier2) => Arc::clone(tier2) as Arc<dyn IndexOrders>,
            Self::There(orders) => Arc::clone(orders) as Arc<dyn IndexOrders>,
        }
    }
}
