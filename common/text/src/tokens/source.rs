//! Cuts the tokens of Henzinger, SIGIR 2006, section 2, for policies with `tokens=source`. They include URLs
//! and images, which the words of a page do not.
//!
//! Every maximal run of letters and digits, with the combining marks after them, is a term, with two
//! exceptions:
//!
//! - A URL in the text is split at slashes and dots, and each piece is a term, whatever characters are in it.
//! - The URL of an image is a term. If the image is on the host of the page, the term is only its file name,
//!   so that a mirrored page with its images has the same tokens. Otherwise, the term is the whole URL.
//!
//! Markup separates terms, except formatting elements, which are ignored.
//!
//! The paper leaves some details open. Doppel decides them as follows:
//!
//! - A URL in the text begins with `http://`, `https://`, `ftp://` or `www.`, if a letter or digit follows.
//!   The character before it must not be a letter or digit, except of a script without spaces.
//! - A URL ends before white space, `<`, `>`, a quotation mark, or a non-ASCII character that is no letter,
//!   digit or mark, such as an ideographic full stop. Punctuation at its end does not belong to it.
//! - Text is normalised to NFC without default-ignorable characters before terms are cut, so that ASCII
//!   characters are distinguished from similar characters of other scripts. Each term is then put into the
//!   [form](super::form) of words, except the URLs of images.
//! - A file name is the part of the URL after the last slash of the path. It includes the query, which
//!   distinguishes images, but not the fragment.
//! - If the page or its `<base>` has a URL of more than 1,024 bytes, links of images are resolved against the
//!   root of its host.
//! - Only http, https and file URLs of images are terms. An image inside the page (`data:`) has no term.
//! - In scripts without spaces, a run without separators is a single term.

use std::ops::Range;

use super::form::{Form, compose};
use super::letter::{CharCategory, Letters};
use super::script::Class;
use doppel_model::{PageUrl, stable_hash64};
use url::{Position, Url};

/// Images of a page, in page order.
#[derive(Debug, Default)]
pub(crate) struct Images {
    /// Links of all images, concatenated.
    links: String,
    entries: Vec<ImageEntry>,
}

/// Positions of an image and of its link.
#[derive(Debug)]
struct ImageEntry {
    /// Length of the page's text before the image.
    text_at: usize,
    /// End of the link in `Images::links`.
    link_end: usize,
}

impl Images {
    /// Forgets the images of the previous page.
    pub(crate) fn clear(&mut self) {
        self.links.clear();
        self.entries.clear();
    }

    /// Adds an image with its link. `text_at` is the length of the text before the image.
    pub(crate) fn push(&mut self, link: &str, text_at: usize) {
        self.links.push_str(link);
        self.entries.push(ImageEntry { text_at, link_end: self.links.len() });
    }

    /// Returns the text position and the link of each image, in page order.
    fn iter(&self) -> impl Iterator<Item = (usize, &str)> {
        let begins = [0].into_iter().chain(self.entries.iter().map(|entry| entry.link_end));
        let entries = self.entries.iter().zip(begins);
        entries.map(|(entry, begin)| (entry.text_at, &self.links[begin..entry.link_end]))
    }
}

/// Resolves the links of images on a page.
pub(crate) struct LinkResolver {
    page: Url,
    base: Url,
}

/// Maximum length of the URL against which links of images are resolved. Each resolved link copies this URL.
const BASE_BYTES: usize = 1_024;

impl LinkResolver {
    /// Creates a resolver against `base`, or against the root of its host if `base` is too long. `None` if
    /// the root is also too long.
    pub(crate) fn of(page: &PageUrl, base: &PageUrl) -> Option<Self> {
        let (page, mut base) = (Url::parse(page.as_str()).ok()?, Url::parse(base.as_str()).ok()?);
        if base.as_str().len() > BASE_BYTES {
            base = base.join("/").ok().filter(|root| root.as_str().len() <= BASE_BYTES)?;
        }
        Some(Self { page, base })
    }

    /// Calls `take` with the term of the image at `link`, if the image has a term.
    fn image_term(&self, link: &str, take: impl FnOnce(&str)) {
        // An empty link would resolve to the page itself, which is no image.
        let Some(image) =
            Some(link).filter(|link| !link.trim().is_empty()).and_then(|link| self.base.join(link).ok())
        else {
            return;
        };
        let is_on_this_host = image.host() == self.page.host();
        let term = match image.scheme() {
            "http" | "https" | "file" if is_on_this_host => {
                let path = &image[Position::BeforePath..Position::AfterPath];
                let folder = path.rfind('/').map_or(0, |slash| slash + 1);
                &image[Position::BeforePath..Position::AfterQuery][folder..]
            }
            "http" | "https" | "file" => &image[..Position::AfterQuery],
            _ => "",
        };
        if !term.is_empty() {
            take(term);
        }
    }
}

/// Turns text with images into token hashes, with buffers that are reused.
#[derive(Debug, Default)]
pub(crate) struct SourceTokens {
    hashes: Vec<u64>,
    form: Form,
}

impl SourceTokens {
    /// Returns the hashes of the tokens of `text` and `images`, in page order. Without `links`, images have
    /// no tokens.
    pub(crate) fn tokens(&mut self, text: &[u8], images: &Images, links: Option<&LinkResolver>) -> &[u64] {
        self.hashes.clear();
        let mut from = 0;
        for (at, link) in images.iter() {
            self.push_text(text.get(from..at).unwrap_or_default());
            from = at;
            links.inspect(|links| {
                links.image_term(link, |term| self.hashes.push(stable_hash64(term.as_bytes())));
            });
        }
        self.push_text(text.get(from..).unwrap_or_default());
        &self.hashes
    }

    fn push_text(&mut self, text: &[u8]) {
        let text = String::from_utf8_lossy(text);
        let text = compose(&text);
        let mut rest = &*text;
        while let Some(url) = find_url(rest) {
            self.push_words(&rest[..url.start]);
            rest[url.clone()].split(['/', '.']).for_each(|term| self.push_term(term));
            rest = &rest[url.end..];
        }
        self.push_words(rest);
    }

    /// Adds the terms of a text that contains no URL.
    fn push_words(&mut self, text: &str) {
        let letters = Letters::new();
        let mut begin = None;
        for (at, c) in text.char_indices() {
            match (letters.category(c), begin) {
                (CharCategory::Letter, None) => begin = Some(at),
                (CharCategory::Letter | CharCategory::Mark, Some(_))
                | (CharCategory::Mark | CharCategory::Other, None) => {}
                (CharCategory::Other, Some(from)) => {
                    self.push_term(&text[from..at]);
                    begin = None;
                }
            }
        }
        begin.inspect(|from| self.push_term(&text[*from..]));
    }

    fn push_term(&mut self, term: &str) {
        let term = self.form.fold(term);
        if !term.is_empty() {
            self.hashes.push(stable_hash64(term.as_bytes()));
        }
    }
}

/// Prefixes by which a URL in text is recognised, in any case.
const URL_PREFIXES: [&str; 4] = ["http://", "https://", "ftp://", "www."];

/// Returns the range of the first URL in `text`.
fn find_url(text: &str) -> Option<Range<usize>> {
    let letters = Letters::new();
    let is_letter = |c: char| letters.category(c) == CharCategory::Letter;
    let mut is_inside_word = false;
    for (at, c) in text.char_indices() {
        if !is_inside_word && matches!(c, 'h' | 'H' | 'f' | 'F' | 'w' | 'W') {
            let rest = &text[at..];
            let behind = URL_PREFIXES.into_iter().find_map(|with| {
                let (own, behind) = rest.split_at_checked(with.len())?;
                own.eq_ignore_ascii_case(with).then_some(behind)
            });
            if behind.is_some_and(|behind| behind.starts_with(is_letter)) {
                let ends = |c: char| {
                    c.is_whitespace()
                        || matches!(c, '<' | '>' | '"')
                        || !c.is_ascii() && letters.category(c) == CharCategory::Other
                };
                let url = &rest[..rest.find(ends).unwrap_or(rest.len())];
                return Some(at..at + url.trim_end_matches(is_punctuation).len());
            }
        }
        is_inside_word = match letters.category(c) {
            CharCategory::Letter => Class::of(c) == Class::Spaced,
            CharCategory::Mark => is_inside_word,
            CharCategory::Other => false,
        };
    }
    None
}

/// Whether a character at the end of a URL belongs to the sentence around it.
fn is_punctuation(c: char) -> bool {
    matches!(c, '.' | ',' | ';' | ':' | '!' | '?' | '\'' | ')' | ']' | '}')
}

/// Whether an element only formats text and therefore separates no terms: the font elements of HTML 4, and
/// the elements for emphasis.
pub(crate) fn is_formatting(element: &[u8]) -> bool {
    matches!(
        element,
        b"b" | b"big" | b"em" | b"font" | b"i" | b"s" | b"small" | b"strike" | b"strong" | b"tt" | b"u"
    )
}
