//! An assertion for the tests of the machine: a check finds no fault in any committed state. The tests of
//! planted faults use real directories, and are in `tests/state.rs` of the repository.

use doppel_protocol::{RangeMap, WinnerOrder};

use crate::storage::store::{JoinedStore, Store};

/// Panics if a check finds a violated invariant.
pub(crate) fn assert_sound<S: Store>(stores: &[S], shards: u16, winners: WinnerOrder) {
    let map = RangeMap::new(shards, u16::try_from(stores.len()).unwrap()).unwrap();
    let report = super::check(&JoinedStore::new(map, stores), None, winners);
    assert!(report.is_sound(), "{:#?}", report.findings);
}
