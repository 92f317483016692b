//! Undoes the codings of an HTTP body: Content-Encoding and Transfer-Encoding (RFC 9110, section 8.4; RFC 9112, section 6.1).
//!
//! Heads and bodies often disagree. Servers name one coding and send another, and writers of records undo codings but
//! keep the headers that name them. So the bytes decide:
//!
//! - a body that begins like gzip or zstd is that, whatever the head names;
//! - a body that is text is used as it is;
//! - for other bodies all codings without a certain beginning (zlib, raw deflate, brotli) are tried, first the one that
//!   the head names;
//! - a body that fits none of these is an error, never text.
//!
//! Invariant: no layer unpacks to more than the largest page, and the number of layers is bounded.

use std::borrow::Cow;

use doppel_charset::{check_text, decode_text};

use super::chunked::{Decoded, begins_with_chunk, unchunked};
use super::unpack::{End, Packing, Unpacked};
use crate::error::Reason;
use crate::limits::Limits;

/// The largest number of codings that a head may name.
const CODINGS_MAX: usize = 8;

/// The largest number of packings that are undone without a name.
const UNNAMED_MAX: usize = 2;

/// The values of the fields of a head that name codings, in order.
#[derive(Default)]
pub(super) struct Codings<'a> {
    pub(super) content: Vec<&'a [u8]>,
    pub(super) transfer: Vec<&'a [u8]>,
}

/// A coding that a head names.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Coding {
    Chunked,
    Packed(Packing),
    /// The name of a coding that is not known here.
    Unknown(String),
}

impl Coding {
    /// The coding of a name in any case; none of a name that stands for no coding.
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "" | "identity" | "none" | "binary" | "8bit" | "7bit" => return None,
            // aws-chunked has signatures as extensions of its chunks.
            "chunked" | "aws-chunked" => Self::Chunked,
            "gzip" | "x-gzip" | "gz" => Self::Packed(Packing::Gzip),
            "deflate" | "x-deflate" | "zlib" => Self::Packed(Packing::Zlib),
            "br" | "x-br" | "brotli" => Self::Packed(Packing::Brotli),
            "zstd" | "x-zstd" => Self::Packed(Packing::Zstd),
            other => Self::Unknown(other.chars().take(40).collect()),
        })
    }
}

impl Codings<'_> {
    /// The codings in the order in which they were applied: a body is transferred after its content is encoded.
    fn named(&self) -> Vec<Coding> {
        let lists = self.content.iter().chain(&self.transfer);
        let names = lists.flat_map(|list| list.split(|byte| *byte == b',')).filter_map(|name| {
            let name = name.split(|byte| *byte == b';').next().unwrap_or_default();
            let name = String::from_utf8_lossy(name).to_ascii_lowercase();
            Coding::named(name.trim_matches(|c: char| c.is_whitespace() || matches!(c, '"' | '\'')))
        });
        names.take(CODINGS_MAX + 1).collect()
    }

    /// Undoes all codings of `body`, those that no field names, too. `charset` is the declared charset of its text.
    ///
    /// # Errors
    /// When the body cannot be decoded, or becomes too large.
    pub(super) fn undo<'b>(
        &self,
        body: &'b [u8],
        charset: Option<&str>,
        limits: &Limits,
    ) -> Result<Decoded<'b>, Reason> {
        let mut named = self.named();
        if named.len() > CODINGS_MAX {
            return Err(Reason::Codings(CODINGS_MAX));
        }
        let mut body = Body { bytes: Cow::Borrowed(body), is_cut_off: false, charset, limits };
        while let Some(coding) = named.pop() {
            match coding {
                Coding::Chunked if begins_with_chunk(&body.bytes) => body.join_chunks()?,
                Coding::Chunked => {}
                other => body.undo(&other)?,
            }
        }
        body.undo_unnamed()?;
        Ok(Decoded { bytes: body.bytes, is_cut_off: body.is_cut_off })
    }
}

/// A body whose codings are undone one by one.
struct Body<'b, 'l> {
    bytes: Cow<'b, [u8]>,
    is_cut_off: bool,
    charset: Option<&'l str>,
    limits: &'l Limits,
}

impl Body<'_, '_> {
    fn join_chunks(&mut self) -> Result<(), Reason> {
        let joined = unchunked(&self.bytes)?;
        self.bytes = joined.bytes;
        self.is_cut_off |= joined.is_cut_off;
        Ok(())
    }

    /// Undoes one coding, unless the body is not in any.
    fn undo(&mut self, coding: &Coding) -> Result<(), Reason> {
        if self.bytes.is_empty() || begins_like_a_document(&self.bytes) {
            return Ok(());
        }
        if let Some(packing) = Packing::by_magic(&self.bytes) {
            return self.unpack(packing);
        }
        // Compressed data of more than some bytes are no valid UTF-8.
        if std::str::from_utf8(&self.bytes).is_ok_and(|text| check_text(text).is_ok()) {
            return Ok(());
        }
        if let Some(found) = self.search(coding)? {
            self.take(found);
            return Ok(());
        }
        if self.is_text() {
            return Ok(());
        }
        // A writer of records has removed the field that names the chunking.
        if begins_with_chunk(&self.bytes) {
            self.join_chunks()?;
            return self.undo(coding);
        }
        Err(match coding {
            Coding::Packed(packing) => Reason::Encoding(packing.name()),
            Coding::Unknown(name) => Reason::Coding(name.clone()),
            Coding::Chunked => Reason::Encoding("chunked"),
        })
    }

    /// Undoes packings that no field names and that the first bytes show.
    fn undo_unnamed(&mut self) -> Result<(), Reason> {
        for _ in 0..UNNAMED_MAX {
            match Packing::by_magic(&self.bytes) {
                Some(packing) => self.unpack(packing)?,
                // The usual headers of zlib.
                None if matches!(*self.bytes, [0x78, 0x01 | 0x5e | 0x9c | 0xda, ..]) && !self.is_text() => {
                    let zlib = Packing::Zlib.unpack(&self.bytes, self.limits.page_bytes_max);
                    if !matches!(zlib.end, End::Whole | End::Followed) {
                        return Ok(());
                    }
                    self.take(zlib);
                }
                None => return Ok(()),
            }
        }
        Ok(())
    }

    /// Undoes a packing that the first bytes show.
    fn unpack(&mut self, packing: Packing) -> Result<(), Reason> {
        let max = self.limits.page_bytes_max;
        let unpacked = packing.unpack(&self.bytes, max);
        match unpacked.end {
            End::Whole | End::Followed => self.take(unpacked),
            // Nothing of an empty text is there.
            End::CutOff if !unpacked.bytes.is_empty() => self.take(unpacked),
            End::TooLarge => self.limits.check_page(unpacked.bytes.len())?,
            End::CutOff | End::Invalid => return Err(Reason::Encoding(packing.name())),
        }
        Ok(())
    }

    /// Searches a packing without a certain beginning that the body fits.
    fn search(&self, coding: &Coding) -> Result<Option<Unpacked>, Reason> {
        let order = match coding {
            Coding::Packed(Packing::Brotli) => [Packing::Brotli, Packing::Zlib, Packing::Deflate],
            _ => [Packing::Zlib, Packing::Deflate, Packing::Brotli],
        };
        // What ends with the body is more likely right than what ends before it, or does not end.
        let (mut whole, mut followed, mut cut_off) = (None, None, None);
        for packing in order {
            let unpacked = packing.unpack(&self.bytes, self.limits.page_bytes_max);
            let is_decoded = self.is_decoded(&unpacked);
            let place = match unpacked.end {
                End::Whole if is_decoded => return Ok(Some(unpacked)),
                End::Whole => &mut whole,
                End::Followed if is_decoded => &mut followed,
                End::CutOff if is_decoded => &mut cut_off,
                End::TooLarge if is_decoded => {
                    self.limits.check_page(unpacked.bytes.len())?;
                    continue;
                }
                _ => continue,
            };
            place.get_or_insert(unpacked);
        }
        // A text in an old charset may begin like a packed one.
        Ok(whole.or(followed).or(cut_off.filter(|_| !self.is_text())))
    }

    fn take(&mut self, unpacked: Unpacked) {
        self.bytes = unpacked.bytes.into();
        self.is_cut_off |= unpacked.end == End::CutOff;
    }

    /// Whether something that was unpacked on trial is likely what was packed: a text, or packed once more.
    fn is_decoded(&self, unpacked: &Unpacked) -> bool {
        !unpacked.bytes.is_empty()
            && (Packing::by_magic(&unpacked.bytes).is_some() || is_text(&unpacked.bytes, self.charset))
    }

    fn is_text(&self) -> bool {
        is_text(&self.bytes, self.charset)
    }
}

/// Whether the bytes are text in the declared charset or in the one that they show.
fn is_text(bytes: &[u8], charset: Option<&str>) -> bool {
    check_text(decode_text(bytes, charset, &mut String::new())).is_ok()
}

/// Whether the body begins with `<!` or `<h`. No encoded page begins like this.
fn begins_like_a_document(body: &[u8]) -> bool {
    matches!(body.trim_ascii_start(), [b'<', b'!' | b'h' | b'H', ..])
}

#[cfg(test)]
#[path = "codings_tests.rs"]
mod tests;
