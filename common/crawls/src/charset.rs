//! Decodes text in an unknown charset, and refuses binary content.
//!
//! The crate [`doppel_charset`] does the work; this module applies it to the types of this crate.

use crate::FetchedBody;
use doppel_streams::Reason;

/// Decodes plain text in the charset `declared`, or else in the charset that its bytes show. Malformed
/// sequences become U+FFFD.
pub(super) fn decode(bytes: &[u8], declared: Option<&str>) -> String {
    doppel_charset::to_text(bytes, declared)
}

/// Checks that the content of a page is text. Refuses binary and compressed data.
pub(super) fn check(body: &FetchedBody) -> Result<(), Reason> {
    Ok(body.raw_content().map_or(Ok(()), doppel_charset::check)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_order_mark_precedes_the_declared_charset_and_detection() {
        assert_eq!(decode(b"\xff\xfea\0", Some("utf-8")), "a");
        assert_eq!(decode(b"\xef\xbb\xbfa", Some("latin1")), "a");
        assert_eq!(decode(b"\xc3\xa9", Some("latin1")), "Ã©");
        assert_eq!(decode(b"\xc3\xa9", Some("klingon")), "é");
        assert_eq!(decode(b"\xc3\xa9", None), "é");
        assert_eq!(decode(b"caf\xe9 \x96", None), "café –");
        assert_eq!(decode(b"\xff", Some("utf-8")), "\u{fffd}");
        assert_eq!(decode(b"", None), "");
    }
}
