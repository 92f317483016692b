//! The groups of a collection at a threshold: the connected components of F and redirects.

use std::collections::{BTreeMap, HashMap};

use doppel_baseline::{ContentId, Similar, Tau, components, join, near_duplicate, similar_contents};

use super::{Collection, Resolution};

/// The correct groups of a collection at a threshold.
pub(crate) struct Truth<'c> {
    pub(crate) collection: &'c Collection,
    tau: Tau,
    /// The similar pairs of contents; both are long enough.
    pub(crate) similar: Similar,
    /// Component of each content.
    component: Vec<usize>,
}

impl<'c> Truth<'c> {
    /// Compares every content with every other.
    pub(crate) fn new(collection: &'c Collection, tau: Tau) -> Self {
        let contents = collection.contents.all();
        let similar = similar_contents(contents, tau);
        let component = components(contents.len(), similar.above.iter().copied());
        Self { collection, tau, similar, component }
    }

    /// A number that identifies the group of a live page. `None` if the page does not resolve.
    ///
    /// A page without tokens is similar to no other page, so it has its own group, together with its
    /// redirects.
    pub(crate) fn group(&self, url: &str) -> Option<(usize, Option<&'c str>)> {
        match self.collection.resolve(url) {
            Resolution::Unresolved(_) => None,
            Resolution::At(at, content) => {
                let empty = self.collection.contents.get(content).tokens == 0;
                Some((self.component[content.index()], empty.then_some(at)))
            }
        }
    }

    /// The members of every group, live pages and redirects, sorted by URL. Groups with one member are
    /// included.
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
    pub(crate) fn near_duplicate(&self, a: ContentId, b: ContentId) -> bool {
        let [first, second] = [a, b].map(|content| self.collection.contents.get(content));
        if a == b { first.tokens > 0 } else { near_duplicate(first, second, self.tau) }
    }

    /// The Jaccard coefficient of two contents.
    pub(crate) fn jaccard(&self, a: ContentId, b: ContentId) -> f64 {
        let [a, b] = [a, b].map(|content| &self.collection.contents.get(content).shingles);
        let shared = join::shared(a, b);
        shared as f64 / (a.len() + b.len() - shared) as f64
    }

    /// The number of pairs of comparable pages (not contents) for which F is true.
    pub(crate) fn page_pairs(&self) -> usize {
        let mut pages: HashMap<usize, usize> = HashMap::new();
        for url in self.collection.pages.keys() {
            if let (true, Resolution::At(_, content)) =
                (self.collection.is_comparable(url), self.collection.resolve(url))
            {
                *pages.entry(content.index()).or_default() += 1;
            }
        }
        let same: usize = pages.values().map(|n| n * (n - 1) / 2).sum();
        let similar = self.similar.above.iter();
        same + similar.map(|(a, b)| pages[a] * pages[b]).sum::<usize>()
    }
}
