//! What a bad store can do to the rows of a commit: the mistakes that tests plant.

use doppel_model::{GroupId, PageId};

use crate::key::{self, Kind};
use crate::record::{GroupRecord, decode, encode};
use crate::store::StoreError;

fn is(key: &[u8], kind: Kind) -> bool {
    key.get(2) == Some(&(kind as u8))
}

#[must_use]
pub fn is_outbox_row(key: &[u8]) -> bool {
    is(key, Kind::Outbox)
}

#[must_use]
pub fn is_feed_row(key: &[u8]) -> bool {
    is(key, Kind::Feed)
}

#[must_use]
pub fn is_signature_row(key: &[u8]) -> bool {
    is(key, Kind::Signature)
}

/// The page that a row is the record of.
#[must_use]
pub fn page_of_row(key: &[u8]) -> Option<PageId> {
    key::last_page(key).filter(|_| is(key, Kind::Page))
}

/// The row of a group that merges, with another group to merge into; none for any other row.
///
/// # Errors
/// When the row is damaged.
pub fn redirect_forward(
    key: &[u8],
    value: &[u8],
    other: impl FnOnce(GroupId) -> Option<GroupId>,
) -> Result<Option<Vec<u8>>, StoreError> {
    if !is(key, Kind::Group) {
        return Ok(None);
    }
    let GroupRecord::Forward(mut forward) = decode(key, value)? else { return Ok(None) };
    let group = key::last_number(key).map(GroupId::from_stored);
    let Some(into) = group.filter(|_| !forward.done).and_then(other) else { return Ok(None) };
    forward.into = into;
    encode(&GroupRecord::Forward(forward)).map(Some)
}
