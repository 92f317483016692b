//! A page as a client submits it: the body of `POST /v1/pages`, a line of its NDJSON form, and a line of a
//! JSON-lines crawl on disk.
//!
//! A page is a JSON object with `url`, exactly one of `html`, `text`, `redirect_to` and `dead: true`, and
//! optionally `fetched_at`, `popularity` and `language`. An unknown or repeated field is an error, so that a
//! misspelt date is not silently replaced by the current time. In files, unknown fields are ignored, because
//! files are often written for other purposes. A null value counts as absent. Every [`PageItem`] is valid; no
//! code has to check it again.

use std::borrow::Cow;
use std::fmt;

use serde::de::{self, Deserializer as _, IgnoredAny, MapAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};

use doppel_model::{PageUrl, TimeError, Timestamp, UrlError};

/// Maximum size of `html` or `text`, in bytes of UTF-8 (16 MiB).
pub const PAGE_BYTES_MAX: usize = 16 << 20;

/// Maximum length of an NDJSON line, in bytes: a page of maximum size in which every byte is escaped to two,
/// plus 64 KiB for the other fields.
pub const LINE_BYTES_MAX: usize = 2 * PAGE_BYTES_MAX + (64 << 10);

/// How far `fetched_at` may be ahead of the receiver's clock, in milliseconds (24 hours).
pub const AHEAD_MAX_MS: i64 = Timestamp::DAY_MS;

/// Maximum length of `language`, in bytes: the longest tag that RFC 5646, section 4.4.1, requires
/// implementations to accept.
pub const LANGUAGE_BYTES_MAX: usize = 35;

/// One fetch of a page.
#[derive(Clone, PartialEq, Debug)]
pub struct PageItem {
    /// URL of the page.
    pub url: PageUrl,
    /// Result of the fetch.
    pub body: PageBody,
    /// Time of the fetch. The receiver fills in a missing time.
    pub fetched_at: Option<Timestamp>,
    /// Any measure of popularity, finite and not negative. The winner order compares it in powers of two.
    pub popularity: Option<f64>,
    /// A language tag: letters, digits and hyphens, at most [`LANGUAGE_BYTES_MAX`]. The receiver may detect a
    /// missing one.
    pub language: Option<String>,
}

/// Result of a fetch.
#[derive(Clone, PartialEq, Debug)]
pub enum PageBody {
    /// An HTML document, at most [`PAGE_BYTES_MAX`]. It may be empty.
    Html(String),
    /// Plain text or Markdown, at most [`PAGE_BYTES_MAX`]. It may be empty.
    Text(String),
    /// A redirect to another page, never to the page itself.
    Redirect(PageUrl),
    /// The page no longer exists.
    Dead,
}

impl PageBody {
    /// Creates the body of an XHTML document. A page item has no media type, so an XML declaration marks the
    /// document as XML.
    #[must_use]
    pub fn of_xhtml(document: String) -> Self {
        let begins = document.trim_ascii_start().strip_prefix("<?xml");
        let is_declared = begins.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_whitespace()));
        Self::Html(if is_declared { document } else { format!("<?xml version=\"1.0\"?>{document}") })
    }
}

/// Why a text is not a valid page item: the reason and, if there is one, the field at fault.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct ItemError {
    /// The field name as it was written, shortened to 60 characters.
    pub field: Option<Cow<'static, str>>,
    /// What is wrong with the field or with the item.
    pub reason: ItemReason,
}

/// What is wrong with a page item or with a field of it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ItemReason {
    /// The text is not JSON, or the field has the wrong JSON type.
    #[error("{0}")]
    Json(String),
    /// The field is unknown.
    #[error(
        "unknown field; a page has url, html, text, redirect_to, dead, fetched_at, popularity and language"
    )]
    Unknown,
    /// The field is given twice.
    #[error("given twice")]
    Repeated,
    /// A required field is missing.
    #[error("missing")]
    Missing,
    /// The item has neither `html` nor `text` nor `redirect_to` nor `dead: true`.
    #[error("no content: one of html, text, redirect_to and dead: true is needed")]
    NoBody,
    /// The item has two bodies. The message names the other body field.
    #[error("given beside {0}; a page has exactly one of html, text, redirect_to and dead: true")]
    SecondBody(&'static str),
    /// The page URL is invalid.
    #[error("{0}")]
    Url(#[from] UrlError),
    /// The target of the redirect is the page itself.
    #[error("the page redirects to itself")]
    RedirectToItself,
    /// The time stamp is invalid.
    #[error("{0}")]
    Time(#[from] TimeError),
    /// The date is too far in the future.
    #[error("{0} is more than 24 hours ahead")]
    Ahead(Timestamp),
    /// The content is larger than [`PAGE_BYTES_MAX`].
    #[error("{0} bytes; at most {PAGE_BYTES_MAX} are taken")]
    TooLarge(usize),
    /// The number is negative or not finite.
    #[error("has to be a finite number that is not negative")]
    Popularity,
    /// The language tag is invalid.
    #[error("has to be 1 to {LANGUAGE_BYTES_MAX} letters, digits and hyphens of ASCII")]
    Language,
}

impl fmt::Display for ItemError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(field) = &self.field {
            write!(f, "{field:?}: ")?;
        }
        fmt::Display::fmt(&self.reason, f)
    }
}

impl PageItem {
    /// Parses one JSON object. `fetched_at` may be at most 24 hours after `now`.
    ///
    /// # Errors
    /// If `json` is not exactly one JSON object of the form in the module documentation.
    ///
    /// ```
    /// use doppel_contract::page::{PageBody, PageItem};
    /// use doppel_model::Timestamp;
    ///
    /// let now = Timestamp::from_millis(0);
    /// let item = PageItem::parse(br#"{"url": "https://a.org/", "text": "Hello"}"#, now).unwrap();
    /// assert_eq!(item.body, PageBody::Text("Hello".to_owned()));
    /// let error = PageItem::parse(br#"{"url": "https://a.org/", "txt": ""}"#, now).unwrap_err();
    /// assert!(error.to_string().starts_with(r#""txt": unknown field"#));
    /// ```
    pub fn parse(json: &[u8], now: Timestamp) -> Result<Self, ItemError> {
        Self::read(Fields::default(), json, now)
    }

    /// Like [`parse`](Self::parse), but ignores unknown fields, as for a line of a file.
    ///
    /// # Errors
    /// Fails as [`parse`](Self::parse) does, except for unknown fields.
    pub fn parse_in_file(json: &[u8], now: Timestamp) -> Result<Self, ItemError> {
        Self::read(Fields { ignores_unknown: true, ..Fields::default() }, json, now)
    }

    fn read(mut fields: Fields, json: &[u8], now: Timestamp) -> Result<Self, ItemError> {
        let mut json = serde_json::Deserializer::from_slice(json);
        match json.deserialize_map(&mut fields).and_then(|()| json.end()) {
            Ok(()) => fields.check(now),
            Err(error) => {
                let reason = fields.refused.unwrap_or_else(|| ItemReason::json(&error));
                Err(ItemError { field: fields.current, reason })
            }
        }
    }

    /// Appends the item to `out` as a line of NDJSON, including the line feed.
    pub fn to_json_line(&self, out: &mut Vec<u8>) {
        serde_json::to_writer(&mut *out, self).expect("strings and numbers always serialise into memory");
        out.push(b'\n');
    }
}

impl Serialize for PageItem {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("url", &self.url)?;
        if let Some(date) = self.fetched_at {
            map.serialize_entry("fetched_at", &format_args!("{date}"))?;
        }
        if let Some(popularity) = self.popularity {
            map.serialize_entry("popularity", &popularity)?;
        }
        if let Some(language) = &self.language {
            map.serialize_entry("language", language)?;
        }
        match &self.body {
            PageBody::Html(html) => map.serialize_entry("html", html)?,
            PageBody::Text(text) => map.serialize_entry("text", text)?,
            PageBody::Redirect(target) => map.serialize_entry("redirect_to", target)?,
            PageBody::Dead => map.serialize_entry("dead", &true)?,
        }
        map.end()
    }
}

/// The fields as given in the JSON. They are read in one pass and checked afterwards.
#[derive(Default)]
struct Fields {
    url: Slot<String>,
    html: Slot<String>,
    text: Slot<String>,
    redirect_to: Slot<String>,
    dead: Slot<bool>,
    fetched_at: Slot<String>,
    popularity: Slot<f64>,
    language: Slot<String>,
    /// Whether unknown fields are ignored.
    ignores_unknown: bool,
    /// The field that is being read. If reading fails, this field is at fault.
    current: Option<Cow<'static, str>>,
    /// The reason for an error that this module raises through the JSON library.
    refused: Option<ItemReason>,
}

/// A field: `None` if absent so far, `Some(None)` if null, otherwise its value.
type Slot<T> = Option<Option<T>>;

/// Reads the value of the current field.
fn read<'de, A: MapAccess<'de>, T: de::Deserialize<'de>>(
    map: &mut A,
    slot: &mut Slot<T>,
    refused: &mut Option<ItemReason>,
) -> Result<(), A::Error> {
    if slot.is_some() {
        *refused = Some(ItemReason::Repeated);
        return Err(de::Error::custom("repeated field"));
    }
    *slot = Some(map.next_value()?);
    Ok(())
}

impl<'de> Visitor<'de> for &mut Fields {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object with the fields of a page")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(Name(name)) = map.next_key()? {
            let field = self.current.insert(name);
            let refused = &mut self.refused;
            match &**field {
                "url" => read(&mut map, &mut self.url, refused),
                "html" => read(&mut map, &mut self.html, refused),
                "text" => read(&mut map, &mut self.text, refused),
                "redirect_to" => read(&mut map, &mut self.redirect_to, refused),
                "dead" => read(&mut map, &mut self.dead, refused),
                "fetched_at" => read(&mut map, &mut self.fetched_at, refused),
                "popularity" => read(&mut map, &mut self.popularity, refused),
                "language" => read(&mut map, &mut self.language, refused),
                _ if self.ignores_unknown => map.next_value::<IgnoredAny>().map(drop),
                _ => {
                    *refused = Some(ItemReason::Unknown);
                    Err(de::Error::custom("unknown field"))
                }
            }?;
            self.current = None;
        }
        Ok(())
    }
}

/// The name of a field. Known names are not allocated.
struct Name(Cow<'static, str>);

impl<'de> de::Deserialize<'de> for Name {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NameVisitor;
        impl Visitor<'_> for NameVisitor {
            type Value = Name;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of a field")
            }

            fn visit_str<E>(self, name: &str) -> Result<Name, E> {
                const KNOWN: [&str; 8] =
                    ["url", "html", "text", "redirect_to", "dead", "fetched_at", "popularity", "language"];
                Ok(Name(match KNOWN.into_iter().find(|known| *known == name) {
                    Some(known) => Cow::Borrowed(known),
                    None => Cow::Owned(name.chars().take(60).collect()),
                }))
            }
        }
        deserializer.deserialize_str(NameVisitor)
    }
}

impl Fields {
    /// Checks the values of the fields and builds the item.
    fn check(self, now: Timestamp) -> Result<PageItem, ItemError> {
        let Some(url) = self.url.flatten() else {
            return Err(blame("url", ItemReason::Missing));
        };
        let url = PageUrl::parse(&url).map_err(|e| blame("url", e.into()))?;

        let dead = self.dead.flatten();
        let mut body = None;
        for (field, given) in [
            ("html", self.html.flatten().map(PageBody::Html)),
            ("text", self.text.flatten().map(PageBody::Text)),
            ("redirect_to", redirect(&url, self.redirect_to.flatten())?),
            ("dead", dead.filter(|dead| *dead).map(|_| PageBody::Dead)),
        ] {
            let Some(given) = given else { continue };
            if let PageBody::Html(content) | PageBody::Text(content) = &given
                && content.len() > PAGE_BYTES_MAX
            {
                return Err(blame(field, ItemReason::TooLarge(content.len())));
            }
            if let Some((first, _)) = body.replace((field, given)) {
                return Err(blame(field, ItemReason::SecondBody(first)));
            }
        }
        let Some((_, body)) = body else {
            let field = dead.map(|_| Cow::Borrowed("dead"));
            return Err(ItemError { field, reason: ItemReason::NoBody });
        };

        let fetched_at = self.fetched_at.flatten().map(|date| fetched_at(&date, now)).transpose()?;
        let popularity = self.popularity.flatten();
        if popularity.is_some_and(|p| !p.is_finite() || p < 0.0) {
            return Err(blame("popularity", ItemReason::Popularity));
        }
        let language = self.language.flatten();
        if language.as_deref().is_some_and(|tag| !is_language(tag)) {
            return Err(blame("language", ItemReason::Language));
        }
        Ok(PageItem { url, body, fetched_at, popularity, language })
    }
}

fn redirect(page: &PageUrl, target: Option<String>) -> Result<Option<PageBody>, ItemError> {
    let Some(target) = target else { return Ok(None) };
    let target = PageUrl::parse(&target).map_err(|e| blame("redirect_to", e.into()))?;
    if target == *page {
        return Err(blame("redirect_to", ItemReason::RedirectToItself));
    }
    Ok(Some(PageBody::Redirect(target)))
}

/// Parses the `fetched_at` of a page.
///
/// # Errors
/// If the text is not a time stamp, or is more than 24 hours ahead of `now`.
pub fn fetched_at(text: &str, now: Timestamp) -> Result<Timestamp, ItemError> {
    let date: Timestamp = text.parse().map_err(|e: TimeError| blame("fetched_at", e.into()))?;
    if date > now.plus_millis(AHEAD_MAX_MS) {
        return Err(blame("fetched_at", ItemReason::Ahead(date)));
    }
    Ok(date)
}

/// Whether `tag` is a valid language tag of a page: 1 to [`LANGUAGE_BYTES_MAX`] letters, digits and hyphens.
#[must_use]
pub fn is_language(tag: &str) -> bool {
    (1..=LANGUAGE_BYTES_MAX).contains(&tag.len())
        && tag.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
}

fn blame(field: &'static str, reason: ItemReason) -> ItemError {
    ItemError { field: Some(Cow::Borrowed(field)), reason }
}

impl ItemReason {
    /// Creates the reason from an error of the JSON library about one line.
    #[must_use]
    pub fn json(error: &serde_json::Error) -> Self {
        Self::Json(json_message(error))
    }
}

/// Returns the library's message without quoted values and without the number of the only line.
fn json_message(error: &serde_json::Error) -> String {
    let message = error.to_string();
    let (reason, _) = message.rsplit_once(" at line ").unwrap_or((&message, ""));
    let reason = match reason {
        _ if reason.ends_with("hex escape") => "a lone surrogate in the place of a character",
        _ if reason.len() > 200 => "a value of another type than the field has",
        _ => reason,
    };
    match error.line() {
        0 | 1 => format!("{reason} at column {}", error.column()),
        line => format!("{reason} at line {line} column {}", error.column()),
    }
}

#[cfg(test)]
mod tests;
