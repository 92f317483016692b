//! A transaction: the changes of several commands that become one atomic commit. It is an overlay over the
//! store.
//!
//! The transaction keeps pages and groups decoded, and encodes each of them once, however many commands
//! change it. A row that one command creates and another deletes is never written.

use std::collections::{BTreeMap, HashMap};

use doppel_contract::CROWDED_REDIRECTS;
use doppel_model::{ClientId, GroupId, PageId, ShardId};
use doppel_protocol::range_owner::EncodedRow;
use serde::de::DeserializeOwned;

use crate::rows::key;
use crate::rows::record::{GroupRecord, PageRecord, SearchState, State, decode, encode};
use crate::storage::store::{Store, StoreError, Write};

/// A page's share of its shard's totals; see [`Txn::finish`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct PageShare {
    pub(crate) status: Option<doppel_contract::Status>,
    pub(crate) redirect: bool,
    pub(crate) content: bool,
    /// Client for which the page is pending; `None` if it is not pending.
    pub(crate) pending: Option<ClientId>,
    pub(crate) deferred: bool,
    pub(crate) unverified: bool,
    /// Whether more than [`CROWDED_REDIRECTS`] redirects end at the page.
    pub(crate) crowded: bool,
}

/// A group's share of its shard's totals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct GroupShare {
    pub(crate) active: bool,
    pub(crate) dirty: bool,
    pub(crate) uncovered: bool,
}

/// A decoded page or group record in the overlay.
struct Slot<T, S> {
    /// The present record; `None` if it does not exist, or was taken out.
    record: Option<T>,
    /// Share of the totals before the transaction.
    before: S,
    /// Whether the store has the record.
    existed: bool,
    /// Whether the transaction has changed the record.
    changed: bool,
}

/// A transaction over a store.
pub(crate) struct Txn<'s> {
    store: &'s dyn Store,
    pages: HashMap<PageId, (ShardId, Slot<PageRecord, PageShare>)>,
    groups: HashMap<GroupId, Slot<GroupRecord, GroupShare>>,
    /// Changes of all other rows; `None` deletes a row.
    rows: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
}

/// The writes of a finished transaction, and the changes of the totals.
pub(crate) struct FinishedTxn {
    pub(crate) writes: Vec<Write>,
    pub(crate) pages: Vec<PageShareChange>,
    pub(crate) groups: Vec<GroupShareChange>,
}

/// Change of a page's share of the totals.
pub(crate) struct PageShareChange {
    pub(crate) page: PageId,
    pub(crate) shard: ShardId,
    pub(crate) before: PageShare,
    pub(crate) after: PageShare,
}

/// Change of a group's share of the totals.
pub(crate) struct GroupShareChange {
    pub(crate) shard: ShardId,
    pub(crate) before: GroupShare,
    pub(crate) after: GroupShare,
}

impl<'s> Txn<'s> {
    pub(crate) fn new(store: &'s dyn Store) -> Self {
        Self { store, pages: HashMap::new(), groups: HashMap::new(), rows: BTreeMap::new() }
    }

    /// Approximate number of rows that the commit will write.
    pub(crate) fn len(&self) -> usize {
        self.pages.len() + self.groups.len() + self.rows.len()
    }

    fn page_slot(
        &mut self,
        shard: ShardId,
        page: PageId,
    ) -> Result<&mut Slot<PageRecord, PageShare>, StoreError> {
        use std::collections::hash_map::Entry;
        Ok(match self.pages.entry(page) {
            Entry::Occupied(slot) => &mut slot.into_mut().1,
            Entry::Vacant(vacant) => {
                let record: Option<PageRecord> = read(self.store, &key::page(shard, page))?;
                let before = share_of_page(page, record.as_ref());
                let existed = record.is_some();
                &mut vacant.insert((shard, Slot { record, before, existed, changed: false })).1
            }
        })
    }

    /// Borrows the record of a page.
    pub(crate) fn page(&mut self, shard: ShardId, page: PageId) -> Result<Option<&PageRecord>, StoreError> {
        Ok(self.page_slot(shard, page)?.record.as_ref())
    }

    /// Takes the record of a page out of the transaction. The caller must put it back or drop it.
    pub(crate) fn take_page(
        &mut self,
        shard: ShardId,
        page: PageId,
    ) -> Result<Option<PageRecord>, StoreError> {
        Ok(self.page_slot(shard, page)?.record.take())
    }

    /// Puts back a record that was taken out and not changed.
    pub(crate) fn return_page(
        &mut self,
        shard: ShardId,
        page: PageId,
        record: PageRecord,
    ) -> Result<(), StoreError> {
        self.page_slot(shard, page)?.record = Some(record);
        Ok(())
    }

    /// Puts a new or changed record.
    pub(crate) fn put_page(
        &mut self,
        shard: ShardId,
        page: PageId,
        record: PageRecord,
    ) -> Result<(), StoreError> {
        let slot = self.page_slot(shard, page)?;
        slot.record = Some(record);
        slot.changed = true;
        Ok(())
    }

    /// Deletes the record of a page.
    pub(crate) fn drop_page(&mut self, shard: ShardId, page: PageId) -> Result<(), StoreError> {
        let slot = self.page_slot(shard, page)?;
        slot.record = None;
        slot.changed = true;
        Ok(())
    }

    fn group_slot(&mut self, group: GroupId) -> Result<&mut Slot<GroupRecord, GroupShare>, StoreError> {
        use std::collections::hash_map::Entry;
        Ok(match self.groups.entry(group) {
            Entry::Occupied(slot) => slot.into_mut(),
            Entry::Vacant(vacant) => {
                let record: Option<GroupRecord> = read(self.store, &key::group(group))?;
                let before = share_of_group(record.as_ref());
                let existed = record.is_some();
                vacant.insert(Slot { record, before, existed, changed: false })
            }
        })
    }

    /// Returns a copy of a group's record.
    pub(crate) fn group(&mut self, group: GroupId) -> Result<Option<GroupRecord>, StoreError> {
        Ok(self.group_slot(group)?.record.clone())
    }

    /// Puts a group's record, or deletes it if `record` is `None`.
    pub(crate) fn put_group(
        &mut self,
        group: GroupId,
        record: Option<GroupRecord>,
    ) -> Result<(), StoreError> {
        let slot = self.group_slot(group)?;
        slot.record = record;
        slot.changed = true;
        Ok(())
    }

    /// Reads and decodes a row that is neither a page nor a group.
    pub(crate) fn get<T: DeserializeOwned>(&self, key: &[u8]) -> Result<Option<T>, StoreError> {
        match self.rows.get(key) {
            Some(Some(bytes)) => decode(key, bytes).map(Some),
            Some(None) => Ok(None),
            None => read(self.store, key),
        }
    }

    /// Reads the bytes of a row that is not an encoded record.
    pub(crate) fn raw(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        match self.rows.get(key) {
            Some(value) => Ok(value.clone()),
            None => self.store.get(key),
        }
    }

    /// Whether a row exists.
    pub(crate) fn has(&self, key: &[u8]) -> Result<bool, StoreError> {
        match self.rows.get(key) {
            Some(value) => Ok(value.is_some()),
            None => Ok(self.store.get(key)?.is_some()),
        }
    }

    pub(crate) fn put(&mut self, key: Vec<u8>, value: Vec<u8>) {
        self.rows.insert(key, Some(value));
    }

    /// Deletes a row, also from the store.
    pub(crate) fn delete(&mut self, key: Vec<u8>) {
        self.rows.insert(key, None);
    }

    /// Deletes a row. `stored` tells whether the store has the row, or only this transaction.
    pub(crate) fn delete_own(&mut self, key: Vec<u8>, stored: bool) {
        if stored {
            self.rows.insert(key, None);
        } else {
            self.rows.remove(&key);
        }
    }

    /// Reads at most `limit` rows with the prefix `prefix`, in order, beginning after the key `after`.
    pub(crate) fn scan(
        &self,
        prefix: &[u8],
        after: Option<&[u8]>,
        limit: usize,
    ) -> Result<Vec<EncodedRow>, StoreError> {
        let mut from = after.map_or_else(|| prefix.to_vec(), key::after);
        let end = key::after_prefix(prefix);
        let mut rows = Vec::new();
        // The transaction may have deleted rows of a piece, so read pieces until enough rows are left.
        while rows.len() < limit && from < end {
            let mut stored: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
            self.store.range(&from, &end, &mut |key, value| {
                stored.insert(key.to_vec(), value.to_vec());
                stored.len() < limit
            })?;
            let piece_end = match stored.last_key_value() {
                Some((last, _)) if stored.len() >= limit => key::after(last),
                _ => end.clone(),
            };
            for (key, value) in self.rows.range(from..piece_end.clone()) {
                match value {
                    Some(value) => stored.insert(key.clone(), value.clone()),
                    None => stored.remove(key),
                };
            }
            rows.extend(stored);
            from = piece_end;
        }
        rows.truncate(limit);
        Ok(rows)
    }

    /// Returns the writes of the commit in key order, and the changes of each page's and group's share of the
    /// totals.
    ///
    /// # Errors
    /// If a record cannot be encoded.
    pub(crate) fn finish(self) -> Result<FinishedTxn, StoreError> {
        let mut writes: Vec<Write> = self.rows.into_iter().collect();
        let mut pages = Vec::new();
        for (page, (shard, slot)) in self.pages {
            if !slot.changed {
                continue;
            }
            let after = share_of_page(page, slot.record.as_ref());
            if after != slot.before {
                pages.push(PageShareChange { page, shard, before: slot.before, after });
            }
            if slot.existed || slot.record.is_some() {
                writes.push((key::page(shard, page), slot.record.as_ref().map(encode).transpose()?));
            }
        }
        let mut groups = Vec::new();
        for (group, slot) in self.groups {
            if !slot.changed {
                continue;
            }
            let after = share_of_group(slot.record.as_ref());
            if after != slot.before {
                groups.push(GroupShareChange { shard: group.shard(), before: slot.before, after });
            }
            if slot.existed || slot.record.is_some() {
                writes.push((key::group(group), slot.record.as_ref().map(encode).transpose()?));
            }
        }
        writes.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        Ok(FinishedTxn { writes, pages, groups })
    }
}

/// Reads and decodes a record of the store.
pub(crate) fn read<T: DeserializeOwned>(store: &dyn Store, key: &[u8]) -> Result<Option<T>, StoreError> {
    store.get(key)?.map(|bytes| decode(key, &bytes)).transpose()
}

/// The share of a page with this record in its shard's totals.
pub(crate) fn share_of_page(page: PageId, record: Option<&PageRecord>) -> PageShare {
    let Some(record) = record else { return PageShare::default() };
    let content = record.content();
    PageShare {
        status: Some(record.published.status),
        redirect: matches!(record.state, State::Redirect(_)),
        content: content.is_some(),
        pending: content.filter(|c| c.search == SearchState::Pending).map(|c| c.client),
        deferred: content.is_some_and(|c| c.search == SearchState::Deferred),
        unverified: content.is_some_and(|c| c.owes_verdict(page)),
        crowded: record.inbound_redirects > CROWDED_REDIRECTS,
    }
}

/// The share of a group with this record in its shard's totals.
pub(crate) fn share_of_group(record: Option<&GroupRecord>) -> GroupShare {
    match record {
        Some(GroupRecord::Active(group)) => {
            GroupShare { active: true, dirty: group.owes_recomputation(), uncovered: group.owes_cover() }
        }
        Some(GroupRecord::Forward(_)) | None => GroupShare::default(),
    }
}
