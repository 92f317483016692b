//! The identity of a page: its URL.
//!
//! A URL identity is an absolute http, https or file URL without its fragment. Apart from the fragment the
//! URL stays byte for byte as the caller gave it. Doppel never normalises an identity: two spellings of a URL
//! are two pages, and answers return the URL as it was given.
//!
//! The *normalised form* of a URL is the spelling that the WHATWG URL rules produce. The target of a redirect
//! keeps the spelling that the server sent. To find the page of a target, tier 1 tries that spelling first,
//! then the normalised form, and then other pages with the same normalised form.
//!
//! A record without a URL is identified by its file: `record:FILE#ID` or `record:FILE#row=N`. Such an
//! identity includes the part after `#`, and has no host.

mod plain;

use std::fmt;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use plain::is_plain;

use super::PageId;

/// A valid URL identity: an absolute http, https or file URL without a fragment, or the name of a record.
///
/// An identity contains no control characters, and is at most [`BYTES_MAX`](Self::BYTES_MAX) bytes long.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
#[serde(transparent)]
pub struct PageUrl(String);

/// The text is not a valid page URL.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    /// The text is empty.
    #[error("the URL is empty")]
    Empty,
    /// The text is longer than [`PageUrl::BYTES_MAX`].
    #[error("the URL has {0} bytes, the limit is {max}", max = PageUrl::BYTES_MAX)]
    TooLong(usize),
    /// The URL contains NUL, a line break or another control character.
    #[error("the URL has a control character at byte {0}")]
    Control(usize),
    /// The text is not a URL, or is a relative URL.
    #[error("not an absolute URL: {0}")]
    Invalid(String),
    /// The scheme is http or https, but no host follows it.
    #[error("the URL has no host: write // and a host after {0:?}")]
    NoHost(String),
    /// The scheme is not http, https, file or record.
    #[error("the scheme is {0:?}; it must be http, https, file or record")]
    Scheme(String),
    /// The scheme is record, but the rest is not the name of a record.
    #[error("the name of a record is record:FILE#ID or record:FILE#row=N, with a relative FILE")]
    Record,
}

impl PageUrl {
    /// The longest accepted identity, in bytes.
    pub const BYTES_MAX: usize = 8_192;

    /// The scheme with which the name of a record begins.
    pub const RECORD: &str = "record:";

    /// Checks `text` and removes its fragment. The name of a record keeps the part after `#`.
    ///
    /// # Errors
    /// - `text` is empty, too long, or relative.
    /// - `text` contains a control character, or begins or ends with a space.
    /// - The scheme is not http, https, file or record.
    /// - The scheme is http or https, but the URL has no host.
    /// - The scheme is record, but the name of the record is incomplete.
    pub fn parse(text: &str) -> Result<Self, UrlError> {
        Self::identity_bytes(text).map(|bytes| Self(text[..bytes].to_owned()))
    }

    /// Checks `text`, and returns how many of its bytes form the identity. The rest is the fragment.
    fn identity_bytes(text: &str) -> Result<usize, UrlError> {
        if text.is_empty() {
            return Err(UrlError::Empty);
        }
        if text.len() > Self::BYTES_MAX {
            return Err(UrlError::TooLong(text.len()));
        }
        // Control characters are rare, so checking all bytes without an early exit is fastest: the loop
        // vectorises.
        let is_control = |b: u8| b < 0x20 || b == 0x7f;
        if text.bytes().fold(false, |has_control, b| has_control | is_control(b)) {
            return Err(UrlError::Control(text.bytes().position(is_control).unwrap_or_default()));
        }
        let identity = text.split('#').next().unwrap_or(text);
        if text.starts_with(' ') || text.ends_with(' ') || identity.ends_with(' ') {
            return Err(UrlError::Invalid("it begins or ends with a space".to_owned()));
        }
        // The URL rules ask for nothing behind the scheme `record`, so the complete name of a record needs no
        // parsing.
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

    /// Resolves `reference`, absolute or relative, as a link on this page by the WHATWG URL rules.
    ///
    /// # Errors
    /// If the result is not a valid page URL, or is the name of a record. Pages cannot link to records.
    pub fn join(&self, reference: &str) -> Result<Self, UrlError> {
        let base = url::Url::parse(&self.0).map_err(|e| UrlError::Invalid(e.to_string()))?;
        Self::of_link(&base.join(reference).map_err(|e| UrlError::Invalid(e.to_string()))?)
    }

    /// The identity of the page to which a resolved link leads.
    ///
    /// # Errors
    /// If the link is not a valid page URL, or is the name of a record. Pages cannot link to records.
    pub fn of_link(resolved: &url::Url) -> Result<Self, UrlError> {
        if resolved.scheme() == "record" {
            return Err(UrlError::Scheme("record".to_owned()));
        }
        Self::parse(resolved.as_str())
    }

    /// Resolves the target of a redirect like [`join`](Self::join), but an absolute URL keeps its spelling.
    ///
    /// # Errors
    /// If [`join`](Self::join) fails for the target.
    pub fn redirect_target(&self, reference: &str) -> Result<Self, UrlError> {
        Ok(self.join(reference)?.spelled_as(reference))
    }

    /// Replaces the spelling of this URL by that of `reference`, if `reference` is an absolute URL whose
    /// normalised form is this URL. Otherwise the URL stays as it is.
    #[must_use]
    pub fn spelled_as(self, reference: &str) -> Self {
        let respelled = Self::parse(reference).ok().filter(|target| target.normal_id() == self.id());
        respelled.unwrap_or(self)
    }

    /// The normalised form of this URL. `None` if the URL is in its normalised form already, is the name of a
    /// record, or has a normalised form that is not a valid page URL.
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

    /// The page id of the normalised form, which all spellings of a URL share.
    #[must_use]
    pub fn normal_id(&self) -> PageId {
        self.normalised().map_or_else(|| self.id(), |normalised| normalised.id())
    }

    /// Whether both URLs have the same normalised form.
    #[must_use]
    pub fn is_spelling_of(&self, other: &Self) -> bool {
        self == other || self.normal_id() == other.normal_id()
    }

    /// Whether this identity names a record that has no URL.
    #[must_use]
    pub fn is_record(&self) -> bool {
        self.0.starts_with(Self::RECORD)
    }

    /// The identity as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The page id of this identity.
    #[must_use]
    pub fn id(&self) -> PageId {
        PageId::of(&self.0)
    }

    /// The host in lower case and without a port. Empty for file URLs and records.
    #[must_use]
    pub fn host(&self) -> String {
        url::Url::parse(&self.0).ok().and_then(|u| u.host_str().map(str::to_owned)).unwrap_or_default()
    }
}

/// Whether exactly two slashes follow the scheme of an http or https URL, so that a host comes next.
///
/// Like the WHATWG rules this accepts a backslash as a slash. Unlike them it refuses `http:a` and
/// `http:///a`, which they read as `http://a/`.
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
    /// Checks URLs in human-readable formats. URLs in binary records are not checked again: the writer
    /// checked them, and the records carry a checksum.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let is_checked = !deserializer.is_human_readable();
        let text = String::deserialize(deserializer)?;
        if is_checked { Ok(Self(text)) } else { Self::parse(&text).map_err(D::Error::custom) }
    }
}

impl TryFrom<String> for PageUrl {
    type Error = UrlError;

    /// Like [`parse`](PageUrl::parse), but reuses the string instead of copying the text.
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
