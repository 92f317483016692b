//! The identity of a page: its URL.
//!
//! A URL identity is an absolute http, https or file URL without its fragment, otherwise byte for byte as
//! given. Nothing is normalised: two spellings are two pages, and answers return the URL as it was given.
//!
//! The *normalised form* of a URL is how the WHATWG URL rules write it. The target of a redirect keeps the spelling in which it was
//! sent; who looks for its page tries that spelling, then the normalised form, then other pages of the same normalised form.
//!
//! A record of a file that has no URL is named `record:FILE#ID` or `record:FILE#row=N`. That is an identity like any
//! other, but what follows `#` belongs to it, and it has no host.

mod plain;

use std::fmt;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use plain::is_plain;

use super::PageId;

/// A valid URL identity: absolute, http, https or file without a fragment, or the name of a record; no control
/// characters.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
#[serde(transparent)]
pub struct PageUrl(String);

/// The text is not a valid page URL.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    /// The text is empty.
    #[error("the URL is empty")]
    Empty,
    /// Longer than [`PageUrl::BYTES_MAX`].
    #[error("the URL has {0} bytes, the limit is {max}", max = PageUrl::BYTES_MAX)]
    TooLong(usize),
    /// The URL contains NUL, a line break or another control character.
    #[error("the URL has a control character at byte {0}")]
    Control(usize),
    /// Not a URL, or a relative one.
    #[error("not an absolute URL: {0}")]
    Invalid(String),
    /// The scheme is http or https, and no host follows it.
    #[error("the URL has no host: {0:?} is to be followed by // and a host")]
    NoHost(String),
    /// The scheme is not http, https, file or record.
    #[error("the scheme is {0:?}; http, https, file and record are taken")]
    Scheme(String),
    /// The scheme is record, but it is no name of a record.
    #[error("the name of a record is record:FILE#ID or record:FILE#row=N, with a relative FILE")]
    Record,
}

impl PageUrl {
    /// The longest accepted identity, in bytes.
    pub const BYTES_MAX: usize = 8_192;

    /// How the name of a record begins.
    pub const RECORD: &str = "record:";

    /// Checks `text` and removes its fragment, unless it is the name of a record.
    ///
    /// # Errors
    /// When `text` is empty, too long, has a control character, is not absolute, has a scheme
    /// other than http, https, file and record, has no host where the scheme is http or https, or is an incomplete name of a
    /// record.
    pub fn parse(text: &str) -> Result<Self, UrlError> {
        Self::identity_bytes(text).map(|bytes| Self(text[..bytes].to_owned()))
    }

    /// Checks a text, and returns how many of its bytes are the identity.
    fn identity_bytes(text: &str) -> Result<usize, UrlError> {
        if text.is_empty() {
            return Err(UrlError::Empty);
        }
        if text.len() > Self::BYTES_MAX {
            return Err(UrlError::TooLong(text.len()));
        }
        // Bytes of which most are none are looked at fastest all at once.
        let is_control = |b: u8| b < 0x20 || b == 0x7f;
        if text.bytes().fold(false, |found, b| found | is_control(b)) {
            return Err(UrlError::Control(text.bytes().position(is_control).unwrap_or_default()));
        }
        let identity = text.split('#').next().unwrap_or(text);
        if text.starts_with(' ') || text.ends_with(' ') || identity.ends_with(' ') {
            return Err(UrlError::Invalid("it begins or ends with a space".to_owned()));
        }
        // A complete name of a record is a URL in any case, because nothing in it but the scheme has a form.
        if let Some(name) = text.strip_prefix(Self::RECORD)
            && let Some(file) = identity.get(Self::RECORD.len()..)
            && !file.is_empty()
            && !file.starts_with('/')
            && name.len() > file.len() + 1
        {
            return Ok(text.len());
        }
        if is_plain(identity) {
            return Ok(identity.len());
        }
        let parsed = url::Url::parse(text).map_err(|e| UrlError::Invalid(e.to_string()))?;
        if parsed.scheme() == "record" {
            return Err(UrlError::Record);
        }
        match parsed.scheme() {
            "http" | "https" if has_host(&text[parsed.scheme().len()..]) => Ok(identity.len()),
            "http" | "https" => Err(UrlError::NoHost(format!("{}:", parsed.scheme()))),
            "file" => Ok(identity.len()),
            other => Err(UrlError::Scheme(other.to_owned())),
        }
    }

    /// Resolves `reference` (absolute or relative) as a link on this page, by the WHATWG URL rules.
    ///
    /// # Errors
    /// When the result is not a valid page URL, or is the name of a record: no page links to one.
    pub fn join(&self, reference: &str) -> Result<Self, UrlError> {
        let base = url::Url::parse(&self.0).map_err(|e| UrlError::Invalid(e.to_string()))?;
        Self::of_link(&base.join(reference).map_err(|e| UrlError::Invalid(e.to_string()))?)
    }

    /// The page to which a resolved link leads.
    ///
    /// # Errors
    /// When it is not a valid page URL, or is the name of a record: no page links to one.
    pub fn of_link(resolved: &url::Url) -> Result<Self, UrlError> {
        if resolved.scheme() == "record" {
            return Err(UrlError::Scheme("record".to_owned()));
        }
        Self::parse(resolved.as_str())
    }

    /// Resolves the target of a redirect as [`join`](Self::join) does. A target that is an absolute URL keeps its spelling.
    ///
    /// # Errors
    /// Like [`join`](Self::join).
    pub fn redirect_target(&self, reference: &str) -> Result<Self, UrlError> {
        Ok(self.join(reference)?.spelled_as(reference))
    }

    /// The same page in the spelling of a reference that is an absolute URL of it, or else as it is.
    #[must_use]
    pub fn spelled_as(self, reference: &str) -> Self {
        let as_sent = Self::parse(reference).ok().filter(|target| target.normal_id() == self.id());
        as_sent.unwrap_or(self)
    }

    /// Its normalised form; none if it is spelled so already, or is the name of a record, which has no other form.
    #[must_use]
    pub fn normalised(&self) -> Option<Self> {
        if self.is_record() || is_plain(&self.0) {
            return None;
        }
        let parsed = url::Url::parse(&self.0).ok()?;
        if parsed.as_str() == self.0 {
            return None;
        }
        Self::parse(parsed.as_str()).ok()
    }

    /// The id of a page that is spelled in its normalised form: all spellings of a URL have it in common.
    #[must_use]
    pub fn normal_id(&self) -> PageId {
        self.normalised().map_or_else(|| self.id(), |normalised| normalised.id())
    }

    /// Whether both have one normalised form.
    #[must_use]
    pub fn is_spelling_of(&self, other: &Self) -> bool {
        self == other || self.normal_id() == other.normal_id()
    }

    /// Whether it names a record of a file, which has no URL.
    #[must_use]
    pub fn is_record(&self) -> bool {
        self.0.starts_with(Self::RECORD)
    }

    /// The identity as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The page's id.
    #[must_use]
    pub fn id(&self) -> PageId {
        PageId::of(&self.0)
    }

    /// The host, lower case and without a port; empty for file URLs and records.
    #[must_use]
    pub fn host(&self) -> String {
        url::Url::parse(&self.0).ok().and_then(|u| u.host_str().map(str::to_owned)).unwrap_or_default()
    }
}

/// Whether what follows the scheme of an http or https URL begins with a host. The WHATWG rules take `http:a` and `http:///a` for
/// `http://a/`, and a backslash for a slash.
fn has_host(after_scheme: &str) -> bool {
    let is_slash = |byte: &u8| matches!(byte, b'/' | b'\\');
    match after_scheme.as_bytes() {
        [b':', first, second, third, ..] => is_slash(first) && is_slash(second) && !is_slash(third),
        _ => false,
    }
}

impl fmt::Display for PageUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for PageUrl {
    /// Checks text from people (human-readable formats). Binary records are not checked again: they were
    /// checked before they were written, and they carry a checksum.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let checked = !deserializer.is_human_readable();
        let text = String::deserialize(deserializer)?;
        if checked { Ok(Self(text)) } else { Self::parse(&text).map_err(D::Error::custom) }
    }
}

impl TryFrom<String> for PageUrl {
    type Error = UrlError;

    /// The same as [`parse`](PageUrl::parse), without a copy.
    fn try_from(mut text: String) -> Result<Self, UrlError> {
        text.truncate(Self::identity_bytes(&text)?);
        Ok(Self(text))
    }
}

impl From<PageUrl> for String {
    fn from(url: PageUrl) -> Self {
        url.0
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The rules of the identity with every text read as a URL, those of records as well.
    fn by_the_parser(text: &str) -> Option<&str> {
        let identity = text.split('#').next().unwrap();
        let is_spaced = text.starts_with(' ') || text.ends_with(' ') || identity.ends_with(' ');
        if is_spaced || text.contains(|c: char| c.is_ascii_control()) {
            return None;
        }
        let parsed = url::Url::parse(text).ok()?;
        match parsed.scheme() {
            "record" => {
                let (file, record) = text.strip_prefix("record:")?.split_once('#')?;
                (!file.is_empty() && !file.starts_with('/') && !record.is_empty()).then_some(text)
            }
            "http" | "https" => {
                let (_, rest) = text.split_once(':')?;
                let slashes = rest.chars().take_while(|c| matches!(c, '/' | '\\')).count();
                (slashes == 2).then_some(identity)
            }
            "file" => Some(identity),
            _ => None,
        }
    }

    proptest! {
        #[test]
        fn names_of_records_are_told_as_the_parser_of_urls_tells_them(
            scheme in "record:|record:|record:|https?:|HTTP:|[a-zA-Z:]{0,7}",
            rest in r"[/\\]{0,4}a?[a/#:?%@.\\\[ \tA=é-]{0,12}|[a-z/]{1,3}#[ -~]{1,6}|.{0,12}",
        ) {
            let text = format!("{scheme}{rest}");
            let url = PageUrl::parse(&text);
            prop_assert_eq!(url.as_ref().ok().map(PageUrl::as_str), by_the_parser(&text), "{}", text);
            prop_assert_eq!(PageUrl::try_from(text), url);
        }
    }

    #[test]
    fn identity_is_byte_for_byte_without_the_fragment() {
        let url = PageUrl::parse("HTTP://Example.org:80/a/../b?x=1#top").unwrap();
        assert_eq!(url.as_str(), "HTTP://Example.org:80/a/../b?x=1");
        assert_eq!(url.host(), "example.org");
        assert_ne!(url.id(), PageUrl::parse("http://example.org/b?x=1").unwrap().id());
    }

    #[test]
    fn rejects_invalid_page_urls() {
        let spaces = [" http://a/", "http://a/ ", "http://a/ #top"];
        for bad in ["", "/a", "ftp://a/", "http://", "http://a/\0", "http://a/\nb", "mailto:a@b"]
            .iter()
            .chain(&spaces)
        {
            assert!(PageUrl::parse(bad).is_err(), "{bad:?}");
        }
        assert!(PageUrl::parse(&format!("http://a/{}", "x".repeat(9000))).is_err());
    }

    #[test]
    fn a_url_without_a_host_is_no_name_of_a_page() {
        let http = ["http:a", "http:/a", "http:///a", "http:a/b?c#d", "HTTP:a", r"http:\a", r"http:\\\a"];
        for bad in http {
            let error = PageUrl::parse(bad).unwrap_err();
            assert_eq!(error, UrlError::NoHost("http:".to_owned()), "{bad}");
            assert_eq!(
                error.to_string(),
                r#"the URL has no host: "http:" is to be followed by // and a host"#
            );
        }
        assert_eq!(PageUrl::parse("https:a.org/"), Err(UrlError::NoHost("https:".to_owned())));
        for bad in ["http:", "http://", "http:///", "http://?q", "http://#f", "http://:80/", "http://u@/"] {
            assert!(PageUrl::parse(bad).is_err(), "{bad}");
        }
        for good in
            ["http://a", "HTTP://a/", r"http:\\a\b", "file:///a", "file:/a", "https://[::1]/", "http://u@a"]
        {
            assert_eq!(PageUrl::parse(good).unwrap().as_str(), good);
        }
    }

    #[test]
    fn spellings_of_a_url_have_one_normalised_form() {
        let spellings = [
            "http://c.example",
            "http://c.example/",
            "HTTP://c.example/",
            "http://C.Example/",
            "http://c.example:80/",
            "http://c.example/.",
            "http://c.example/a/..",
            r"http://c.example\",
            "http://%63.example/",
            "http://c.example/%2e",
        ];
        let url = |text: &str| PageUrl::parse(text).unwrap();
        for spelling in spellings {
            assert_eq!(url(spelling).normal_id(), PageId::of("http://c.example/"), "{spelling}");
            assert!(url(spelling).is_spelling_of(&url(spellings[0])), "{spelling}");
        }
        assert_eq!(url("http://c.example/").normalised(), None);
        // The case of an escape, a dot at the end of the host and an empty query stay.
        for other in
            ["http://c.example/%7E", "http://c.example/%7e", "http://c.example./", "http://c.example/?"]
        {
            assert_eq!(url(other).normalised(), None, "{other}");
        }
        assert_eq!(
            url("http://münchen.example/ü b").normalised(),
            Some(url("http://xn--mnchen-3ya.example/%C3%BC%20b"))
        );
        assert_eq!(url("record:a b#ü").normalised(), None);
        let long = format!("http://a/{}", "ü".repeat(4_000));
        assert_eq!(url(&long).normalised(), None);
        assert_eq!(url(&long).normal_id(), url(&long).id());
    }

    #[test]
    fn the_target_of_a_redirect_keeps_its_spelling_if_it_is_absolute() {
        let page = PageUrl::parse("http://a.org/d/e").unwrap();
        let to = |reference: &str| page.redirect_target(reference).unwrap().as_str().to_owned();
        assert_eq!(to("http://c.example"), "http://c.example");
        assert_eq!(to("HTTP://c.example:80/a/../b#top"), "HTTP://c.example:80/a/../b");
        assert_eq!(to("http://c.example/ü b"), "http://c.example/ü b");
        // What no page can be called is resolved: relative ones, those with a tab, and those of the page's own scheme without a host.
        assert_eq!(to("/ü"), "http://a.org/%C3%BC");
        assert_eq!(to("//C.example"), "http://c.example/");
        assert_eq!(to("http://c.exa\tmple"), "http://c.example/");
        assert_eq!(to("http:f"), "http://a.org/d/f");
        assert_eq!(to("https:f"), "https://f/");
        assert!(page.redirect_target("record:a#1").is_err() && page.redirect_target("mailto:a@b").is_err());
    }

    #[test]
    fn the_name_of_a_record_is_an_identity_with_its_fragment() {
        for name in
            ["record:part-1.jsonl#row=7", "record:2024/a%20b.csv#%3Curn:uuid:1%3E", "record:stdin#a#b"]
        {
            let url = PageUrl::parse(name).unwrap();
            assert_eq!((url.as_str(), url.host().as_str(), url.is_record()), (name, "", true));
        }
        for bad in
            ["record:", "record:a", "record:a#", "record:#1", "record:/a#1", "record://h/a#1", "Record:a#1"]
        {
            assert_eq!(PageUrl::parse(bad), Err(UrlError::Record), "{bad}");
        }
        assert!(PageUrl::parse("record:a#b c ").is_err() && PageUrl::parse("record:a#b\n").is_err());
        let record = PageUrl::parse("record:a#1").unwrap();
        assert!(
            record.join("b").is_err() && record.join("#2").is_err() && record.join("record:a#2").is_err()
        );
        assert_eq!(record.join("https://b.org/x#y").unwrap().as_str(), "https://b.org/x");
        assert!(!PageUrl::parse("https://a.org/record:a").unwrap().is_record());
    }

    #[test]
    fn links_resolve_as_in_a_browser() {
        let page = PageUrl::parse("https://a.org/d/e.html").unwrap();
        assert_eq!(page.join("../f.html#x").unwrap().as_str(), "https://a.org/f.html");
        assert_eq!(page.join("https://b.org").unwrap().as_str(), "https://b.org/");
        assert!(page.join("javascript:void(0)").is_err());
    }
}
