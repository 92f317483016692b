//! Roles: which page of a content is compared, and the order of the searches.

use doppel_model::{ContentHash, PageId};

use super::{EntryRef, IndexTables};
use crate::node::partition::columns::OWED;

/// How a page is searched for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum QueryRole {
    /// The page is the first of its content. It is compared, and linked to the copies.
    First {
        /// The entry of its content.
        entry: EntryRef,
        /// The page that was first until now. Earlier answers may have named it.
        before: Option<PageId>,
        /// The query order that the content had until now.
        earlier: u32,
    },
    /// The page is a copy. The first page of its content is compared instead, and the copy is only linked to
    /// that page.
    Copy(EntryRef),
}

impl IndexTables {
    /// Assigns the role of a page that is searched for in the present pass, and a query order to its content.
    /// `None` if the page does not have the content. If the content was not searched for yet, the page
    /// becomes its first page.
    pub(crate) fn assign_role(&mut self, page: PageId, content: ContentHash) -> Option<QueryRole> {
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
        partition.note_change(entry.slot);
        self.next_query_order += 1;
        Some(QueryRole::First { entry, before, earlier })
    }

    /// Takes a role back if its search is put off. Roles must be taken back in the opposite order of their
    /// assignment.
    ///
    /// Other searches of the same call may have skipped a content that was never searched for, and relied on
    /// its own search. So the content remains owed.
    pub(crate) fn revoke_role(&mut self, role: QueryRole) {
        let QueryRole::First { entry, before, earlier } = role else { return };
        let partition = self.partition_mut(entry);
        if let Some(before) = before {
            partition.put_first(entry.slot, before);
        }
        // No search skips a content with copies, and its first page may owe no search.
        let owed = if earlier == 0 && before.is_none() { OWED } else { earlier };
        partition.columns.set_query_order(entry.slot, owed);
    }
}
