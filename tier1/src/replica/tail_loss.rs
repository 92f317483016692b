//! Protection against a log that has lost its tail, or that was made anew.
//!
//! Log servers that acknowledge entries before they sync them can lose the last entries in a power failure.
//! Log servers also lose entries when an operator restores an older copy of their directories.
//!
//! | module | responsibility |
//! |---|---|
//! | `verification` | checks whether the log still has the records that the replica has copied |
//! | `put_back` | appends lost records to the log again |

mod put_back;
mod verification;

pub(crate) use put_back::{RecordLookup, look_up_record};
