//! What a bad store can do to the rows of a commit: the mistakes that tests plant.

use doppel_common::model::{GroupId, PageId};

use crate::key::{self, Kind};
use crate::record::{GroupRecord, LookState, PageRecord, State, decode, encode};
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

/// The page of a page row.
#[must_use]
pub fn page_row_of(key: &[u8]) -> Option<PageId> {
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
    Ok(Some(encode(&GroupRecord::Forward(forward))))
}

/// The row of a page that owes a late look, as if it had been compared; none for any other row.
///
/// # Errors
/// When the row is damaged.
pub fn owed_as_settled(key: &[u8], value: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
    if !is(key, Kind::Page) {
        return Ok(None);
    }
    let mut record: PageRecord = decode(key, value)?;
    let State::Content(state) = &mut record.state else { return Ok(None) };
    if state.look != LookState::Late {
        return Ok(None);
    }
    state.look = LookState::Settled;
    Ok(Some(encode(&record)))
}
