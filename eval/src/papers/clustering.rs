//! Measurements of the engine after *Clustering and Load Balancing Optimization for Redundant Content Removal*
//! (WWW 2012), the paper that the two tiers of Doppel come from.
//!
//! The modules replay crawls through the engine of the product, in this process and in temporary directories. They
//! compare its groups and answers with the exact baseline (`doppel_baseline`), which shares no code with the engine.
//!
//! | module | responsibility |
//! |---|---|
//! | `accuracy` | errors of the groups while crawls come in |
//! | `incremental` | what incremental work saves as the collection grows |
//! | `mapping` | balance, fan-out and work of mappings to nodes, and the pairs that a mapping loses |
//! | `popular` | pages removed if only the groups of popular pages are looked at |
//! | `served` | whether every reported duplicate is one at that moment |
//! | `agreement` | comparison of two partitions of pages into groups |
//! | `collection` | the pages at one moment, and their groups by the baseline |
//! | `driver` | the engine, fed in batches and read at chosen moments |
//! | `from_scratch` | grouping of a whole collection without earlier results |
//! | `replay` | crawls read once and replayed many times |

pub(crate) mod accuracy;
mod agreement;
mod collection;
mod driver;
mod from_scratch;
pub(crate) mod incremental;
pub(crate) mod mapping;
pub(crate) mod popular;
mod replay;
pub(crate) mod served;
