//! The tokens of a source: those that Henzinger, SIGIR 2006, section 2, makes of a page, for policies that are asked to compare these.
//!
//! Every maximal sequence of letters and digits, with the combining marks behind them, is a term, with two exceptions. A URL in the text is broken at slashes and dots, and each
//! piece is a term, whatever else is in it. The URL of an image is a term: on another host the whole URL, on the page's own host the file
//! name alone, so that a mirrored page with its images has the same tokens. Markup separates terms, but for formatting, which is ignored.
//!
//! What the source leaves open is ours. A URL in the text begins with `http://`, `https://`, `ftp://` or `www.` where a letter or
//! digit is behind and none is before it, unless that one is of a script without spaces. It ends before white space, `<`, `>`, a quotation mark or a
//! sign outside of ASCII that is no letter or digit, such as the full stop of a script without spaces, and before punctuation at its end.
//! Terms are cut from text in NFC without default-ignorable characters, so that the signs of other scripts are told from those of ASCII, and then
//! put into the [form](super::form) of words, but for the URLs of images. A file name is what is behind the last slash of the path, with a query, for
//! that tells images apart; a fragment does not. Where the page or its `<base>` has a URL of more than 1,024 bytes, images are taken to be at the root of its
//! host. What is no http, https or file URL, such as an image in the page itself, is no term.
//! Scripts without spaces have no words of their own: what is not separated is one term.

use super::form::{Form, compose};
use super::letter::{Letters, Part};
use super::script::Class;
use doppel_model::{PageUrl, stable_hash64};
use url::{Position, Url};

/// The images of a page.
#[derive(Debug, Default)]
pub(super) struct Images {
    /// Their links, one behind the other.
    links: String,
    /// For each where in the text it is, and where its link ends.
    places: Vec<(usize, usize)>,
}

impl Images {
    /// Begins another page.
    pub(super) fn clear(&mut self) {
        self.links.clear();
        self.places.clear();
    }

    /// Takes the link of an image, before which there is so much text.
    pub(super) fn push(&mut self, link: &str, at: usize) {
        self.links.push_str(link);
        self.places.push((at, self.links.len()));
    }

    /// Where each image is, with its link, in order.
    fn iter(&self) -> impl Iterator<Item = (usize, &str)> {
        let begins = [0].into_iter().chain(self.places.iter().map(|(_, end)| *end));
        self.places.iter().zip(begins).map(|((at, end), begin)| (*at, &self.links[begin..*end]))
    }
}

/// Where links lead from a page.
pub(super) struct LinkResolver {
    page: Url,
    base: Url,
}

/// The longest URL that links of images are resolved against, because each copies it.
const BASE_BYTES: usize = 1_024;

impl LinkResolver {
    /// Those of a page, which are resolved against `base`, or against the root of its host if it is too long. None where that is too long as
    /// well, or either is no URL, which a page URL always is.
    pub(super) fn of(page: &PageUrl, base: &PageUrl) -> Option<Self> {
        let (page, mut base) = (Url::parse(page.as_str()).ok()?, Url::parse(base.as_str()).ok()?);
        if base.as_str().len() > BASE_BYTES {
            base = base.join("/").ok().filter(|root| root.as_str().len() <= BASE_BYTES)?;
        }
        Some(Self { page, base })
    }

    /// Takes the term of an image, if it has one.
    fn image(&self, link: &str, take: impl FnOnce(&str)) {
        // An empty link is none, although it could be resolved.
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

/// Makes these tokens. It reuses its buffers.
#[derive(Debug, Default)]
pub(super) struct SourceTokens {
    hashes: Vec<u64>,
    form: Form,
}

impl SourceTokens {
    /// The hashes of the tokens of a text with images, in order. Images of a page without `links` are left out.
    pub(super) fn tokens(&mut self, text: &[u8], images: &Images, links: Option<&LinkResolver>) -> &[u64] {
        self.hashes.clear();
        let mut from = 0;
        for (at, link) in images.iter() {
            self.text(text.get(from..at).unwrap_or_default());
            from = at;
            links.inspect(|links| links.image(link, |term| self.hashes.push(stable_hash64(term.as_bytes()))));
        }
        self.text(text.get(from..).unwrap_or_default());
        &self.hashes
    }

    fn text(&mut self, text: &[u8]) {
        let text = String::from_utf8_lossy(text);
        let text = compose(&text);
        let mut rest = &*text;
        while let Some((begin, end)) = url(rest) {
            self.words(&rest[..begin]);
            rest[begin..end].split(['/', '.']).for_each(|term| self.term(term));
            rest = &rest[end..];
        }
        self.words(rest);
    }

    /// Takes the terms of a text without a URL.
    fn words(&mut self, text: &str) {
        let letters = Letters::new();
        let mut begin = None;
        for (at, c) in text.char_indices() {
            match (letters.part(c), begin) {
                (Part::Letter, None) => begin = Some(at),
                (Part::Letter | Part::Mark, Some(_)) | (Part::Mark | Part::Other, None) => {}
                (Part::Other, Some(from)) => {
                    self.term(&text[from..at]);
                    begin = None;
                }
            }
        }
        begin.inspect(|from| self.term(&text[*from..]));
    }

    fn term(&mut self, term: &str) {
        let term = self.form.fold(term);
        if !term.is_empty() {
            self.hashes.push(stable_hash64(term.as_bytes()));
        }
    }
}

/// With what URLs in text begin.
const BEGINS: [&str; 4] = ["http://", "https://", "ftp://", "www."];

/// The first URL in a text: where it begins and ends.
fn url(text: &str) -> Option<(usize, usize)> {
    let letters = Letters::new();
    let is_letter = |c: char| letters.part(c) == Part::Letter;
    let mut is_inside_word = false;
    for (at, c) in text.char_indices() {
        if !is_inside_word && matches!(c, 'h' | 'H' | 'f' | 'F' | 'w' | 'W') {
            let rest = &text[at..];
            let behind = BEGINS.into_iter().find_map(|with| {
                let (own, behind) = rest.split_at_checked(with.len())?;
                own.eq_ignore_ascii_case(with).then_some(behind)
            });
            if behind.is_some_and(|behind| behind.starts_with(is_letter)) {
                let ends = |c: char| {
                    c.is_whitespace()
                        || matches!(c, '<' | '>' | '"')
                        || !c.is_ascii() && letters.part(c) == Part::Other
                };
                let url = &rest[..rest.find(ends).unwrap_or(rest.len())];
                return Some((at, at + url.trim_end_matches(is_punctuation).len()));
            }
        }
        is_inside_word = match letters.part(c) {
            Part::Letter => Class::of(c) == Class::Spaced,
            Part::Mark => is_inside_word,
            Part::Other => false,
        };
    }
    None
}

/// What ends a sentence or a bracket rather than a URL.
fn is_punctuation(c: char) -> bool {
    matches!(c, '.' | ',' | ';' | ':' | '!' | '?' | '\'' | ')' | ']' | '}')
}

/// Elements that only format text, and so separate nothing: those of HTML 4 for fonts, and for emphasis.
pub(super) fn is_formatting(element: &[u8]) -> bool {
    matches!(
        element,
        b"b" | b"big" | b"em" | b"font" | b"i" | b"s" | b"small" | b"strike" | b"strong" | b"tt" | b"u"
    )
}
