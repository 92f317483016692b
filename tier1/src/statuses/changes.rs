//! How the rows of a commit change the entries of the table.

use doppel_model::{GroupId, PageId};

use super::EntryKey;
use super::entry::{GroupEntry, PageEntry, UngroupedPage};
use super::secret::SecretKey;
use crate::rows::key::{RowKind, last_number, last_page};
use crate::rows::record::{GroupRecord, PageRecord, decode};

/// The id of an entry and its new value. `None` removes the entry.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum EntryChange {
    Page(PageId, Option<PageEntry>),
    Group(GroupId, Option<GroupEntry>),
}

impl EntryChange {
    pub(super) fn key(&self) -> EntryKey {
        match self {
            Self::Page(id, _) => EntryKey::Page(*id),
            Self::Group(id, _) => EntryKey::Group(*id),
        }
    }

    /// Derives the change from a row's new value. Returns `None` if the table has no entries for such rows.
    /// An unreadable row is left to readers of the rows.
    pub(super) fn of(secret: SecretKey, key: &[u8], row: Option<&[u8]>) -> Option<Self> {
        match RowKind::of(*key.get(2)?)? {
            RowKind::Page => {
                let id = last_page(key)?;
                let page = row.and_then(|row| match decode::<PageRecord>(key, row) {
                    Ok(record) => PageEntry::of(secret, id, &record),
                    Err(_) => Some(PageEntry::Ungrouped(UngroupedPage::left_to_rows(id))),
                });
                Some(Self::Page(id, page))
            }
            RowKind::Group => {
                let id = GroupId::from_stored(last_number(key)?);
                let record = row.and_then(|row| decode::<GroupRecord>(key, row).ok());
                Some(Self::Group(id, record.and_then(|record| GroupEntry::of(id, &record))))
            }
            _ => None,
        }
    }
}
