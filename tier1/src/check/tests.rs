//! No committed state of the machine is found fault with, and every planted fault is found.

use crate::store::Store;

/// Fails with what a check finds.
pub(crate) fn assert_sound(store: &dyn Store, shards: u16) {
    let report = super::check(store, shards, None);
    assert!(report.is_sound(), "{:#?}", report.findings);
}
