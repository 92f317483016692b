//! The side of tier 1 that tier 2 sees: which contents it has to index, their signatures, and the way of
//! search results back.
//!
//! Tier 2 reads contents and signatures of all ranges. Search results go to the owner of each page: straight
//! to the writer if the range is here, and through a queue if another process owns it ([`deliveries`]), so
//! tier 2 never waits for a process that is away.
//!
//! Invariant: nothing that tier 2 can rebuild is durable here. What the router of the index must not lose are
//! rows of the first range ([`index_state`]).

pub(in crate::service) mod contents;
pub(in crate::service) mod deliveries;
pub(in crate::service) mod index_state;
pub(in crate::service) mod stored_signatures;

use std::sync::Arc;

use crate::service::ownership::OwnedRanges;
use crate::service::ownership::collection::CollectionFacts;
use crate::service::ownership::ranges::RangeRegistry;
use crate::service::questions::rows::RowReader;
use deliveries::Deliveries;

/// Serves tier 2 with contents and signatures, and takes its search results.
pub(in crate::service) struct IndexSide {
    collection: CollectionFacts,
    ranges: Arc<RangeRegistry>,
    rows: RowReader,
    pub(in crate::service) deliveries: Deliveries,
}

impl IndexSide {
    /// Creates the side of a process that tier 2 sees. Results have queues to all ranges if other processes
    /// may own some.
    pub(in crate::service) fn new(owned: &OwnedRanges, rows: RowReader) -> Self {
        let has_others = owned.ranges.has_others();
        let deliveries = Deliveries::new(owned.collection.map.ranges().filter(|_| has_others));
        Self { collection: owned.collection, ranges: Arc::clone(&owned.ranges), rows, deliveries }
    }
}
