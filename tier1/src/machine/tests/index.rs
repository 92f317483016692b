//! A small model of tier 2: the partners that its search leaves out, and the centers that it learns.

use std::collections::BTreeMap;

use doppel_model::PageId;

use super::{Random, linked};

/// A content in the index. Insertion sequences order the entries; a center is the insertion sequence of
/// another entry.
struct Entry {
    pages: Vec<PageId>,
    insert_seq: u64,
    center: Center,
    query_order: u64,
    is_center: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum Center {
    Unknown,
    None,
    Entry(u64),
}

/// Findings of a search: partners by insertion sequence, and the centers that it gives to other entries.
pub(super) struct SearchFindings {
    partners: Vec<(u64, u64)>,
    adopted: Vec<(u64, Center)>,
}

/// The index: entries by content.
#[derive(Default)]
pub(super) struct Index {
    entries: BTreeMap<u64, Entry>,
    inserted: u64,
    queried: u64,
}

impl Index {
    pub(super) fn put(&mut self, page: PageId, k: u64) {
        self.inserted += 1;
        let new = || Entry::new(Vec::new(), self.inserted);
        let entry = self.entries.entry(k).or_insert_with(new);
        if !entry.pages.contains(&page) {
            entry.pages.push(page);
        }
    }

    /// Removes a page. Returns the page that is now the first of its content, if the first page has changed.
    /// That page must be searched for again.
    pub(super) fn remove(&mut self, page: PageId, k: u64, random: &mut Random) -> Option<PageId> {
        let entry = self.entries.get_mut(&k)?;
        if entry.pages.first() != Some(&page) {
            entry.pages.retain(|p| *p != page);
            return None;
        }
        entry.pages.remove(0);
        if entry.pages.is_empty() {
            self.entries.remove(&k);
            return None;
        }
        // The entry begins again under another page, chosen at random.
        let at = random.below(entry.pages.len() as u64) as usize;
        entry.pages.swap(0, at);
        self.inserted += 1;
        *entry = Entry::new(std::mem::take(&mut entry.pages), self.inserted);
        entry.pages.first().copied()
    }

    /// Returns whether the page has the content, and so searches in this pass. The first page that searches
    /// becomes the first page of the entry.
    pub(super) fn take_turn(&mut self, page: PageId, k: u64) -> bool {
        let Some(entry) = self.entries.get_mut(&k) else { return false };
        let Some(at) = entry.pages.iter().position(|p| *p == page) else { return false };
        if entry.query_order == 0 {
            entry.pages.swap(0, at);
        }
        if entry.pages[0] == page {
            self.queried += 1;
            entry.query_order = self.queried;
        }
        true
    }

    /// Searches for a page. Returns `None` for a copy, because only the first page of a content is compared.
    pub(super) fn search(&self, page: PageId, k: u64) -> Option<SearchFindings> {
        let own = &self.entries[&k];
        if own.pages[0] != page {
            return None;
        }
        let mut order: Vec<(u64, u64)> =
            self.entries.iter().map(|(k, entry)| (entry.insert_seq, *k)).collect();
        order.sort_unstable();
        let mut found = SearchFindings { partners: Vec::new(), adopted: Vec::new() };
        for (insert_seq, other) in order {
            let entry = &self.entries[&other];
            let later = entry.center == Center::Unknown
                && entry.query_order > own.query_order
                && entry.pages.len() == 1;
            let covered =
                found.partners.iter().any(|(insert_seq, _)| entry.center == Center::Entry(*insert_seq));
            if other == k || !linked(k, other) || !entry.is_center && (later || covered) {
                continue;
            }
            if self.wants_center(entry.center) {
                match found.partners.first() {
                    None if own.insert_seq > insert_seq => {}
                    Some((oldest, o)) if own.insert_seq > *oldest => {
                        let is_linked = linked(*o, other);
                        found
                            .adopted
                            .push((other, if is_linked { Center::Entry(*oldest) } else { Center::None }));
                    }
                    _ => found.adopted.push((other, Center::Entry(own.insert_seq))),
                }
            }
            found.partners.push((insert_seq, other));
        }
        Some(found)
    }

    /// Returns whether an entry needs a center: it has none, or its center has left.
    fn wants_center(&self, center: Center) -> bool {
        match center {
            Center::Unknown => true,
            Center::None => false,
            Center::Entry(insert_seq) => !self.entries.values().any(|entry| entry.insert_seq == insert_seq),
        }
    }

    /// Returns the contents and pages in the result of a search: first the copies, then the partners.
    pub(super) fn named(&self, k: u64, found: Option<&SearchFindings>) -> Vec<(u64, PageId)> {
        let pages = &self.entries[&k].pages;
        let copies = if found.is_some() { &pages[1..] } else { &pages[..1] };
        let partners = found.into_iter().flat_map(|found| &found.partners);
        let partners = partners.map(|(_, other)| (*other, self.entries[other].pages[0]));
        copies.iter().map(|copy| (k, *copy)).chain(partners).collect()
    }

    /// Applies the findings of a search to the entries.
    pub(super) fn learn(&mut self, k: u64, found: &SearchFindings) {
        let own = self.entries[&k].insert_seq;
        let center = match found.partners.first() {
            None => Center::None,
            Some((insert_seq, oldest)) => {
                let older = *insert_seq < own;
                self.entries
                    .entry(if older { *oldest } else { k })
                    .and_modify(|is_center| is_center.is_center = true);
                if older { Center::Entry(*insert_seq) } else { Center::None }
            }
        };
        self.entries.entry(k).and_modify(|entry| entry.center = center);
        for (other, center) in &found.adopted {
            if self.entries.get(other).is_some_and(|entry| self.wants_center(entry.center)) {
                self.entries.entry(*other).and_modify(|entry| entry.center = *center);
            }
        }
    }
}

impl Entry {
    /// Creates an entry about which no search has learnt anything.
    fn new(pages: Vec<PageId>, insert_seq: u64) -> Self {
        Self { pages, insert_seq, center: Center::Unknown, query_order: 0, is_center: false }
    }
}
