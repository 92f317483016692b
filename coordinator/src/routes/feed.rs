//! The routes of the tag `feed`: the changes since a cursor, and all live pages at once. An export names the
//! cursor at which the feed continues.

pub(crate) mod changes;
pub(crate) mod export;
