//! Searches that the router requests from a node of tier 2, and their results.

use std::sync::Arc;

use doppel_model::signature::Signature;
use doppel_model::{ContentHash, PageId};
use doppel_partitioning::LengthVector;
use serde::{Deserialize, Serialize};

use crate::index::VerifiedPartner;

/// A comparison on one node.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum NodeSearch {
    /// Compares a page that is stored on this node, in the node's partitions that intersect its bounding
    /// space. The searches of one call take each other into account.
    Own {
        /// The page to compare.
        page: PageId,
        /// The content that the caller believes the page has.
        content: ContentHash,
        /// Signature of the content, if the caller has it.
        signature: Option<Arc<Signature>>,
    },
    /// Compares a content that is stored on another node, or not stored at all.
    Foreign {
        /// Signature of the content.
        signature: Arc<Signature>,
        /// Length vector of the content.
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
    /// Limits if the searches belong to a pass; `None` otherwise. The node counts the searches of a pass and
    /// adapts to them.
    pub pass: Option<SearchLimits>,
    /// The searches, in order.
    pub searches: Vec<NodeSearch>,
}

/// Maximum cost of searches in a pass before other searches have their turn. Skipping a candidate costs 1,
/// as does looking up the key of a family. An exact comparison costs [`COMPARISON_COST`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SearchLimits {
    /// Cost at which a search is interrupted.
    pub search: u64,
    /// Cost, for each comparing thread, at which the remaining searches of the call are skipped.
    pub call: u64,
}

/// Cost of an exact comparison, relative to skipping a candidate.
pub const COMPARISON_COST: u64 = 32;

/// The result of a search on one node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum SearchOutcome {
    /// The search reached a limit. If the caller requests the same search again, it continues where it was
    /// interrupted.
    Unfinished {
        /// Whether the search has begun, and so has used its turn.
        begun: bool,
    },
    /// The page does not have this content on this node.
    Absent,
    /// Another page has the same content and is compared on behalf of all copies. This is the pair with that
    /// page.
    Copy(VerifiedPartner),
    /// The content was compared.
    Compared {
        /// Partners of the content on this node.
        pairs: Vec<VerifiedPartner>,
        /// Number of partitions in which the content was compared.
        probed: u32,
        /// Signature and length vector that another node needs to compare the content. Present for an
        /// [`Own`](NodeSearch::Own) search.
        subject: Option<(Arc<Signature>, LengthVector)>,
    },
}
