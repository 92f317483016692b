//! The identity of a page: its URL.
//!
//! A URL identity is an absolute http, https or file URL without its fragment, otherwise byte for byte as
//! given. Nothing is normalised: two spellings are two pages, and answers return the URL as it was given.
//!
//! A record of a file that has no URL is named `record:FILE#ID` or `record:FILE#row=N`. That is an identity like any
//! other, but what follows `#` belongs to it, and it has no host.

use std::fmt;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

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
    /// other than http, https, file and record, or is an incomplete name of a record.
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
        let parsed = url::Url::parse(text).map_err(|e| UrlError::Invalid(e.to_string()))?;
        if parsed.scheme() == "record" {
            return Err(UrlError::Record);
        }
        if !matches!(parsed.scheme(), "http" | "https" | "file") {
            return Err(UrlError::Scheme(parsed.scheme().to_owned()));
        }
        Ok(identity.len())
    }

    /// Resolves `reference` (absolute or relative) as a link on this page, by the WHATWG URL rules.
    ///
    /// # Errors
    /// When the result is not a valid page URL, or is the name of a record: no page links to one.
    pub fn join(&self, reference: &str) -> Result<Self, UrlError> {
        let base = url::Url::parse(&self.0).map_err(|e| UrlError::Invalid(e.to_string()))?;
        let joined = base.join(reference).map_err(|e| UrlError::Invalid(e.to_string()))?;
        if joined.scheme() == "record" {
            return Err(UrlError::Scheme("record".to_owned()));
        }
        Self::parse(joined.as_str())
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
            "http" | "https" | "file" => Some(identity),
            _ => None,
        }
    }

    proptest! {
        #[test]
        fn names_of_records_are_told_as_the_parser_of_urls_tells_them(
            scheme in "record:|record:|record:|[a-zA-Z:]{0,7}",
            rest in r"[a/#:?%@.\\\[ \tA=é-]{0,12}|[a-z/]{1,3}#[ -~]{1,6}|.{0,12}",
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
