//! The groups that a collection has at a threshold: connected components of F and redirects.

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap};

use super::join::{self, Similar};
use super::{Collection, MIN_TOKENS, Resolution, Tau};

/// What must hold of a collection at a threshold.
pub(crate) struct Truth<'c> {
    pub(crate) collection: &'c Collection,
    tau: Tau,
    /// Pairs of contents by similarity (both long enough).
    pub(crate) similar: Similar,
    /// Component of each content.
    component: Vec<usize>,
}

impl<'c> Truth<'c> {
    /// Compares every content with every other.
    pub(crate) fn new(collection: &'c Collection, tau: Tau) -> Self {
        let sets: Vec<&[u32]> = collection
            .contents
            .iter()
            .map(|content| match content.tokens {
                MIN_TOKENS.. => content.shingles.as_slice(),
                _ => &[],
            })
            .collect();
        let similar = join::similar(&sets, tau);
        let mut component: Vec<usize> = (0..sets.len()).collect();
        for (a, b) in &similar.above {
            let (a, b) = (root(&component, *a), root(&component, *b));
            component[a.max(b)] = a.min(b);
        }
        let component = (0..sets.len()).map(|c| root(&component, c)).collect();
        Self { collection, tau, similar, component }
    }

    /// The group of a live page, by a number; none if it does not resolve.
    ///
    /// A page without tokens is like no other page, so its group is its own, with its redirects.
    pub(crate) fn group(&self, url: &str) -> Option<(usize, Option<&'c str>)> {
        match self.collection.resolve(url) {
            Resolution::Unresolved(_) => None,
            Resolution::At(at, content) => {
                let empty = self.collection.contents[content].tokens == 0;
                Some((self.component[content], empty.then_some(at)))
            }
        }
    }

    /// Members of every group, live pages and redirects, the single ones too; sorted by URL.
    pub(crate) fn groups(&self) -> Vec<Vec<&'c str>> {
        let mut groups: BTreeMap<_, Vec<&str>> = BTreeMap::new();
        for url in self.collection.pages.keys() {
            if let Some(group) = self.group(url) {
                groups.entry(group).or_default().push(url);
            }
        }
        groups.into_values().collect()
    }

    /// F of two contents.
    pub(crate) fn near_duplicate(&self, a: usize, b: usize) -> bool {
        let [a_content, b_content] = [a, b].map(|c| &self.collection.contents[c]);
        if a == b {
            return a_content.tokens > 0;
        }
        let shortest = a_content.tokens.min(b_content.tokens);
        let (a, b) = (&a_content.shingles, &b_content.shingles);
        let against = self.tau.against(join::shared(a, b), a.len(), b.len());
        shortest >= MIN_TOKENS && against == Ordering::Greater
    }

    /// The Jaccard coefficient of two contents.
    pub(crate) fn jaccard(&self, a: usize, b: usize) -> f64 {
        let [a, b] = [a, b].map(|c| &self.collection.contents[c].shingles);
        let shared = join::shared(a, b);
        shared as f64 / (a.len() + b.len() - shared) as f64
    }

    /// Number of pairs of comparable pages (not contents) with F true.
    pub(crate) fn page_pairs(&self) -> usize {
        let mut pages: HashMap<usize, usize> = HashMap::new();
        for url in self.collection.pages.keys() {
            if let (true, Resolution::At(_, content)) =
                (self.collection.is_comparable(url), self.collection.resolve(url))
            {
                *pages.entry(content).or_default() += 1;
            }
        }
        let same: usize = pages.values().map(|n| n * (n - 1) / 2).sum();
        let similar = self.similar.above.iter();
        same + similar.map(|(a, b)| pages[a] * pages[b]).sum::<usize>()
    }
}

fn root(parents: &[usize], mut at: usize) -> usize {
    while parents[at] != at {
        at = parents[at];
    }
    at
}
