//! Tier 2 in small: what its search leaves out, and what it learns, as its documentation says.

use std::collections::BTreeMap;

use doppel_model::PageId;

use super::{Random, linked};

/// A content. Births order the entries; a center is the birth of one.
struct Entry {
    pages: Vec<PageId>,
    birth: u64,
    center: Center,
    turn: u64,
    hub: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum Center {
    Unknown,
    None,
    Entry(u64),
}

/// What a look has found: partners by birth, and the centers it gives to others.
pub(super) struct Found {
    partners: Vec<(u64, u64)>,
    adopted: Vec<(u64, Center)>,
}

/// The entries by content.
#[derive(Default)]
pub(super) struct Index {
    entries: BTreeMap<u64, Entry>,
    births: u64,
    turns: u64,
}

impl Index {
    pub(super) fn put(&mut self, page: PageId, k: u64) {
        self.births += 1;
        let new = || Entry::new(Vec::new(), self.births);
        let entry = self.entries.entry(k).or_insert_with(new);
        if !entry.pages.contains(&page) {
            entry.pages.push(page);
        }
    }

    /// Gives the page that is now the first of its content, when another one was before: it is to be compared
    /// again.
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
        // It begins anew under another page, any of them.
        let at = random.below(entry.pages.len() as u64) as usize;
        entry.pages.swap(0, at);
        self.births += 1;
        *entry = Entry::new(std::mem::take(&mut entry.pages), self.births);
        entry.pages.first().copied()
    }

    /// Whether the page has the content, and so looks in this pass. The first that looks becomes the first page.
    pub(super) fn take_turn(&mut self, page: PageId, k: u64) -> bool {
        let Some(entry) = self.entries.get_mut(&k) else { return false };
        let Some(at) = entry.pages.iter().position(|p| *p == page) else { return false };
        if entry.turn == 0 {
            entry.pages.swap(0, at);
        }
        if entry.pages[0] == page {
            self.turns += 1;
            entry.turn = self.turns;
        }
        true
    }

    /// What the look of a page finds. A copy of the first page is not compared.
    pub(super) fn look(&self, page: PageId, k: u64) -> Option<Found> {
        let own = &self.entries[&k];
        if own.pages[0] != page {
            return None;
        }
        let mut order: Vec<(u64, u64)> = self.entries.iter().map(|(k, entry)| (entry.birth, *k)).collect();
        order.sort_unstable();
        let mut found = Found { partners: Vec::new(), adopted: Vec::new() };
        for (birth, other) in order {
            let entry = &self.entries[&other];
            let later = entry.center == Center::Unknown && entry.turn > own.turn && entry.pages.len() == 1;
            let settled = found.partners.iter().any(|(birth, _)| entry.center == Center::Entry(*birth));
            if other == k || !linked(k, other) || !entry.hub && (later || settled) {
                continue;
            }
            if self.wants_center(entry.center) {
                match found.partners.first() {
                    None if own.birth > birth => {}
                    Some((oldest, o)) if own.birth > *oldest => {
                        let tied = linked(*o, other);
                        found.adopted.push((other, if tied { Center::Entry(*oldest) } else { Center::None }));
                    }
                    _ => found.adopted.push((other, Center::Entry(own.birth))),
                }
            }
            found.partners.push((birth, other));
        }
        Some(found)
    }

    /// Whether there is none, or it has left.
    fn wants_center(&self, center: Center) -> bool {
        match center {
            Center::Unknown => true,
            Center::None => false,
            Center::Entry(birth) => !self.entries.values().any(|entry| entry.birth == birth),
        }
    }

    /// The contents and pages that a look answers with: its copies, then the partners.
    pub(super) fn named(&self, k: u64, found: Option<&Found>) -> Vec<(u64, PageId)> {
        let pages = &self.entries[&k].pages;
        let copies = if found.is_some() { &pages[1..] } else { &pages[..1] };
        let partners = found.into_iter().flat_map(|found| &found.partners);
        let partners = partners.map(|(_, other)| (*other, self.entries[other].pages[0]));
        copies.iter().map(|copy| (k, *copy)).chain(partners).collect()
    }

    pub(super) fn learn(&mut self, k: u64, found: &Found) {
        let own = self.entries[&k].birth;
        let center = match found.partners.first() {
            None => Center::None,
            Some((birth, oldest)) => {
                let older = *birth < own;
                self.entries.entry(if older { *oldest } else { k }).and_modify(|hub| hub.hub = true);
                if older { Center::Entry(*birth) } else { Center::None }
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
    /// Nothing was ever said about it.
    fn new(pages: Vec<PageId>, birth: u64) -> Self {
        Self { pages, birth, center: Center::Unknown, turn: 0, hub: false }
    }
}
