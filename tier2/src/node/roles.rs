//! Which page of a content is compared, and in which order.

use doppel_model::{ContentHash, PageId};

use super::columns::OWED;
use super::tables::{EntryRef, Tables};

/// How a page is searched for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum QueryRole {
    /// It is the first page of its content: it is compared, and linked to the copies.
    First {
        /// Where its content is.
        entry: EntryRef,
        /// The page that was the first one until now, which others may have named.
        before: Option<PageId>,
        /// The query order that the content has had until now.
        earlier: u32,
    },
    /// It is an exact copy of the first page, which was asked to search: it is linked to that page, and not compared.
    Copy(EntryRef),
}

impl Tables {
    /// How a page is searched for in the present pass, and its content's query order; none when it does not have
    /// that content. The first page that searches becomes the first page of its content.
    pub(crate) fn take_role(&mut self, page: PageId, content: ContentHash) -> Option<QueryRole> {
        let entry = self.find(content)?;
        let query_order = self.next_query_order;
        let partition = self.partition_mut(entry);
        let first = partition.columns.page(entry.slot);
        let before = if first == page {
            None
        } else if !partition.has_page(entry.slot, page) {
            return None;
        } else if !partition.columns.is_searched(entry.slot) {
            partition.put_first(entry.slot, page);
            Some(first)
        } else {
            return Some(QueryRole::Copy(entry));
        };
        let earlier = partition.columns.query_order(entry.slot);
        partition.columns.set_query_order(entry.slot, query_order);
        partition.note(entry.slot);
        self.next_query_order += 1;
        Some(QueryRole::First { entry, before, earlier })
    }

    /// Takes a role back, because the search is put off. Other searches of the call may have passed over a content that was never searched for,
    /// because its own search is owed. So it stays owed. Roles are taken back in the opposite order in which they were given.
    pub(crate) fn take_back(&mut self, role: QueryRole) {
        let QueryRole::First { entry, before, earlier } = role else { return };
        let partition = self.partition_mut(entry);
        if let Some(before) = before {
            partition.put_first(entry.slot, before);
        }
        // A content with copies was passed over by nobody, and its first page may owe nothing.
        let owed = if earlier == 0 && before.is_none() { OWED } else { earlier };
        partition.columns.set_query_order(entry.slot, owed);
    }
}
