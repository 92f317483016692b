//! Commands on the data directory of a collection that no server uses.

pub(crate) mod backup;
pub(crate) mod check;
pub(crate) mod restore;
