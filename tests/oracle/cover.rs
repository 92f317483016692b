//! Decides which pages are kept: the greedy cover of every group in the winner order, by its definition.

use std::collections::{BTreeMap, BTreeSet};

use doppel_baseline::ContentId;

use super::collection::{Collection, Page};
use super::{Resolution, Truth};

/// Rank of a page in the default winner order, without popularity: the day first seen, static before dynamic,
/// the shorter URL, the time first seen, the URL.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Rank<'c> {
    day: &'c str,
    is_dynamic: bool,
    length: usize,
    first_seen: &'c str,
    url: &'c str,
}

impl<'c> Rank<'c> {
    fn of(collection: &'c Collection, url: &'c str) -> Self {
        let first_seen = &*collection.first_seen[url];
        let day = first_seen.split('T').next().unwrap_or_default();
        Self { day, is_dynamic: url.contains('?'), length: url.len(), first_seen, url }
    }
}

/// For every page with content that is not kept: the kept page that it is a duplicate of.
pub(crate) type Cover<'c> = BTreeMap<&'c str, &'c str>;

impl<'c> Truth<'c> {
    pub(crate) fn cover(&self) -> Cover<'c> {
        let pages = self.collection.pages.iter();
        let mut in_order: Vec<(Rank<'c>, ContentId)> = pages
            .filter_map(|(url, page)| match page {
                Page::Content(content) => Some((Rank::of(self.collection, url), *content)),
                Page::Redirect(_) => None,
            })
            .collect();
        in_order.sort_unstable();
        let near: BTreeSet<(usize, usize)> =
            self.similar.above.iter().flat_map(|(a, b)| [(*a, *b), (*b, *a)]).collect();
        let is_near = |a: ContentId, b: ContentId| {
            if a == b {
                self.collection.contents.get(a).tokens > 0
            } else {
                near.contains(&(a.index(), b.index()))
            }
        };
        // All near-duplicates of a page are in its group, so other groups are irrelevant.
        let mut kept: BTreeMap<_, Vec<(&'c str, ContentId)>> = BTreeMap::new();
        let mut cover = Cover::new();
        for (Rank { url, .. }, content) in in_order {
            let kept = kept.entry(self.group(url)).or_default();
            match kept.iter().find(|(_, earlier)| is_near(content, *earlier)) {
                Some((earlier, _)) => drop(cover.insert(url, *earlier)),
                None => kept.push((url, content)),
            }
        }
        cover
    }

    /// The kept page that a page is a duplicate of. A redirect is a duplicate of its target, if the target is
    /// kept.
    pub(crate) fn duplicate_of(&self, cover: &Cover<'c>, url: &str) -> Option<&'c str> {
        match self.collection.resolve(url) {
            Resolution::At(at, _) => cover.get(at).copied().or((at != url).then_some(at)),
            Resolution::Unresolved(_) => None,
        }
    }
}
