//! Which contents have no words.
//!
//! A record says no more of a content than its hash. That of no words is the same for all pages, unless the policy reads the site: then
//! it is made anew for each page that asks.

use doppel_model::pairwise::Policy;
use doppel_model::signature::Builder;
use doppel_model::{ContentHash, PageUrl};
use doppel_text::{Extracted, Extractor};

/// Tells contents without words under a policy.
pub(super) enum Wordless {
    /// They are all this one.
    One(ContentHash),
    /// There is one for each site and form.
    OfSites(Box<Extractor>),
}

impl Wordless {
    pub(super) fn under(policy: Policy) -> Self {
        if policy.reads_site() {
            Self::OfSites(Box::new(Extractor::new(policy)))
        } else {
            Self::One(Builder::new().content_of(&[]))
        }
    }

    /// Whether a page with this content has no words.
    pub(super) fn has(&mut self, page: &PageUrl, content: ContentHash) -> bool {
        match self {
            Self::One(wordless) => *wordless == content,
            // Text and HTML are two forms to some.
            Self::OfSites(extractor) => {
                extractor.text_at(page, "").signature.content() == content
                    || matches!(extractor.html(page, b"", None), Extracted::Page(html) if html.signature.content() == content)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_without_words_is_told_under_every_policy() {
        let urls = ["http://a.example/1", "http://a.example/2", "http://b.test/1"];
        // Those that read tables make the content of the same tokens as the first.
        for policy in
            ["jaccard", "overlap", "content", "projection:tokens=source", "by-site", "copies:site=host"]
        {
            let policy: Policy = policy.parse().unwrap();
            let (mut wordless, mut extractor) = (Wordless::under(policy), Extractor::new(policy));
            for url in urls {
                let url = PageUrl::parse(url).unwrap();
                let mut html = |html: &str| match extractor.html(&url, html.as_bytes(), None) {
                    Extracted::Page(page) => page.signature.content(),
                    Extracted::Redirect(target) => panic!("a redirect to {target}"),
                };
                assert!(wordless.has(&url, html("<p>- <div class=nav>!</div>")), "{policy} {url}");
                assert!(!wordless.has(&url, html("<p>word")), "{policy} {url}");
                assert!(wordless.has(&url, extractor.text_at(&url, " ... ").signature.content()));
                assert!(!wordless.has(&url, extractor.text_at(&url, "word").signature.content()));
            }
        }
    }
}
