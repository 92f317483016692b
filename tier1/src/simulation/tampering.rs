//! Changes to rows of a commit, as a faulty store would make them. The simulation plants them as mistakes.

use doppel_model::{GroupId, PageId};

use crate::rows::key::{self, RowKind};
use crate::rows::record::{GroupRecord, decode, encode};
use crate::storage::store::StoreError;

#[must_use]
pub fn is_outbox_row(key: &[u8]) -> bool {
    RowKind::Outbox.is_of(key)
}

#[must_use]
pub fn is_feed_row(key: &[u8]) -> bool {
    RowKind::Feed.is_of(key)
}

#[must_use]
pub fn is_signature_row(key: &[u8]) -> bool {
    RowKind::Signature.is_of(key)
}

/// The page whose record is the row with this key.
#[must_use]
pub fn page_of_row(key: &[u8]) -> Option<PageId> {
    key::last_page(key).filter(|_| RowKind::Page.is_of(key))
}

/// Changes the row of a group in use so that it counts a single content. `None` for any other row.
///
/// # Errors
/// If the row is damaged.
pub fn forget_contents(key: &[u8], value: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
    if !RowKind::Group.is_of(key) {
        return Ok(None);
    }
    let GroupRecord::Active(mut group) = decode(key, value)? else { return Ok(None) };
    group.contents_max = 1;
    encode(&GroupRecord::Active(group)).map(Some)
}

/// Changes the row of a group whose merge is unfinished so that it merges into another group. `None` for any
/// other row.
///
/// # Errors
/// If the row is damaged.
pub fn redirect_forward(
    key: &[u8],
    value: &[u8],
    other: impl FnOnce(GroupId) -> Option<GroupId>,
) -> Result<Option<Vec<u8>>, StoreError> {
    if !RowKind::Group.is_of(key) {
        return Ok(None);
    }
    let GroupRecord::Forward(mut forward) = decode(key, value)? else { return Ok(None) };
    let group = key::last_number(key).map(GroupId::from_stored);
    let Some(into) = group.filter(|_| !forward.done).and_then(other) else { return Ok(None) };
    forward.into = into;
    encode(&GroupRecord::Forward(forward)).map(Some)
}
