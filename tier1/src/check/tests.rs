//! No committed state of the machine is found fault with: its own tests ask after every few commits. That
//! planted faults are found is tested with real directories, in `tests/state.rs` of the repository.

use doppel_protocol::WinnerOrder;

use crate::store::Store;

/// Fails with what a check finds.
pub(crate) fn assert_sound(store: &dyn Store, shards: u16, winners: WinnerOrder) {
    let report = super::check(store, shards, None, winners);
    assert!(report.is_sound(), "{:#?}", report.findings);
}
