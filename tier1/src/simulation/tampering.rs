//! What a bad store can do to the rows of a commit: the mistakes that tests plant.

use doppel_model::{GroupId, PageId};

use crate::key::{self, Kind};
use crate::record::{GroupRecord, decode, encode};
use crate::store::StoreError;

#[must_use]
pub fn is_outbox_row(key: &[u8]) -> bool {
    Kind::Outbox.is_of(key)
}

#[must_use]
pub fn is_feed_row(key: &[u8]) -> bool {
    Kind::Feed.is_of(key)
}

#[must_use]
pub fn is_signature_row(key: &[u8]) -> bool {
    Kind::Signature.is_of(key)
}

/// The page that a row is the record of.
#[must_use]
pub fn page_of_row(key: &[u8]) -> Option<PageId> {
    key::last_page(key).filter(|_| Kind::Page.is_of(key))
}

/// The row of a group in use whose members have one content, as it says; none for any other row.
///
/// # Errors
/// When the row is damaged.
pub fn forget_contents(key: &[u8], value: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
    if !Kind::Group.is_of(key) {
        return Ok(None);
    }
    let GroupRecord::Active(mut group) = decode(key, value)? else { return Ok(None) };
    group.contents_max = 1;
    encode(&GroupRecord::Active(group)).map(Some)
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
    if !Kind::Group.is_of(key) {
        return Ok(None);
    }
    let GroupRecord::Forward(mut forward) = decode(key, value)? else { return Ok(None) };
    let group = key::last_number(key).map(GroupId::from_stored);
    let Some(into) = group.filter(|_| !forward.done).and_then(other) else { return Ok(None) };
    forward.into = into;
    encode(&GroupRecord::Forward(forward)).map(Some)
}
