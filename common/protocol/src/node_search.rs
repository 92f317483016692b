//! Searches that the router asks a node of tier 2 for, and what they find.

use std::sync::Arc;

use doppel_model::signature::Signature;
use doppel_model::{ContentHash, PageId};
use doppel_partitioning::LengthVector;
use serde::{Deserialize, Serialize};

use super::index::Pair;

/// A comparison by one node.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum NodeSearch {
    /// Compares a page that is stored on this node, in those of the node's partitions that its bounding space meets.
    /// The searches of one call take each other into account.
    Own {
        /// The page.
        page: PageId,
        /// The content that the page is believed to have.
        content: ContentHash,
        /// The signature, if the caller has it.
        signature: Option<Arc<Signature>>,
    },
    /// Compares a content that is stored on another node or nowhere.
    Foreign {
        /// Its signature.
        signature: Arc<Signature>,
        /// Its length vector.
        lengths: LengthVector,
    },
}

impl NodeSearch {
    /// The content that is compared.
    #[must_use]
    pub fn content(&self) -> ContentHash {
        match self {
            Self::Own { content, .. } => *content,
            Self::Foreign { signature, .. } => signature.content(),
        }
    }
}

/// Comparisons that are made in one call.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SearchBatch {
    /// Whether they belong to a pass. If so, they are counted, the node learns from them, and they have limits.
    pub pass: Option<SearchLimits>,
    /// The searches.
    pub searches: Vec<NodeSearch>,
}

/// How much searches of a pass may cost before others have their turn. Passing over a candidate costs 1, and an exact comparison costs
/// [`COMPARISON_COST`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SearchLimits {
    /// The cost at which one search is interrupted.
    pub search: u64,
    /// The cost, for each thread that compares, at which the rest of the call is left.
    pub call: u64,
}

/// The cost of an exact comparison, where that of passing over a candidate is 1.
pub const COMPARISON_COST: u64 = 32;

/// What one search found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum SearchOutcome {
    /// A limit was reached. The same search, asked for again, continues where it was interrupted.
    Unfinished {
        /// Whether the search has begun, and so has used up its turn.
        begun: bool,
    },
    /// The page does not have this content on this node.
    Absent,
    /// Another page has the same content and is compared on behalf of all of them. This is the pair with that page.
    Copy(Pair),
    /// The content was compared.
    Compared {
        /// Its partners on this node.
        pairs: Vec<Pair>,
        /// The number of partitions in which it was compared.
        probed: u32,
        /// For an [`Own`](NodeSearch::Own) search: what another node needs to compare the content as well.
        subject: Option<(Arc<Signature>, LengthVector)>,
    },
}
