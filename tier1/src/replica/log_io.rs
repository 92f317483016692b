//! The exchange of entries between a replica and the shared log.
//!
//! | module | responsibility |
//! |---|---|
//! | `entries` | appends entries to the log, reads entries from it, and copies records into the database |
//! | `announced` | copies entries that the owner announced, without a request to the log |
//! | `completeness` | determines since when the replica has everything that was acknowledged |

mod announced;
mod completeness;
mod entries;
