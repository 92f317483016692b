//! The status table is filled at a start, beside the service.

use std::sync::atomic::Ordering;

use super::Tier1;
use super::owner::Owner;
use super::rows::PIECE_ROWS;

impl Tier1 {
    /// Fills the table of a range. Rows that cannot be read are left to whoever asks for them.
    pub(super) fn fill_statuses(&self, owner: &Owner) {
        let Some(mut fill) = self.statuses.as_ref().map(|statuses| statuses.fill(owner.id)) else { return };
        loop {
            if self.stopping.load(Ordering::Relaxed) {
                return;
            }
            if let Err(error) = fill.read(&*owner.uncached_store, PIECE_ROWS) {
                tracing::warn!(%error, range = %owner.id, "the status table is incomplete; rows are read instead");
                return;
            }
            if !fill.put() {
                tracing::info!(range = %owner.id, "the status table is complete");
                return;
            }
            std::thread::yield_now();
        }
    }

    /// The rows of a range, to write past the range.
    #[cfg(feature = "simulation")]
    pub(crate) fn store_of(&self, range: doppel_model::RangeId) -> &dyn crate::store::Store {
        &*self.owners[usize::from(range.0)].store
    }
}
