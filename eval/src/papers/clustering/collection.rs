//! The pages of a replay as they are at a moment, and the groups that they must have.

use std::collections::{BTreeSet, HashMap};

use doppel_baseline::{self as baseline, ContentId, Contents};
use doppel_model::{PageId, PageUrl, Tau, Timestamp};
use doppel_protocol::{Body, Submission, VersionPlace};

/// The maximum number of redirects that are followed from a page.
const HOPS_MAX: usize = 20;

/// The result of a fetch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Version {
    Content(ContentId),
    Redirect(PageUrl),
    Dead,
}

/// The version that stands for a page.
#[derive(Debug)]
struct Known {
    at: Timestamp,
    /// As the engine has it, for the order of versions with one date.
    body: Body,
    version: Version,
}

/// Every page with its last version.
#[derive(Debug, Default)]
pub(crate) struct Collection {
    pages: HashMap<PageUrl, Known>,
    /// By the id of their normalised form, pages that are spelled otherwise.
    spellings: HashMap<PageId, BTreeSet<PageUrl>>,
}

/// A group by the baseline. Equal labels are the same group.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Label {
    /// The component of this content.
    Component(ContentId),
    /// A page that is similar to no other: without tokens, or a redirect that ends nowhere.
    Alone(PageUrl),
}

impl Collection {
    /// Records a fetch unless one with a later place is known. Returns the version that was replaced.
    pub(crate) fn fetch(&mut self, submission: &Submission, version: &Version) -> Taken {
        let url = &submission.url;
        let new =
            Known { at: submission.fetched_at, body: submission.body.clone(), version: version.clone() };
        match self.pages.get_mut(url) {
            None => {
                self.pages.insert(url.clone(), new);
                if let Some(normalised) = url.normalised() {
                    self.spellings.entry(normalised.id()).or_default().insert(url.clone());
                }
                Taken::New
            }
            Some(known) if VersionPlace::new(known.at, &known.body) > submission.place() => Taken::Stale,
            Some(known) => Taken::Replaced(std::mem::replace(known, new).version),
        }
    }

    /// Live pages, in no order.
    pub(crate) fn live(&self) -> impl Iterator<Item = &PageUrl> {
        self.pages.iter().filter(|(_, known)| known.version != Version::Dead).map(|(url, _)| url)
    }

    /// The page that the target of a redirect stands for: one that is spelled so, or in the normalised form, or else another of that form.
    fn target<'c>(&'c self, asker: &PageUrl, target: &'c PageUrl) -> Option<&'c PageUrl> {
        if self.pages.contains_key(target) {
            return Some(target);
        }
        let normalised = target.normalised().unwrap_or_else(|| target.clone());
        let others = || self.spellings.get(&normalised.id())?.iter().find(|url| *url != asker);
        self.pages.get_key_value(&normalised).map(|(url, _)| url).or_else(others)
    }

    /// The page at the end of a live page's redirects, with its content; none if they end nowhere.
    pub(crate) fn resolve<'c>(&'c self, url: &'c PageUrl) -> Option<(&'c PageUrl, ContentId)> {
        let mut at = url;
        for _ in 0..=HOPS_MAX {
            match &self.pages.get(at)?.version {
                Version::Content(content) => return Some((at, *content)),
                Version::Redirect(target) => at = self.target(at, target)?,
                Version::Dead => return None,
            }
        }
        None
    }

    /// The group of every live page, from the pairs of all contents for which F is true. The groups are the connected
    /// components of the contents that live pages have; a redirect is in the group of its target.
    pub(crate) fn groups(
        &self,
        contents: &Contents,
        pairs: &[(ContentId, ContentId)],
    ) -> HashMap<PageUrl, Label> {
        let mut present = vec![false; contents.all().len()];
        for known in self.pages.values() {
            if let Version::Content(content) = &known.version {
                present[content.index()] = true;
            }
        }
        let links =
            pairs.iter().map(|(a, b)| (a.index(), b.index())).filter(|(a, b)| present[*a] && present[*b]);
        let components = baseline::components(present.len(), links);
        let label = |url: &PageUrl| match self.resolve(url) {
            Some((_, content)) if contents.get(content).tokens > 0 => {
                Label::Component(ContentId::at(components[content.index()]))
            }
            Some((end, _)) => Label::Alone(end.clone()),
            None => Label::Alone(url.clone()),
        };
        self.live().map(|url| (url.clone(), label(url))).collect()
    }
}

/// The outcome of a fetch.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// The first fetch of its URL.
    New,
    /// A later version is known.
    Stale,
    /// It replaced this version.
    Replaced(Version),
}

/// Every pair of different contents for which F is true.
pub(crate) fn all_pairs(contents: &Contents, tau: Tau) -> Vec<(ContentId, ContentId)> {
    let pairs = baseline::similar_contents(contents.all(), exact(tau)).above;
    pairs.into_iter().map(|(a, b)| (ContentId::at(a), ContentId::at(b))).collect()
}

/// F of two contents.
pub(crate) fn near_duplicate(contents: &Contents, a: ContentId, b: ContentId, tau: Tau) -> bool {
    let (first, second) = (contents.get(a), contents.get(b));
    if a == b { first.tokens > 0 } else { baseline::near_duplicate(first, second, exact(tau)) }
}

/// The same threshold for the baseline.
fn exact(tau: Tau) -> baseline::Tau {
    let same = baseline::Tau::ratio(tau.numerator(), Tau::DENOMINATOR);
    same.unwrap_or_else(|error| unreachable!("a threshold is between 0 and 1: {error}"))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use doppel_model::signature::Builder;

    use super::*;

    fn url(path: &str) -> PageUrl {
        PageUrl::parse(&format!("http://a/{path}")).unwrap()
    }

    fn fetch(pages: &mut Collection, path: &str, at: i64, version: &Version) -> Taken {
        let signature = |content: &ContentId| Arc::new(Builder::new().build(&[content.index() as u64]));
        let submission = Submission {
            url: url(path),
            fetched_at: Timestamp::from_millis(at),
            popularity: None,
            language: None,
            canonical: None,
            body: match version {
                Version::Content(content) => Body::Content(signature(content)),
                Version::Redirect(target) => Body::Redirect(target.clone()),
                Version::Dead => Body::Dead,
            },
        };
        pages.fetch(&submission, version)
    }

    #[test]
    fn groups_are_components_of_what_is_live() {
        let mut contents = Contents::default();
        let [a, b, c] = ["one", "two", "three"].map(|text| contents.intern(text));
        let empty = contents.intern("");
        let mut pages = Collection::default();
        let mut add = |path: &str, at: i64, version: Version| fetch(&mut pages, path, at, &version);
        assert_eq!(add("a", 5, Version::Content(a)), Taken::New);
        assert_eq!(add("a", 4, Version::Dead), Taken::Stale);
        assert_eq!(add("a", 5, Version::Redirect(url("c"))), Taken::Stale);
        add("b", 5, Version::Content(b));
        add("c", 5, Version::Content(c));
        add("to-c", 5, Version::Redirect(url("c")));
        add("loop", 5, Version::Redirect(url("loop2")));
        add("loop2", 5, Version::Redirect(url("loop")));
        for path in ["empty", "empty2"] {
            add(path, 5, Version::Content(empty));
        }
        let pairs = [(a, b), (b, c)];
        let groups = pages.groups(&contents, &pairs);
        assert_eq!(groups.len(), 8);
        assert_eq!(groups[&url("a")], groups[&url("to-c")]);
        assert_ne!(groups[&url("loop")], groups[&url("loop2")]);
        assert_ne!(groups[&url("empty")], groups[&url("empty2")]);
        // The content that linked the others is gone.
        let gone = fetch(&mut pages, "b", 5, &Version::Dead);
        assert_eq!(gone, Taken::Replaced(Version::Content(b)));
        let groups = pages.groups(&contents, &pairs);
        assert_ne!(groups[&url("a")], groups[&url("c")]);
        assert_eq!(groups[&url("c")], groups[&url("to-c")]);
    }

    #[test]
    fn twenty_hops_and_no_more() {
        let mut contents = Contents::default();
        let content = contents.intern("end");
        let mut pages = Collection::default();
        fetch(&mut pages, "0", 0, &Version::Content(content));
        for hop in 1..=21 {
            let to = Version::Redirect(url(&(hop - 1).to_string()));
            fetch(&mut pages, &hop.to_string(), 0, &to);
        }
        assert!(pages.resolve(&url("20")).is_some());
        assert!(pages.resolve(&url("21")).is_none());
    }
}
