//! Pages of a replay at one moment, and the groups that they must have by the exact baseline.

use std::collections::{BTreeSet, HashMap};

use doppel_baseline::{self as baseline, ContentId, Contents};
use doppel_model::{PageId, PageUrl, Tau, Timestamp};
use doppel_protocol::{Body, Submission, VersionPlace};

/// Maximum number of redirects that are followed from a page.
const HOPS_MAX: usize = 20;

/// Version of a page that a fetch found, as the baseline sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Version {
    Content(ContentId),
    Redirect(PageUrl),
    Dead,
}

/// Current version of a page.
#[derive(Debug)]
struct CurrentVersion {
    at: Timestamp,
    /// Body as the engine stores it. If two versions have equal dates, their bodies decide which version is
    /// later.
    body: Body,
    version: Version,
}

/// Every page with its current version.
#[derive(Debug, Default)]
pub(crate) struct Collection {
    pages: HashMap<PageUrl, CurrentVersion>,
    /// Pages that are spelled in another form than the normalised one, by the id of the normalised form.
    spellings: HashMap<PageId, BTreeSet<PageUrl>>,
}

/// Label of a page by the baseline. Pages with equal labels are in one group.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Label {
    /// Component of the contents, named by one of them.
    Component(ContentId),
    /// Page that is similar to no other: a page without tokens, or a redirect that ends nowhere.
    Alone(PageUrl),
}

impl Collection {
    /// Records a fetch, unless the page already has a version with a later place.
    pub(crate) fn fetch(&mut self, submission: &Submission, version: &Version) -> FetchOutcome {
        let url = &submission.url;
        let new = CurrentVersion {
            at: submission.fetched_at,
            body: submission.body.clone(),
            version: version.clone(),
        };
        match self.pages.get_mut(url) {
            None => {
                self.pages.insert(url.clone(), new);
                if let Some(normalised) = url.normalised() {
                    self.spellings.entry(normalised.id()).or_default().insert(url.clone());
                }
                FetchOutcome::New
            }
            Some(known) if VersionPlace::new(known.at, &known.body) > submission.place() => {
                FetchOutcome::Stale
            }
            Some(known) => FetchOutcome::Replaced(std::mem::replace(known, new).version),
        }
    }

    /// Live pages, in arbitrary order.
    pub(crate) fn live(&self) -> impl Iterator<Item = &PageUrl> {
        self.pages.iter().filter(|(_, known)| known.version != Version::Dead).map(|(url, _)| url)
    }

    /// Finds the page that the target of a redirect stands for. That is the page with the spelling of the
    /// target, else the page with the normalised form, else another page of this form.
    fn target<'c>(&'c self, asker: &PageUrl, target: &'c PageUrl) -> Option<&'c PageUrl> {
        if self.pages.contains_key(target) {
            return Some(target);
        }
        let normalised = target.normalised().unwrap_or_else(|| target.clone());
        let others = || self.spellings.get(&normalised.id())?.iter().find(|url| *url != asker);
        self.pages.get_key_value(&normalised).map(|(url, _)| url).or_else(others)
    }

    /// Follows the redirects of a live page to a page with content. `None` if the redirects end nowhere.
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

    /// Computes the group of every live page. `pairs` are the pairs of all contents for which F is true.
    ///
    /// The groups are the connected components of the contents of live pages. A redirect is in the group of
    /// its target.
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

/// Effect of a fetch on the collection.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum FetchOutcome {
    /// This is the first fetch of the URL.
    New,
    /// The page already has a later version.
    Stale,
    /// The fetch replaced this version.
    Replaced(Version),
}

/// Finds every pair of different contents for which F is true.
pub(crate) fn all_pairs(contents: &Contents, tau: Tau) -> Vec<(ContentId, ContentId)> {
    let pairs = baseline::similar_contents(contents.all(), exact(tau)).above;
    pairs.into_iter().map(|(a, b)| (ContentId::at(a), ContentId::at(b))).collect()
}

/// Whether F is true for two contents.
pub(crate) fn near_duplicate(contents: &Contents, a: ContentId, b: ContentId, tau: Tau) -> bool {
    let (first, second) = (contents.get(a), contents.get(b));
    if a == b { first.tokens > 0 } else { baseline::near_duplicate(first, second, exact(tau)) }
}

/// Converts a threshold of the product to a threshold of the baseline.
fn exact(tau: Tau) -> baseline::Tau {
    let same = baseline::Tau::ratio(tau.numerator(), Tau::DENOMINATOR);
    same.unwrap_or_else(|error| unreachable!("every threshold of the engine is one of the baseline: {error}"))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use doppel_model::signature::Builder;

    use super::*;

    fn url(path: &str) -> PageUrl {
        PageUrl::parse(&format!("http://a/{path}")).unwrap()
    }

    fn fetch(pages: &mut Collection, path: &str, at: i64, version: &Version) -> FetchOutcome {
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
    fn groups_are_components_of_live_pages() {
        let mut contents = Contents::default();
        let [a, b, c] = ["one", "two", "three"].map(|text| contents.intern(text));
        let empty = contents.intern("");
        let mut pages = Collection::default();
        let mut add = |path: &str, at: i64, version: Version| fetch(&mut pages, path, at, &version);
        assert_eq!(add("a", 5, Version::Content(a)), FetchOutcome::New);
        assert_eq!(add("a", 4, Version::Dead), FetchOutcome::Stale);
        assert_eq!(add("a", 5, Version::Redirect(url("c"))), FetchOutcome::Stale);
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
        // The content that linked the two other contents is dead.
        let gone = fetch(&mut pages, "b", 5, &Version::Dead);
        assert_eq!(gone, FetchOutcome::Replaced(Version::Content(b)));
        let groups = pages.groups(&contents, &pairs);
        assert_ne!(groups[&url("a")], groups[&url("c")]);
        assert_eq!(groups[&url("c")], groups[&url("to-c")]);
    }

    #[test]
    fn twenty_redirects_are_followed_and_no_more() {
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
