//! Extracts the page from the HTTP response in a WARC record.
//!
//! Writers differ in what they store: some undo the transfer and content encodings but keep the headers that
//! name them. So a body that is clearly not in the named encoding is used unchanged.

use std::borrow::Cow;
use std::io::Read;

use encoding_rs::mem::decode_latin1;
use flate2::bufread::{DeflateDecoder, GzDecoder, ZlibDecoder};

use crate::FetchedBody;
use crate::charset;
use crate::error::{Reason, Skip};
use crate::format::{BYTE_ORDER_MARK, LOOKED_AT, is_text};
use crate::limits::Limits;
use doppel_model::PageUrl;

/// The longest HTTP head, in bytes, and the largest number of fields in it.
const HEAD_BYTES_MAX: usize = 64 << 10;
const HEAD_FIELDS_MAX: usize = 256;

/// The largest window of a zstd body: 8 MiB, as RFC 9659 requires.
const ZSTD_WINDOW_LOG_MAX: u32 = 23;

/// Why a valid record gives no page.
pub(super) enum Refusal {
    Skip(Skip),
    Bad(Reason),
}

impl From<Skip> for Refusal {
    fn from(skip: Skip) -> Self {
        Self::Skip(skip)
    }
}

impl<R: Into<Reason>> From<R> for Refusal {
    fn from(reason: R) -> Self {
        Self::Bad(reason.into())
    }
}

/// The block of a record: complete, or cut off because it is too large.
#[derive(Clone, Copy)]
pub(super) struct Block<'a> {
    pub(super) bytes: &'a [u8],
    /// The full length of the block, in bytes.
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

/// The fields of an HTTP head that are used here.
#[derive(Default)]
struct Response<'a> {
    status: u16,
    content_type: Option<&'a [u8]>,
    content_encoding: Option<&'a [u8]>,
    transfer_encoding: Option<&'a [u8]>,
    location: Option<&'a [u8]>,
    /// The offset of the body in the block.
    body: usize,
}

/// The status of the response in `block`, if it contains one.
pub(super) fn status(block: &[u8]) -> Option<u16> {
    Response::parse(block, &mut Vec::new()).ok().map(|response| response.status)
}

/// What the response in `block` says about the page `url`.
pub(super) fn page(url: &PageUrl, block: Block<'_>, limits: &Limits) -> Result<FetchedBody, Refusal> {
    Response::parse(block.bytes, &mut Vec::new())?.page(url, block, limits)
}

/// The body of a block that is a document of the given Content-Type.
pub(super) fn document(
    content_type: Option<&[u8]>,
    block: Block<'_>,
    limits: &Limits,
) -> Result<FetchedBody, Refusal> {
    media(content_type, block.bytes)?;
    body(content_type, block.complete(limits)?.into(), limits)
}

fn body(content_type: Option<&[u8]>, bytes: Cow<'_, [u8]>, limits: &Limits) -> Result<FetchedBody, Refusal> {
    let media = media(content_type, &bytes)?;
    limits.check_page(bytes.len())?;
    let charset = content_type.and_then(charset_of);
    match media {
        Media::Html => Ok(FetchedBody::Html { bytes: bytes.into_owned(), charset }),
        Media::Xhtml => Ok(FetchedBody::Xhtml { bytes: bytes.into_owned(), charset }),
        Media::Text => {
            let text = charset::decode(&bytes, charset.as_deref());
            limits.check_page(text.len())?;
            Ok(FetchedBody::Text(text))
        }
    }
}

impl<'a> Response<'a> {
    /// Parses the head of `block`. `scratch` holds the head if it has to be rewritten.
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
                name if name.eq_ignore_ascii_case("content-encoding") => &mut response.content_encoding,
                name if name.eq_ignore_ascii_case("transfer-encoding") => &mut response.transfer_encoding,
                name if name.eq_ignore_ascii_case("location") => &mut response.location,
                _ => continue,
            };
            slot.get_or_insert(field.value);
        }
        Ok(response)
    }

    fn page(&self, url: &PageUrl, block: Block<'_>, limits: &Limits) -> Result<FetchedBody, Refusal> {
        match self.status {
            200 => {
                // Check the media type before the size: a video that is too large is skipped, it is not an
                // error.
                media(self.content_type, b"<")?;
                let body = block.from(self.body).complete(limits)?;
                let body = decoded(self.content_encoding, unchunked(self.transfer_encoding, body)?, limits)?;
                self::body(self.content_type, body, limits)
            }
            301 | 302 | 303 | 307 | 308 => self.redirect(url).map_err(Refusal::Skip),
            404 | 410 => Ok(FetchedBody::Dead),
            other => Err(Skip::Status(other).into()),
        }
    }

    fn redirect(&self, url: &PageUrl) -> Result<FetchedBody, Skip> {
        let location = self.location.unwrap_or_default().trim_ascii();
        if location.is_empty() {
            return Err(Skip::NoLocation);
        }
        let location = std::str::from_utf8(location).map_or_else(|_| decode_latin1(location), Cow::Borrowed);
        match url.redirect_target(&location) {
            // As it was sent, or resolved.
            Ok(target) if target == *url || target.normalised().is_some_and(|target| target == *url) => {
                Err(Skip::RedirectToItself)
            }
            Ok(target) => Ok(FetchedBody::Redirect(target)),
            Err(_) => Err(Skip::BadLocation),
        }
    }
}

/// Rewrites the version of an HTTP/2 or HTTP/3 head to HTTP/1.1. Recorders in browsers write these versions,
/// which the parser does not know; the rest of the head is the same.
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

fn media(content_type: Option<&[u8]>, bytes: &[u8]) -> Result<Media, Skip> {
    let essence = content_type.unwrap_or_default().split(|b| matches!(b, b';' | b',')).next();
    match essence.unwrap_or_default().trim_ascii().to_ascii_lowercase().as_slice() {
        b"text/html" => Ok(Media::Html),
        b"application/xhtml+xml" => Ok(Media::Xhtml),
        b"text/plain" | b"text/markdown" => Ok(Media::Text),
        b"" if looks_like_html(bytes) => Ok(Media::Html),
        _ => Err(Skip::ContentType),
    }
}

fn looks_like_html(bytes: &[u8]) -> bool {
    let bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
    bytes.trim_ascii_start().first() == Some(&b'<')
}

fn charset_of(content_type: &[u8]) -> Option<String> {
    let parameters = std::str::from_utf8(content_type).ok()?.split(';').skip(1);
    let (_, charset) = parameters
        .filter_map(|parameter| parameter.split_once('='))
        .find(|(name, _)| name.trim().eq_ignore_ascii_case("charset"))?;
    let charset = charset.trim().trim_matches(['"', '\'']).trim();
    (1..=40).contains(&charset.len()).then(|| charset.to_owned())
}

/// Undoes Transfer-Encoding: chunked (RFC 9112, section 7.1). If the connection was cut off, the incomplete
/// last chunk is kept.
fn unchunked<'a>(encoding: Option<&[u8]>, body: &'a [u8]) -> Result<Cow<'a, [u8]>, Reason> {
    let chunked =
        encoding.is_some_and(|encoding| encoding.trim_ascii().to_ascii_lowercase().ends_with(b"chunked"));
    if !chunked || !begins_with_chunk(body) {
        return Ok(Cow::Borrowed(body));
    }
    let mut joined = Vec::with_capacity(body.len());
    let mut rest = body;
    loop {
        let (size, data) = match chunk(rest) {
            Some(Ok((0, _))) | None => return Ok(Cow::Owned(joined)),
            Some(Ok(found)) => found,
            Some(Err(error)) => return Err(error),
        };
        joined.extend_from_slice(&data[..size.min(data.len())]);
        let Some(after) = data.get(size..) else { return Ok(Cow::Owned(joined)) };
        rest = after.strip_prefix(b"\r\n").unwrap_or(after);
    }
}

/// The size of the chunk at the beginning of `bytes`, and the bytes after the size line. `None` if the bytes
/// end within the size line.
fn chunk(bytes: &[u8]) -> Option<Result<(usize, &[u8]), Reason>> {
    if bytes.first().is_some_and(|b| !b.is_ascii_hexdigit()) {
        return Some(Err(Reason::Encoding("chunked")));
    }
    match httparse::parse_chunk_size(bytes) {
        Ok(httparse::Status::Complete((at, size))) => {
            Some(Ok((usize::try_from(size).unwrap_or(usize::MAX), &bytes[at..])))
        }
        Ok(httparse::Status::Partial) => None,
        Err(_) => Some(Err(Reason::Encoding("chunked"))),
    }
}

/// Whether the body is really chunked. Some writers of records undo the chunking.
fn begins_with_chunk(body: &[u8]) -> bool {
    let Some(Ok((size, data))) = chunk(body) else { return false };
    data.get(size..).is_none_or(|after| after.is_empty() || after.starts_with(b"\r"))
}

/// Undoes Content-Encoding.
fn decoded<'a>(
    encoding: Option<&[u8]>,
    body: Cow<'a, [u8]>,
    limits: &Limits,
) -> Result<Cow<'a, [u8]>, Refusal> {
    let encoding = encoding.unwrap_or_default().trim_ascii().to_ascii_lowercase();
    let (name, decoder): (&'static str, Box<dyn Read + '_>) = match encoding.as_slice() {
        b"" | b"identity" => return Ok(body),
        _ if begins_like_a_document(&body) => return Ok(body),
        b"gzip" | b"x-gzip" if body.starts_with(&[0x1f, 0x8b]) => ("gzip", Box::new(GzDecoder::new(&*body))),
        b"zstd" if body.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) => ("zstd", Box::new(zstd_decoder(&body)?)),
        b"gzip" | b"x-gzip" | b"zstd" => return Ok(body),
        b"br" => ("br", Box::new(brotli::Decompressor::new(&*body, 0))),
        b"deflate" if has_zlib_header(&body) => ("deflate", Box::new(ZlibDecoder::new(&*body))),
        b"deflate" => ("deflate", Box::new(DeflateDecoder::new(&*body))),
        _ => return Err(Skip::Encoding.into()),
    };
    let mut page = Vec::with_capacity(body.len().saturating_mul(4).min(limits.page_bytes_max));
    let unpacked = decoder.take(limits.page_bytes_max as u64 + 1).read_to_end(&mut page);
    match unpacked {
        Ok(_) => {}
        // Brotli has no magic number that would tell beforehand.
        Err(_) if name == "br" && is_text(&body[..body.len().min(LOOKED_AT)]) => return Ok(body),
        Err(_) => return Err(Reason::Encoding(name).into()),
    }
    limits.check_page(page.len())?;
    page.shrink_to_fit();
    Ok(Cow::Owned(page))
}

/// Whether the body begins with `<!` or `<h`. No encoded page begins like this.
fn begins_like_a_document(body: &[u8]) -> bool {
    matches!(body.trim_ascii_start(), [b'<', b'!' | b'h' | b'H', ..])
}

/// Whether a `deflate` body has a zlib header. Servers send both zlib (RFC 1950) and raw deflate under this
/// name.
fn has_zlib_header(body: &[u8]) -> bool {
    matches!(*body, [cmf, flags, ..] if cmf & 15 == 8 && (u16::from(cmf) << 8 | u16::from(flags)) % 31 == 0)
}

fn zstd_decoder(body: &[u8]) -> Result<zstd::Decoder<'_, &[u8]>, Reason> {
    let mut decoder = zstd::Decoder::with_buffer(body).map_err(|_| Reason::Encoding("zstd"))?;
    decoder.window_log_max(ZSTD_WINDOW_LOG_MAX).map_err(|_| Reason::Encoding("zstd"))?;
    Ok(decoder)
}

#[cfg(test)]
#[path = "http_tests.rs"]
mod tests;
