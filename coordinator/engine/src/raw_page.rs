//! One page as it is: the body of `POST /v1/pages` is the page itself.
//!
//! The content type says what the body is, and may name its charset. `raw_page_query` reads the other fields.

use bytes::Bytes;
use doppel_crawls::{Fetched, FetchedBody};
use doppel_model::{PageUrl, RawContent, Timestamp};
use doppel_protocol::page::{ItemError, ItemReason, PAGE_BYTES_MAX};

/// What a page is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Media {
    /// HTML.
    Html,
    /// XHTML, which is read as XML.
    Xhtml,
    /// Plain text or Markdown.
    Text,
}

/// A page before its body is read.
#[derive(Debug, Clone, PartialEq)]
pub struct RawPageHead {
    /// URL of the page.
    pub url: PageUrl,
    /// When the page was fetched, if the request says so.
    pub fetched_at: Option<Timestamp>,
    /// Popularity of the page, if the request says so.
    pub popularity: Option<f64>,
    /// Language of the page, if the request says so.
    pub language: Option<String>,
    /// Kind of the body.
    pub media: Media,
    /// The charset that the content type names.
    pub charset: Option<String>,
}

/// A page as it is, with its fields.
#[derive(Debug, Clone, PartialEq)]
pub struct RawPage {
    head: RawPageHead,
    bytes: Bytes,
}

impl RawPageHead {
    /// The page with its body.
    pub fn with_body(self, bytes: Bytes) -> RawPage {
        RawPage { head: self, bytes }
    }
}

impl RawPage {
    /// The length of the body.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// The page as a crawl has it.
    ///
    /// # Errors
    /// When its text is larger than a page may be.
    pub fn fetched(self) -> Result<Fetched, ItemError> {
        let Self { head: RawPageHead { url, fetched_at, popularity, language, media, charset }, bytes } =
            self;
        let body = match media {
            Media::Html => FetchedBody::Html { bytes: bytes.into(), charset },
            Media::Xhtml => FetchedBody::Xhtml { bytes: bytes.into(), charset },
            Media::Text => FetchedBody::Text(doppel_charset::to_text(&bytes, charset.as_deref())),
        };
        match body.raw_content().map_or(0, RawContent::size) {
            size if size > PAGE_BYTES_MAX => {
                Err(ItemError { field: None, reason: ItemReason::TooLarge(size) })
            }
            _ => Ok(Fetched { url, fetched_at, body, popularity, language }),
        }
    }
}
