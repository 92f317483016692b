//! The seam of tier 2: what tier 1 tells it, what it answers.

use std::sync::Arc;

use doppel_model::signature::Signature;
use doppel_model::{ContentHash, Epoch, PageId, PartitionId, RangeId};
use serde::{Deserialize, Serialize};

use super::index_error::IndexError;
use super::mapping::MappingApi;
use super::report::LoadReport;

/// One order to tier 2. Orders about one page are carried out in the order they are given.
///
/// Tier 2 is a derived index: an order that is lost with the process is found again when the index
/// is compared with tier 1 at the next start.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum IndexCommand {
    /// `page` now has this content. With `search`, compare it as soon as it is stored (G4).
    Put {
        /// The page.
        page: PageId,
        /// Its current signature.
        signature: Arc<Signature>,
        /// Whether, and under which ticket, to compare it.
        search: Option<Search>,
    },
    /// `page` no longer has this content.
    Remove {
        /// The page.
        page: PageId,
        /// The content it had.
        content: ContentHash,
    },
    /// Compare a page whose content was put before (deferred search).
    Search {
        /// The page.
        page: PageId,
        /// The content it is believed to have; another one makes the order void.
        content: ContentHash,
        /// The ticket to answer under.
        search: Search,
    },
}

/// The ticket of a comparison: it comes back with the answer, so that tier 1 knows an old one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Search {
    /// Counted by the page's shard.
    pub ticket: u32,
}

impl Search {
    /// The ticket of an answer that was not asked for: the first of a content's pages has left, and this one
    /// is the first now. Its copies were linked to the one that left, so it is to be compared again.
    pub const AGAIN: u32 = u32::MAX;
}

/// The answer to one search, when every partition that meets the bounding space has answered; or, under
/// [`Search::AGAIN`], the request that the page be searched for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SearchResult {
    /// The page that was compared.
    pub page: PageId,
    /// The content that was compared.
    pub content: ContentHash,
    /// The ticket of the order.
    pub ticket: u32,
    /// Its verified partners. A partner linked to one of them by a pair that was reported earlier,
    /// with that one at its end, may be left out (see `tier2`).
    pub pairs: Vec<Pair>,
}

/// A verified partner: same content, or F by exact comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pair {
    /// A page with the partner content.
    pub page: PageId,
    /// The partner content.
    pub content: ContentHash,
    /// Shingles in common.
    pub shared: u32,
    /// Distinct shingles of the partner.
    pub shingles: u32,
}

/// Where a signature belongs under the present map.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartitionLookup {
    /// Distinct shingles per sub-dictionary.
    pub lengths: Vec<u32>,
    /// The id of the partition that stores it.
    pub home: PartitionId,
    /// The ids of the partitions it is compared in, neighbours in order, the home among them.
    pub probed_partitions: Vec<PartitionId>,
}

/// Orders of one range, in the order of its log.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Orders {
    /// The range.
    pub range: RangeId,
    /// Number of its ownership.
    pub epoch: Epoch,
    /// Index of the first command; the others follow it one by one. Indexes begin at 1 and go on over the epochs.
    pub first: u64,
    /// The commands.
    pub commands: Vec<IndexCommand>,
}

/// Tier 2 as tier 1 and the coordinator see it.
pub trait Tier2Api: Send + Sync {
    /// Hands orders over; returns at once. The caller bounds how many are under way. What was handed over before is
    /// ignored; what was accepted is carried out in its order, however often a node has to be asked.
    ///
    /// # Errors
    /// See [`IndexError`]; so of all calls.
    fn submit(&self, orders: Orders) -> Result<(), IndexError>;

    /// Compares a signature that is not stored.
    ///
    /// # Errors
    /// See [`IndexError`].
    fn probe(&self, signature: &Signature) -> Result<Vec<Pair>, IndexError>;

    /// Where a signature belongs.
    ///
    /// # Errors
    /// See [`IndexError`].
    fn locate(&self, signature: &Signature) -> Result<PartitionLookup, IndexError>;

    /// Load per partition.
    ///
    /// # Errors
    /// See [`IndexError`].
    fn load(&self) -> Result<LoadReport, IndexError>;

    /// Orders handed over and not yet carried out, as far as the caller's side knows.
    fn waiting(&self) -> usize;

    /// The mapping, where there is one that can be changed.
    fn mapping(&self) -> Option<&dyn MappingApi> {
        None
    }

    /// Starts the pass that is being collected without waiting for its count or age.
    ///
    /// # Errors
    /// See [`IndexError`].
    fn flush_batch(&self) -> Result<(), IndexError>;
}
