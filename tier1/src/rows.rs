//! Rows of a range: their keys, their records, and the reads and writes of one commit.

pub(crate) mod key;
pub(crate) mod record;
pub(crate) mod totals;
pub(crate) mod txn;
