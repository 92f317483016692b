//! Notes properties of the input on which policies differ: markup, and sites. A policy that cannot differ
//! from another one on the input is left out, with the reason, unless the user has named it.

use doppel_crawls::{FetchedBody, FetchedPage};
use doppel_model::PageUrl;
use doppel_model::pairwise::{Policy, Sites};
use doppel_text::is_one_site;

/// Properties of the pages with content that were read so far.
#[derive(Debug, Default)]
pub(super) struct InputProperties {
    has_markup: bool,
    has_pages_without_host: bool,
    /// First URL with a host.
    first: Option<PageUrl>,
    /// Whether a page of another site than that of `first` was read, in the order of [`SITES`].
    has_other_sites: [bool; SITES.len()],
}

/// All definitions of a site.
const SITES: [Sites; 3] = [Sites::Registrable, Sites::Host, Sites::Parent];

impl InputProperties {
    pub(super) fn note(&mut self, page: &FetchedPage) {
        if !page.body.has_content() {
            return;
        }
        self.has_markup |= matches!(page.body, FetchedBody::Html { .. } | FetchedBody::Xhtml { .. });
        if self.has_pages_without_host && self.has_other_sites == [true; SITES.len()] {
            return;
        }
        if page.url.host().is_empty() {
            self.has_pages_without_host = true;
            return;
        }
        let first = self.first.get_or_insert_with(|| page.url.clone());
        for (has_others, sites) in self.has_other_sites.iter_mut().zip(SITES) {
            *has_others = *has_others || !is_one_site(sites, first, &page.url);
        }
    }

    /// Returns why `policy` need not be tried: it would refuse the whole input, or cannot differ on it from
    /// another policy of `tried`. `None` if it must be tried.
    pub(super) fn why_not(&self, policy: Policy, tried: &[Policy]) -> Option<String> {
        if policy.sites().is_some() && self.first.is_none() {
            return Some("no record has a URL with a host, which the policy needs".to_owned());
        }
        let (twin, why) = match policy {
            Policy::Content { tau } if !self.has_markup => {
                let twin = Policy::jaccard(tau);
                (twin, "no record has markup, so the main content is the whole text")
            }
            Policy::BySite { equal, agreeing, site, tokens, .. } if self.is_one_site(site) => {
                (Policy::Combined { equal, agreeing, tokens }, "all records are of one site")
            }
            _ => return None,
        };
        tried.contains(&twin).then(|| format!("{why}: it would give the same groups as {twin}"))
    }

    fn is_one_site(&self, sites: Sites) -> bool {
        let at = SITES.iter().position(|known| *known == sites);
        !self.has_pages_without_host && at.is_some_and(|at| !self.has_other_sites[at])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(url: &str, html: bool) -> FetchedPage {
        let body = match html {
            true => FetchedBody::Html { bytes: b"<p>one two".to_vec(), charset: None },
            false => FetchedBody::Text("one two".to_owned()),
        };
        let url = PageUrl::parse(url).unwrap();
        FetchedPage { url, fetched_at: None, body, popularity: None, language: None }
    }

    fn left_out(pages: &[FetchedPage]) -> Vec<&'static str> {
        let mut properties = InputProperties::default();
        pages.iter().for_each(|page| properties.note(page));
        let all: Vec<Policy> = Policy::all().collect();
        let left_out = all.iter().filter(|policy| properties.why_not(**policy, &all).is_some());
        left_out.map(Policy::name).collect()
    }

    #[test]
    fn policies_that_cannot_differ_are_left_out() {
        let (one, other) = ("http://www.a.example/1", "http://b.example/2");
        assert_eq!(left_out(&[page(one, true), page(other, false)]), [""; 0]);
        assert_eq!(left_out(&[page(one, false), page(other, false)]), ["content"]);
        let xhtml = FetchedBody::Xhtml { bytes: b"<p>one two</p>".to_vec(), charset: None };
        assert_eq!(left_out(&[FetchedPage { body: xhtml, ..page(one, true) }, page(other, false)]), [""; 0]);
        assert_eq!(left_out(&[page(one, true), page("http://a.example/2", true)]), ["by-site"]);
        assert_eq!(left_out(&[page(one, false), page("http://a.example/2", false)]), ["by-site", "content"]);
        // Policies that read the site refuse pages without a host.
        assert_eq!(left_out(&[page(one, true), page("file:///x", true)]), [""; 0]);
        assert_eq!(left_out(&[page("file:///x", true)]), ["by-site", "copies"]);
        let redirect =
            FetchedPage { body: FetchedBody::Redirect(PageUrl::parse(other).unwrap()), ..page(other, true) };
        assert_eq!(left_out(&[page(one, true), redirect]), ["by-site"], "a redirect has no content");
    }

    #[test]
    fn a_policy_is_left_out_only_if_its_twin_is_tried() {
        let mut properties = InputProperties::default();
        properties.note(&page("http://a.example/", false));
        let policy = |text: &str| text.parse::<Policy>().unwrap();
        let why = |of: &str, tried: &str| properties.why_not(policy(of), &[policy(tried)]).is_some();
        assert!(why("content:tau=0.7", "jaccard:tau=0.7"));
        assert!(!why("content", "jaccard:tau=0.7") && !why("content", "jaccard:words=3"));
        assert!(why("by-site:site=host,agreeing=360", "combined:agreeing=360"));
        assert!(!why("by-site", "combined:equal=3") && !why("copies", "jaccard"));
    }
}
