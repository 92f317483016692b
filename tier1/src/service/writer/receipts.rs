//! The answers of other ranges to posts.

use doppel_model::RangeId;
use doppel_protocol::Tier1Error;
use doppel_protocol::range_owner::{PeerError, Receipt};

use super::RangeWriter;
use crate::storage::store::StoreError;

impl RangeWriter<'_> {
    /// Takes the answer to a post.
    ///
    /// If the two ranges disagree about which messages were sent or applied, and each range has one owner for
    /// good, then their databases were restored to different moments. If another node may own one of the
    /// ranges, the range that knows fewer messages belongs to an ownership that is over.
    pub(super) fn take_receipt(
        &mut self,
        by: RangeId,
        answer: &Result<Receipt, PeerError>,
    ) -> Result<(), Tier1Error> {
        let own = self.owner.id;
        match (self.range.confirmed(by, answer), &self.owner.lease) {
            (Err(StoreError::Apart { behind, .. }), Some(lease)) if behind == own => {
                tracing::warn!(range = own.0, %by, "another range knows messages of a later owner; this ownership ends");
                lease.end();
                Err(self.refusal_of(StoreError::Deposed(own)))
            }
            (Err(StoreError::Apart { .. }), Some(_)) => {
                tracing::warn!(range = own.0, %by, "an earlier owner of another range has answered; the messages are sent again");
                self.range.post_again(by);
                Ok(())
            }
            (confirmed, _) => Ok(confirmed?),
        }
    }
}
