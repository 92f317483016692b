//! Undoes the *codings* of an HTTP body: Content-Encoding and Transfer-Encoding (RFC 9110, section 8.4; RFC
//! 9112, section 6.1).
//!
//! Heads and bodies often disagree. Servers name one coding and send another. Writers of records undo codings
//! but keep the header fields that name them. So the bytes decide:
//!
//! - A body that begins like gzip or zstd is that, whatever the head names.
//! - A body that is text is used as it is.
//! - For any other body, the module tries all codings without a magic number (zlib, raw deflate, brotli). It
//!   tries the coding that the head names first.
//! - A body that fits none of these is an error, never text.
//!
//! Invariant: no layer unpacks to more than the largest page, and the number of layers is bounded.

use std::borrow::Cow;

use doppel_charset::{check_text, decode_text};
use doppel_streams::{Limits, Reason};

use super::chunked::{DecodedBody, decode_chunked, is_chunked};
use super::unpack::{BodyCompression, UnpackEnd, UnpackedBody};

/// The largest number of codings that a head may name.
const NAMED_MAX: usize = 8;

/// The largest number of compressions that are undone although no field names them.
const UNNAMED_MAX: usize = 2;

/// The values of the head fields that name codings, in order.
#[derive(Default)]
pub(super) struct Codings<'a> {
    pub(super) content: Vec<&'a [u8]>,
    pub(super) transfer: Vec<&'a [u8]>,
}

/// A coding that a head names.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Coding {
    Chunked,
    Packed(BodyCompression),
    /// A coding that Doppel does not know, by its name.
    Unknown(String),
}

impl Coding {
    /// Returns the coding for a lower-case name. `None` for a name that stands for no coding.
    fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "" | "identity" | "none" | "binary" | "8bit" | "7bit" => return None,
            // The chunks of aws-chunked have signatures as extensions.
            "chunked" | "aws-chunked" => Self::Chunked,
            "gzip" | "x-gzip" | "gz" => Self::Packed(BodyCompression::Gzip),
            "deflate" | "x-deflate" | "zlib" => Self::Packed(BodyCompression::Zlib),
            "br" | "x-br" | "brotli" => Self::Packed(BodyCompression::Brotli),
            "zstd" | "x-zstd" => Self::Packed(BodyCompression::Zstd),
            other => Self::Unknown(other.chars().take(40).collect()),
        })
    }
}

impl Codings<'_> {
    /// Returns the codings in the order in which the server applied them. A server encodes the content before
    /// it encodes the transfer.
    fn parse(&self) -> Vec<Coding> {
        let lists = self.content.iter().chain(&self.transfer);
        let names = lists.flat_map(|list| list.split(|byte| *byte == b',')).filter_map(|name| {
            let name = name.split(|byte| *byte == b';').next().unwrap_or_default();
            let name = String::from_utf8_lossy(name).to_ascii_lowercase();
            Coding::from_name(name.trim_matches(|c: char| c.is_whitespace() || matches!(c, '"' | '\'')))
        });
        names.take(NAMED_MAX + 1).collect()
    }

    /// Undoes all codings of `body`, including those that no field names. `charset` is the declared charset
    /// of its text.
    ///
    /// # Errors
    /// If the body cannot be decoded, or becomes too large.
    pub(super) fn undo<'b>(
        &self,
        body: &'b [u8],
        charset: Option<&str>,
        limits: &Limits,
    ) -> Result<DecodedBody<'b>, Reason> {
        let mut named = self.parse();
        if named.len() > NAMED_MAX {
            return Err(Reason::Codings(NAMED_MAX));
        }
        let mut body = CodedBody { bytes: Cow::Borrowed(body), is_cut_off: false, charset, limits };
        while let Some(coding) = named.pop() {
            match coding {
                Coding::Chunked if is_chunked(&body.bytes) => body.join_chunks()?,
                Coding::Chunked => {}
                other => body.undo(&other)?,
            }
        }
        body.undo_unnamed()?;
        Ok(DecodedBody { bytes: body.bytes, is_cut_off: body.is_cut_off })
    }
}

/// A body whose codings are undone one by one.
struct CodedBody<'b, 'l> {
    bytes: Cow<'b, [u8]>,
    is_cut_off: bool,
    charset: Option<&'l str>,
    limits: &'l Limits,
}

impl CodedBody<'_, '_> {
    fn join_chunks(&mut self) -> Result<(), Reason> {
        let joined = decode_chunked(&self.bytes)?;
        self.bytes = joined.bytes;
        self.is_cut_off |= joined.is_cut_off;
        Ok(())
    }

    /// Undoes one coding, unless the body shows that nothing encodes it.
    fn undo(&mut self, coding: &Coding) -> Result<(), Reason> {
        if self.bytes.is_empty() || is_document(&self.bytes) {
            return Ok(());
        }
        if let Some(compression) = BodyCompression::from_magic(&self.bytes) {
            return self.unpack(compression);
        }
        // Compressed data are not valid UTF-8 unless they are very short.
        if std::str::from_utf8(&self.bytes).is_ok_and(|text| check_text(text).is_ok()) {
            return Ok(());
        }
        if let Some(found) = self.try_compressions(coding)? {
            self.accept(found);
            return Ok(());
        }
        if self.is_text() {
            return Ok(());
        }
        // The writer of the record has removed the field that names the chunking.
        if is_chunked(&self.bytes) {
            self.join_chunks()?;
            return self.undo(coding);
        }
        Err(match coding {
            Coding::Packed(compression) => Reason::Encoding(compression.name()),
            Coding::Unknown(name) => Reason::Coding(name.clone()),
            Coding::Chunked => Reason::Encoding("chunked"),
        })
    }

    /// Undoes compressions that no field names and that the first bytes prove.
    fn undo_unnamed(&mut self) -> Result<(), Reason> {
        for _ in 0..UNNAMED_MAX {
            match BodyCompression::from_magic(&self.bytes) {
                Some(compression) => self.unpack(compression)?,
                // The usual zlib headers.
                None if matches!(*self.bytes, [0x78, 0x01 | 0x5e | 0x9c | 0xda, ..]) && !self.is_text() => {
                    let zlib = BodyCompression::Zlib.unpack(&self.bytes, self.limits.page_bytes_max);
                    if !matches!(zlib.end, UnpackEnd::Whole | UnpackEnd::Followed) {
                        return Ok(());
                    }
                    self.accept(zlib);
                }
                None => return Ok(()),
            }
        }
        Ok(())
    }

    /// Undoes a compression that the first bytes prove.
    fn unpack(&mut self, compression: BodyCompression) -> Result<(), Reason> {
        let max = self.limits.page_bytes_max;
        let unpacked = compression.unpack(&self.bytes, max);
        match unpacked.end {
            UnpackEnd::Whole | UnpackEnd::Followed => self.accept(unpacked),
            // A body that was cut off before its first byte of text is an error.
            UnpackEnd::CutOff if !unpacked.bytes.is_empty() => self.accept(unpacked),
            UnpackEnd::TooLarge => self.limits.check_page(unpacked.bytes.len())?,
            UnpackEnd::CutOff | UnpackEnd::Invalid => return Err(Reason::Encoding(compression.name())),
        }
        Ok(())
    }

    /// Tries the compressions without a magic number, and returns the most likely result. `None` if none fits
    /// the body.
    fn try_compressions(&self, coding: &Coding) -> Result<Option<UnpackedBody>, Reason> {
        let order = match coding {
            Coding::Packed(BodyCompression::Brotli) => {
                [BodyCompression::Brotli, BodyCompression::Zlib, BodyCompression::Deflate]
            }
            _ => [BodyCompression::Zlib, BodyCompression::Deflate, BodyCompression::Brotli],
        };
        // Prefer data that end with the body over data that end earlier, and those over data that do not end.
        let (mut whole, mut followed, mut cut_off) = (None, None, None);
        for compression in order {
            let unpacked = compression.unpack(&self.bytes, self.limits.page_bytes_max);
            let is_decoded = self.is_decoded(&unpacked);
            let place = match unpacked.end {
                UnpackEnd::Whole if is_decoded => return Ok(Some(unpacked)),
                UnpackEnd::Whole => &mut whole,
                UnpackEnd::Followed if is_decoded => &mut followed,
                UnpackEnd::CutOff if is_decoded => &mut cut_off,
                UnpackEnd::TooLarge if is_decoded => {
                    self.limits.check_page(unpacked.bytes.len())?;
                    continue;
                }
                _ => continue,
            };
            place.get_or_insert(unpacked);
        }
        // Text in an old charset may begin like compressed data.
        Ok(whole.or(followed).or(cut_off.filter(|_| !self.is_text())))
    }

    fn accept(&mut self, unpacked: UnpackedBody) {
        self.bytes = unpacked.bytes.into();
        self.is_cut_off |= unpacked.end == UnpackEnd::CutOff;
    }

    /// Whether the result of a trial is likely the original body: text, or data in another compression.
    fn is_decoded(&self, unpacked: &UnpackedBody) -> bool {
        !unpacked.bytes.is_empty()
            && (BodyCompression::from_magic(&unpacked.bytes).is_some()
                || is_text(&unpacked.bytes, self.charset))
    }

    fn is_text(&self) -> bool {
        is_text(&self.bytes, self.charset)
    }
}

/// Whether the bytes are text in the declared charset, or in the charset that they show.
fn is_text(bytes: &[u8], charset: Option<&str>) -> bool {
    check_text(decode_text(bytes, charset, &mut String::new())).is_ok()
}

/// Whether the body begins like an HTML document, with `<!` or `<h`. No encoded page begins like this.
fn is_document(body: &[u8]) -> bool {
    matches!(body.trim_ascii_start(), [b'<', b'!' | b'h' | b'H', ..])
}

#[cfg(test)]
mod tests;
