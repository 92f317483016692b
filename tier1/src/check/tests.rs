//! No committed state of the machine is found fault with: its own tests ask after every few commits. That
//! planted faults are found is tested with real directories, in `tests/state.rs` of the repository.

use doppel_protocol::{RangeMap, WinnerOrder};

use crate::store::{Joined, Store};

/// Fails with what a check finds.
pub(crate) fn assert_sound<S: Store>(stores: &[S], shards: u16, winners: WinnerOrder) {
    let map = RangeMap::new(shards, u16::try_from(stores.len()).unwrap()).unwrap();
    let report = super::check(&Joined::new(map, stores), None, winners);
    assert!(report.is_sound(), "{:#?}", report.findings);
}
