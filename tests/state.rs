//! The state of a data directory. `doppel check` finds every planted fault. A backup is the state of the
//! collection at one moment, and a restored directory gives the same answers as the original. The stored
//! format stays compatible.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod harness;

mod state {
    pub(crate) mod collection;
    pub(crate) mod place;

    mod backup;
    mod corruption;
    mod fixture;
    mod increments;
    mod ranges;
    mod restore;
    mod retention;
}
