//! Extracts the page from the HTTP response in a WARC record.
//!
//! The response head states what the page is and how its body is encoded. Heads are often wrong about
//! encodings, so the module `codings` decodes the body without trusting them. Content that is neither HTML
//! nor text is skipped, and content that claims to be text but is binary is an error.

use std::borrow::Cow;

use doppel_streams::{HeadError, Limits, Reason, SkipReason};
use encoding_rs::mem::decode_latin1;

use super::codings::Codings;
use crate::FetchedBody;
use crate::charset;
use crate::format::BYTE_ORDER_MARK;
use doppel_model::{PageUrl, UrlError};

/// The longest HTTP head, in bytes.
const HEAD_BYTES_MAX: usize = 64 << 10;
/// The largest number of fields in an HTTP head.
const HEAD_FIELDS_MAX: usize = 256;

/// Why a record gives no page.
pub(super) enum NotAPage {
    /// The record is valid but describes no page.
    Skip(SkipReason),
    /// The record is invalid.
    Bad(Reason),
}

impl From<SkipReason> for NotAPage {
    fn from(skip: SkipReason) -> Self {
        Self::Skip(skip)
    }
}

impl From<Reason> for NotAPage {
    fn from(reason: Reason) -> Self {
        Self::Bad(reason)
    }
}

impl From<HeadError> for NotAPage {
    fn from(error: HeadError) -> Self {
        Self::Bad(error.into())
    }
}

impl From<UrlError> for NotAPage {
    fn from(error: UrlError) -> Self {
        Self::Bad(error.into())
    }
}

/// The result of a fetch, as extracted from a record.
#[derive(Debug)]
pub(super) struct ExtractedBody {
    pub(super) body: FetchedBody,
    /// Whether the encoded body ends early, so that `body` holds only the beginning of the page.
    pub(super) is_cut_off: bool,
}

impl From<FetchedBody> for ExtractedBody {
    fn from(body: FetchedBody) -> Self {
        Self { body, is_cut_off: false }
    }
}

/// The block of a record. Complete, or cut off because it is too large.
#[derive(Clone, Copy)]
pub(super) struct Block<'a> {
    pub(super) bytes: &'a [u8],
    /// Full length of the block, in bytes.
    pub(super) length: u64,
}

impl<'a> Block<'a> {
    fn from(self, start: usize) -> Self {
        Self { bytes: &self.bytes[start..], length: self.length - start as u64 }
    }

    fn complete(self, limits: &Limits) -> Result<&'a [u8], Reason> {
        if self.length == self.bytes.len() as u64 {
            return Ok(self.bytes);
        }
        let max = limits.record_bytes_max as u64;
        Err(Reason::TooLarge { what: "a record", bytes: self.length, max })
    }
}

/// The fields of an HTTP response head that the reader uses.
#[derive(Default)]
struct ResponseHead<'a> {
    status: u16,
    content_type: Option<&'a [u8]>,
    codings: Codings<'a>,
    location: Option<&'a [u8]>,
    /// Offset of the body in the block.
    body: usize,
}

/// Status code of the HTTP response in `block`, if the block contains one.
pub(super) fn status(block: &[u8]) -> Option<u16> {
    ResponseHead::parse(block, &mut Vec::new()).ok().map(|response| response.status)
}

/// Extracts what the HTTP response in `block` says about the page `url`.
pub(super) fn page(url: &PageUrl, block: Block<'_>, limits: &Limits) -> Result<ExtractedBody, NotAPage> {
    ResponseHead::parse(block.bytes, &mut Vec::new())?.page(url, block, limits)
}

/// Extracts the page from a block that is a document of the given Content-Type, without an HTTP head.
pub(super) fn document(
    content_type: Option<&[u8]>,
    block: Block<'_>,
    limits: &Limits,
) -> Result<ExtractedBody, NotAPage> {
    extract_body(content_type, &Codings::default(), block, limits)
}

/// Extracts the page from a body of the given Content-Type and codings.
fn extract_body(
    content_type: Option<&[u8]>,
    codings: &Codings<'_>,
    block: Block<'_>,
    limits: &Limits,
) -> Result<ExtractedBody, NotAPage> {
    if content_type.is_some_and(|content_type| !content_type.trim_ascii().is_empty()) {
        // Check the media type before the size. A video that is too large is skipped; it is not an error.
        media(content_type, &[])?;
    }
    let charset = content_type.and_then(charset_of);
    let decoded = codings.undo(block.complete(limits)?, charset.as_deref(), limits)?;
    let media = media(content_type, &decoded.bytes)?;
    limits.check_page(decoded.bytes.len())?;
    let body = match media {
        Media::Html => FetchedBody::Html { bytes: decoded.bytes.into_owned(), charset },
        Media::Xhtml => FetchedBody::Xhtml { bytes: decoded.bytes.into_owned(), charset },
        Media::Text => {
            let text = charset::decode(&decoded.bytes, charset.as_deref());
            limits.check_page(text.len())?;
            FetchedBody::Text(text)
        }
    };
    charset::check(&body)?;
    Ok(ExtractedBody { body, is_cut_off: decoded.is_cut_off })
}

impl<'a> ResponseHead<'a> {
    /// Parses the response head at the beginning of `block`. `scratch` holds the head if it must be
    /// rewritten.
    fn parse(block: &'a [u8], scratch: &'a mut Vec<u8>) -> Result<Self, Reason> {
        let stored = &block[..block.len().min(HEAD_BYTES_MAX)];
        let head = as_version_1(stored, scratch);
        let mut fields = [httparse::EMPTY_HEADER; HEAD_FIELDS_MAX];
        let mut parsed = httparse::Response::new(&mut fields);
        let read = httparse::ParserConfig::default()
            .allow_spaces_after_header_name_in_responses(true)
            .allow_obsolete_multiline_headers_in_responses(true)
            .allow_multiple_spaces_in_response_status_delimiters(true)
            .ignore_invalid_headers_in_responses(true)
            .parse_response(&mut parsed, head);
        let end = match read {
            Ok(httparse::Status::Complete(end)) => end,
            Ok(httparse::Status::Partial) => return Err(Reason::Http("it does not end".to_owned())),
            Err(error) => return Err(Reason::Http(error.to_string())),
        };
        let mut response = Self { status: parsed.code.unwrap_or(0), ..Self::default() };
        response.body = end + stored.len() - head.len();
        for field in parsed.headers {
            let slot = match field.name {
                name if name.eq_ignore_ascii_case("content-type") => &mut response.content_type,
                name if name.eq_ignore_ascii_case("content-encoding") => {
                    response.codings.content.push(field.value);
                    continue;
                }
                name if name.eq_ignore_ascii_case("transfer-encoding") => {
                    response.codings.transfer.push(field.value);
                    continue;
                }
                name if name.eq_ignore_ascii_case("location") => &mut response.location,
                _ => continue,
            };
            slot.get_or_insert(field.value);
        }
        Ok(response)
    }

    fn page(&self, url: &PageUrl, block: Block<'_>, limits: &Limits) -> Result<ExtractedBody, NotAPage> {
        match self.status {
            200 => extract_body(self.content_type, &self.codings, block.from(self.body), limits),
            301 | 302 | 303 | 307 | 308 => Ok(self.redirect(url)?.into()),
            404 | 410 => Ok(FetchedBody::Dead.into()),
            other => Err(SkipReason::Status(other).into()),
        }
    }

    fn redirect(&self, url: &PageUrl) -> Result<FetchedBody, SkipReason> {
        let location = self.location.unwrap_or_default().trim_ascii();
        if location.is_empty() {
            return Err(SkipReason::NoLocation);
        }
        let location = std::str::from_utf8(location).map_or_else(|_| decode_latin1(location), Cow::Borrowed);
        match url.redirect_target(&location) {
            // Compare the target as the server sent it, and in its normalised form.
            Ok(target) if target == *url || target.normalised().is_some_and(|target| target == *url) => {
                Err(SkipReason::RedirectToItself)
            }
            Ok(target) => Ok(FetchedBody::Redirect(target)),
            Err(_) => Err(SkipReason::BadLocation),
        }
    }
}

/// Rewrites the version of an HTTP/2 or HTTP/3 head to HTTP/1.1. Recorders in browsers write these versions,
/// which the parser does not know. The rest of the head has the same form.
fn as_version_1<'a>(head: &'a [u8], scratch: &'a mut Vec<u8>) -> &'a [u8] {
    let Some(rest) = head.strip_prefix(b"HTTP/2").or_else(|| head.strip_prefix(b"HTTP/3")) else {
        return head;
    };
    scratch.extend_from_slice(b"HTTP/1.1");
    scratch.extend_from_slice(rest.strip_prefix(b".0").unwrap_or(rest));
    scratch
}

enum Media {
    Html,
    Xhtml,
    Text,
}

fn media(content_type: Option<&[u8]>, bytes: &[u8]) -> Result<Media, SkipReason> {
    let essence = content_type.unwrap_or_default().split(|b| matches!(b, b';' | b',')).next();
    match essence.unwrap_or_default().trim_ascii().to_ascii_lowercase().as_slice() {
        b"text/html" => Ok(Media::Html),
        b"application/xhtml+xml" => Ok(Media::Xhtml),
        b"text/plain" | b"text/markdown" => Ok(Media::Text),
        b"" if looks_like_html(bytes) => Ok(Media::Html),
        _ => Err(SkipReason::ContentType),
    }
}

fn looks_like_html(bytes: &[u8]) -> bool {
    let bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
    bytes.trim_ascii_start().first() == Some(&b'<')
}

fn charset_of(content_type: &[u8]) -> Option<String> {
    std::str::from_utf8(content_type).ok().and_then(doppel_charset::label).map(str::to_owned)
}

#[cfg(test)]
mod tests;
