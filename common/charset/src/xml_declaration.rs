//! Reads the encoding from the XML declaration at the beginning of a document.

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE};

/// The declaration must end within this number of bytes from the beginning of the document. Otherwise its
/// encoding is ignored.
const DECLARATION_BYTES: usize = 1024;

/// Whether a document begins with an XML declaration. White space before the declaration is ignored.
#[must_use]
pub fn begins_with_xml_declaration(text: &str) -> bool {
    declaration(text.as_bytes()).is_some()
}

/// The bytes behind `<?xml` at the beginning of a document. White space before `<?xml` is ignored. `None` if
/// the document does not begin with an XML declaration.
fn declaration(bytes: &[u8]) -> Option<&[u8]> {
    let rest = bytes.trim_ascii_start().strip_prefix(b"<?xml")?;
    rest.first().is_some_and(u8::is_ascii_whitespace).then_some(rest)
}

/// The encoding that the XML declaration of a document gives. `None` if it gives no known encoding. The
/// document must not begin with a byte order mark.
///
/// If `<?xml` is itself written in UTF-16, the encoding is UTF-16 in the byte order of these bytes. A
/// declaration that can be read as ASCII cannot be in UTF-16. If such a declaration names UTF-16, the
/// document is read as UTF-8.
pub(crate) fn declared_encoding(bytes: &[u8]) -> Option<&'static Encoding> {
    if bytes.starts_with(b"<\0?\0x\0m\0l\0") {
        return Some(UTF_16LE);
    }
    if bytes.starts_with(b"\0<\0?\0x\0m\0l") {
        return Some(UTF_16BE);
    }
    let declaration = declaration(&bytes[..bytes.len().min(DECLARATION_BYTES)])?;
    let declaration = &declaration[..memchr::memchr(b'>', declaration)?];
    let at = memchr::memmem::find(declaration, b"encoding")? + b"encoding".len();
    let value = declaration[at..].trim_ascii_start().strip_prefix(b"=")?.trim_ascii_start();
    let (quote, value) = value.split_first()?;
    if !matches!(quote, b'"' | b'\'') {
        return None;
    }
    let encoding = super::encoding_of_label(&value[..memchr::memchr(*quote, value)?])?;
    Some(if encoding == UTF_16LE || encoding == UTF_16BE { UTF_8 } else { encoding })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_declaration_names_the_encoding() {
        for (document, name) in [
            (&b"<?xml version='1.0' encoding='iso-8859-2'?><html/>"[..], Some("ISO-8859-2")),
            (b"<?xml version=\"1.0\" encoding = \"UTF-8\" standalone='yes'?>", Some("UTF-8")),
            (b"\n <?xml version='1.0' encoding='koi8-r'?>", Some("KOI8-R")),
            (b"<?xml version='1.0' encoding='utf-16'?>", Some("UTF-8")),
            (b"<\0?\0x\0m\0l\0 \0", Some("UTF-16LE")),
            (b"\0<\0?\0x\0m\0l\0 ", Some("UTF-16BE")),
            (b"<?xml version='1.0'?><p encoding='koi8-r'>", None),
            (b"<?xml version='1.0' encoding='klingon'?>", None),
            (b"<?xml version='1.0' encoding='koi8-r", None),
            (b"<?xml version='1.0' encoding=koi8-r?>", None),
            (b"<?xml-stylesheet encoding='koi8-r'?>", None),
            (b"a <?xml version='1.0' encoding='koi8-r'?>", None),
            (b"", None),
        ] {
            let shown = String::from_utf8_lossy(document);
            assert_eq!(declared_encoding(document).map(Encoding::name), name, "{shown}");
        }
    }
}
