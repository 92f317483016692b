//! Recognises contents without words by their hash.
//!
//! A record stores only the hash of a content. All pages without words have one hash, unless the policy reads
//! the site. Under such a policy, the hash depends on the site, and this module computes it for each page in
//! question.

use doppel_model::pairwise::Policy;
use doppel_model::signature::Builder;
use doppel_model::{ContentHash, PageUrl};
use doppel_text::{Extraction, Extractor};

/// Recognises contents without words under a policy.
pub(super) enum Wordless {
    /// All contents without words have this hash.
    One(ContentHash),
    /// Every site and form (text or HTML) has its own content without words.
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

    /// Returns true if `content` is the content of a page without words at the URL `page`.
    pub(super) fn has(&mut self, page: &PageUrl, content: ContentHash) -> bool {
        match self {
            Self::One(wordless) => *wordless == content,
            // Under some policies, text and HTML without words have different hashes.
            Self::OfSites(extractor) => {
                extractor.text_at(page, "").signature.content() == content
                    || matches!(extractor.html(page, b"", None), Extraction::Page(html) if html.signature.content() == content)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_without_words_is_recognised_under_every_policy() {
        let urls = ["http://a.example/1", "http://a.example/2", "http://b.test/1"];
        // Policies that read tables compute the same content hash as `jaccard`, so the list leaves them out.
        for policy in
            ["jaccard", "overlap", "content", "projection:tokens=source", "by-site", "copies:site=host"]
        {
            let policy: Policy = policy.parse().unwrap();
            let (mut wordless, mut extractor) = (Wordless::under(policy), Extractor::new(policy));
            for url in urls {
                let url = PageUrl::parse(url).unwrap();
                let mut html = |html: &str| match extractor.html(&url, html.as_bytes(), None) {
                    Extraction::Page(page) => page.signature.content(),
                    Extraction::Redirect(target) => panic!("a redirect to {target}"),
                };
                assert!(wordless.has(&url, html("<p>- <div class=nav>!</div>")), "{policy} {url}");
                assert!(!wordless.has(&url, html("<p>word")), "{policy} {url}");
                assert!(wordless.has(&url, extractor.text_at(&url, " ... ").signature.content()));
                assert!(!wordless.has(&url, extractor.text_at(&url, "word").signature.content()));
            }
        }
    }
}
