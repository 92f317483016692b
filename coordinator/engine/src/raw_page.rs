//! A page sent as the raw body of `POST /v1/pages`, without a JSON envelope.
//!
//! The `Content-Type` header selects the [`PageMedia`] type and may name the charset. The coordinator's
//! module `raw_page_query` reads the other fields from the query string.

use bytes::Bytes;
use doppel_contract::page::{ItemError, ItemReason, PAGE_BYTES_MAX};
use doppel_crawls::{FetchedBody, FetchedPage};
use doppel_model::{PageUrl, RawContent, Timestamp};

/// Media type of a page body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageMedia {
    /// HTML.
    Html,
    /// XHTML, which is read as XML.
    Xhtml,
    /// Plain text or Markdown.
    Text,
}

/// All fields of a raw page except its body.
#[derive(Debug, Clone, PartialEq)]
pub struct RawPageHead {
    /// URL of the page.
    pub url: PageUrl,
    /// Time of the fetch, if the request gives one.
    pub fetched_at: Option<Timestamp>,
    /// Popularity of the page, if the request gives one.
    pub popularity: Option<f64>,
    /// Language of the page, if the request gives one.
    pub language: Option<String>,
    /// Media type of the body.
    pub media: PageMedia,
    /// Charset that the `Content-Type` header names, if any.
    pub charset: Option<String>,
}

/// A raw page: its fields and the unparsed bytes of its body.
#[derive(Debug, Clone, PartialEq)]
pub struct RawPage {
    head: RawPageHead,
    bytes: Bytes,
}

impl RawPageHead {
    /// Adds the body to the fields of the page.
    pub fn with_body(self, bytes: Bytes) -> RawPage {
        RawPage { head: self, bytes }
    }
}

impl RawPage {
    /// Returns the length of the body in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Converts the page to the form of a page read from a crawl.
    ///
    /// # Errors
    /// [`ItemReason::TooLarge`] if the content is larger than [`PAGE_BYTES_MAX`].
    pub fn fetched(self) -> Result<FetchedPage, ItemError> {
        let Self { head: RawPageHead { url, fetched_at, popularity, language, media, charset }, bytes } =
            self;
        let body = match media {
            PageMedia::Html => FetchedBody::Html { bytes: bytes.into(), charset },
            PageMedia::Xhtml => FetchedBody::Xhtml { bytes: bytes.into(), charset },
            PageMedia::Text => FetchedBody::Text(doppel_charset::to_text(&bytes, charset.as_deref())),
        };
        match body.raw_content().map_or(0, RawContent::size) {
            size if size > PAGE_BYTES_MAX => {
                Err(ItemError { field: None, reason: ItemReason::TooLarge(size) })
            }
            _ => Ok(FetchedPage { url, fetched_at, body, popularity, language }),
        }
    }
}
