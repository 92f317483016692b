//! The interface of tier 2, the index: its traits for the coordinator and tier 1, and the types in their calls.

mod error;
mod mapping;
mod orders;
mod state;

pub use error::IndexError;
pub use mapping::{MappingApi, RebalanceError};
pub use orders::{
    IndexCommand, IndexOrders, Orders, PartitionLookup, RefusedOrders, Search, SearchResult, Tier2Api,
    VerifiedPartner,
};
pub use state::{INDEX_STATE_BYTES_MAX, IndexState, IndexStateError, IndexStateItem};
