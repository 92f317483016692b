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
mod tests;
