//! Decodes text in an unknown charset.

use encoding_rs::{Encoding, WINDOWS_1252};

/// Decodes plain text. The encoding is that of the byte order mark, else the charset `declared`, else UTF-8 if
/// the bytes are valid UTF-8, else windows-1252, in which every byte is valid. Malformed sequences become
/// U+FFFD.
pub(super) fn decode(bytes: &[u8], declared: Option<&str>) -> String {
    let declared = declared.and_then(|label| Encoding::for_label(label.as_bytes()));
    let encoding = match declared {
        Some(encoding) => encoding,
        None if std::str::from_utf8(bytes).is_ok() => encoding_rs::UTF_8,
        None => WINDOWS_1252,
    };
    // `decode` honours a byte order mark first.
    encoding.decode(bytes).0.into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn precedence_of_charsets() {
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
