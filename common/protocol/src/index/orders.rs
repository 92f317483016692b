//! The interface of tier 2: the orders that tier 1 sends, and the answers of tier 2.

use std::sync::Arc;

use doppel_contract::LoadReport;
use doppel_model::pairwise::Similarity;
use doppel_model::signature::Signature;
use doppel_model::{ClientId, ContentHash, Epoch, PageId, PartitionId, RangeId};
use serde::{Deserialize, Serialize};

use super::IndexError;

/// An order to tier 2. Tier 2 carries out the orders about one page in the order in which they were sent.
///
/// Tier 2 is a derived index. If an order is lost with the process, the next start compares the index with
/// tier 1 and finds the difference.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum IndexCommand {
    /// The page now has this content. With `search`, tier 2 compares the content as soon as it is stored
    /// (G4).
    Put {
        /// The page that changed.
        page: PageId,
        /// Current signature of the page.
        signature: Arc<Signature>,
        /// Ticket of the comparison; `None` if the page is not to be compared now.
        search: Option<Search>,
    },
    /// The page no longer has this content.
    Remove {
        /// The page that changed.
        page: PageId,
        /// The content that the page had before.
        content: ContentHash,
    },
    /// Compares a page whose content was put by an earlier order (deferred search).
    Search {
        /// The page to compare.
        page: PageId,
        /// The content that tier 1 believes the page has. If the page has another content, the order is void.
        content: ContentHash,
        /// Ticket of the answer.
        search: Search,
    },
}

/// The ticket of a comparison. The answer returns it, so that tier 1 recognises an outdated answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Search {
    /// A number from a counter of the page's shard.
    pub ticket: u32,
    /// The client that waits for the answer. Tier 2 serves clients in turn.
    pub client: ClientId,
}

impl Search {
    /// Ticket of an unrequested answer, which asks tier 1 to search for the page again. The first page of a
    /// content has left, and this page is now the first. The other copies were linked only to the page that
    /// left.
    pub const UNREQUESTED: u32 = u32::MAX;
}

/// The answer to a search, complete from every partition that intersects the bounding space. With
/// [`Search::UNREQUESTED`], it instead asks tier 1 to search for the page again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SearchResult {
    /// The page that was compared.
    pub page: PageId,
    /// The content that was compared.
    pub content: ContentHash,
    /// Ticket of the order.
    pub ticket: u32,
    /// Verified partners of the page. Tier 2 may leave out a partner that an earlier answer linked to a
    /// listed partner (see the `tier2` crate).
    pub pairs: Vec<VerifiedPartner>,
}

/// A verified partner: it has the same content, or exact comparison found a near-duplicate (F).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerifiedPartner {
    /// A page with the partner's content.
    pub page: PageId,
    /// Content of the partner.
    pub content: ContentHash,
    /// Similarity of the two contents.
    pub similarity: Similarity,
}

/// The partitions of a signature under the present map.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartitionLookup {
    /// Number of distinct shingles in each sub-dictionary.
    pub lengths: Vec<u32>,
    /// The partition that stores the content.
    pub home: PartitionId,
    /// The partitions in which the content is compared, including the home, in the order of the map.
    pub probed_partitions: Vec<PartitionId>,
}

/// Consecutive orders of one range.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Orders {
    /// Number of the range.
    pub range: RangeId,
    /// Epoch of the range's present owner.
    pub epoch: Epoch,
    /// Index of the first command. The other commands follow without a gap. All indexes of an epoch are
    /// greater than the indexes of earlier epochs. Without commands, it announces the index of the next
    /// command.
    pub first: u64,
    /// The commands, in order.
    pub commands: Vec<IndexCommand>,
}

/// Orders that tier 2 did not accept, and the reason.
#[derive(Debug, Clone, thiserror::Error, Serialize, Deserialize)]
#[error("{error}")]
pub struct RefusedOrders {
    /// The orders, for another attempt.
    pub orders: Orders,
    /// Why tier 2 did not accept the orders.
    pub error: IndexError,
}

/// Tier 2 as the coordinator sees it.
pub trait Tier2Api: Send + Sync {
    /// Compares a signature without storing it.
    ///
    /// # Errors
    /// See [`IndexError`].
    fn probe(&self, signature: &Signature) -> Result<Vec<VerifiedPartner>, IndexError>;

    /// Looks up the partitions of a signature.
    ///
    /// # Errors
    /// See [`IndexError`].
    fn locate(&self, signature: &Signature) -> Result<PartitionLookup, IndexError>;

    /// Returns the load of each partition.
    ///
    /// # Errors
    /// See [`IndexError`].
    fn load(&self) -> Result<LoadReport, IndexError>;

    /// Returns the number of orders that were accepted and are not carried out yet, as far as this process
    /// knows.
    ///
    /// # Errors
    /// See [`IndexError`].
    fn waiting(&self) -> Result<usize, IndexError>;

    /// Starts the pass that is being collected, without waiting until it is full or old enough.
    ///
    /// # Errors
    /// See [`IndexError`].
    fn flush_batch(&self) -> Result<(), IndexError>;
}

/// Tier 2 as tier 1 sees it.
pub trait IndexOrders: Tier2Api {
    /// Hands over orders and returns at once. The caller limits how many orders are under way. Tier 2 ignores
    /// orders that it has already accepted. It carries out accepted orders in sequence and retries the nodes
    /// as often as necessary.
    ///
    /// # Errors
    /// Returns orders that tier 2 does not accept.
    fn submit(&self, orders: Orders) -> Result<(), RefusedOrders>;

    /// Whether accepted orders of the range may be lost, because tier 2 was restarted and the range was not.
    /// Returns true only once. The range then has to determine its pending searches again.
    fn has_lost(&self, range: RangeId) -> bool {
        let _ = range;
        false
    }
}
