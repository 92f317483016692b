//! What a data directory is worth: every planted fault is found, a backup is a moment of the collection, a
//! restored directory says what the one that was backed up said, and the stored format is what it was.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod harness;

mod state {
    pub(crate) mod collection;
    pub(crate) mod place;

    mod backup;
    mod corruption;
    mod fixture;
    mod ranges;
    mod restore;
    mod retention;
}
