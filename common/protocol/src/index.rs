//! The interface of tier 2: the orders that tier 1 gives it, and its answers.

use std::sync::Arc;

use doppel_model::pairwise::Similarity;
use doppel_model::signature::Signature;
use doppel_model::{ClientId, ContentHash, Epoch, PageId, PartitionId, RangeId};
use serde::{Deserialize, Serialize};

use super::index_error::IndexError;
use super::report::LoadReport;

/// One order to tier 2. Orders about one page are carried out in the order they are given.
///
/// Tier 2 is a derived index. If an order is lost with the process, the next start finds the difference when it
/// compares the index with tier 1.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum IndexCommand {
    /// `page` now has this content. With `search`, it is compared as soon as it is stored (G4).
    Put {
        /// The page.
        page: PageId,
        /// Its current signature.
        signature: Arc<Signature>,
        /// The ticket of the comparison; none if it is not to be compared now.
        search: Option<Search>,
    },
    /// `page` no longer has this content.
    Remove {
        /// The page.
        page: PageId,
        /// The content it had.
        content: ContentHash,
    },
    /// Compares a page whose content was put before (deferred search).
    Search {
        /// The page.
        page: PageId,
        /// The content that the page is believed to have. If it has another one, the order is void.
        content: ContentHash,
        /// The ticket of the answer.
        search: Search,
    },
}

/// The ticket of a comparison. It comes back with the answer, so that tier 1 recognises an outdated one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Search {
    /// A number from a counter of the page's shard.
    pub ticket: u32,
    /// The client that waits for the answer. Clients are served in turn.
    pub client: ClientId,
}

impl Search {
    /// The ticket of an answer that nobody asked for. The first page of a content has left, and this page is now the
    /// first. The copies were linked to the page that left, so this one has to be compared again.
    pub const UNREQUESTED: u32 = u32::MAX;
}

/// The answer to one search, complete from every partition that meets the bounding space. Under
/// [`Search::UNREQUESTED`] it is instead the request to search for the page again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SearchResult {
    /// The page that was compared.
    pub page: PageId,
    /// The content that was compared.
    pub content: ContentHash,
    /// The ticket of the order.
    pub ticket: u32,
    /// Its verified partners. A partner may be left out if an earlier answer linked it to one of these (see `tier2`).
    pub pairs: Vec<Pair>,
}

/// A verified partner: it has the same content, or F holds by exact comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pair {
    /// A page with the partner's content.
    pub page: PageId,
    /// The partner's content.
    pub content: ContentHash,
    /// How similar the two contents are.
    pub similarity: Similarity,
}

/// The partitions of a signature under the present map.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartitionLookup {
    /// The number of distinct shingles per sub-dictionary.
    pub lengths: Vec<u32>,
    /// The id of the partition that stores it.
    pub home: PartitionId,
    /// The ids of the partitions it is compared in, including the home, in the order of the map.
    pub probed_partitions: Vec<PartitionId>,
}

/// Consecutive orders of one range.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Orders {
    /// The range.
    pub range: RangeId,
    /// The epoch of the range's present owner.
    pub epoch: Epoch,
    /// The index of the first command; the others follow without a gap. Those of a later epoch are greater than all of
    /// an earlier one. Without a command it announces which comes next.
    pub first: u64,
    /// The commands.
    pub commands: Vec<IndexCommand>,
}

/// Orders that tier 2 did not take, and why.
#[derive(Debug, Clone, thiserror::Error, Serialize, Deserialize)]
#[error("{error}")]
pub struct RefusedOrders {
    /// The orders, for another attempt.
    pub orders: Orders,
    /// Why they were not taken.
    pub error: IndexError,
}

/// Tier 2 as the coordinator sees it.
pub trait Tier2Api: Send + Sync {
    /// Compares a signature without storing it.
    ///
    /// # Errors
    /// See [`IndexError`].
    fn probe(&self, signature: &Signature) -> Result<Vec<Pair>, IndexError>;

    /// Looks up the partitions of a signature.
    ///
    /// # Errors
    /// See [`IndexError`].
    fn locate(&self, signature: &Signature) -> Result<PartitionLookup, IndexError>;

    /// The load of each partition.
    ///
    /// # Errors
    /// See [`IndexError`].
    fn load(&self) -> Result<LoadReport, IndexError>;

    /// The number of orders that were handed over and are not yet carried out, as far as this side knows.
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
    /// Hands over orders and returns at once. The caller limits how many are under way. Orders that were handed over
    /// before are ignored. Accepted orders are carried out in their order, however often a node has to be asked.
    ///
    /// # Errors
    /// Gives back what it does not take.
    fn submit(&self, orders: Orders) -> Result<(), RefusedOrders>;

    /// Whether orders of the range that were accepted may be lost, because tier 2 was started anew without the range. Says
    /// so once. The range then has to find out what it is owed.
    fn has_lost(&self, range: RangeId) -> bool {
        let _ = range;
        false
    }
}
