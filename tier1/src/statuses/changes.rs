//! What the rows of a commit change in the table.

use doppel_model::{GroupId, PageId};

use super::Key;
use super::entry::{Alone, Group, Page};
use super::secret::SecretKey;
use crate::key::{Kind, last_number, last_page};
use crate::record::{GroupRecord, PageRecord, decode};

/// An entry's new value; none when there is to be none.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Change {
    Page(PageId, Option<Page>),
    Group(GroupId, Option<Group>),
}

impl Change {
    pub(super) fn key(&self) -> Key {
        match self {
            Self::Page(id, _) => Key::Page(*id),
            Self::Group(id, _) => Key::Group(*id),
        }
    }

    /// Of a row's new value; none when the table keeps nothing of such rows. A row that cannot be read is left to
    /// whoever reads it.
    pub(super) fn of(secret: SecretKey, key: &[u8], row: Option<&[u8]>) -> Option<Self> {
        match Kind::of(*key.get(2)?)? {
            Kind::Page => {
                let id = last_page(key)?;
                let page = row.and_then(|row| match decode::<PageRecord>(key, row) {
                    Ok(record) => Page::of(secret, id, &record),
                    Err(_) => Some(Page::Alone(Alone::left_to_rows(id))),
                });
                Some(Self::Page(id, page))
            }
            Kind::Group => {
                let id = GroupId::from_stored(last_number(key)?);
                let record = row.and_then(|row| decode::<GroupRecord>(key, row).ok());
                Some(Self::Group(id, record.and_then(|record| Group::of(id, &record))))
            }
            _ => None,
        }
    }
}
