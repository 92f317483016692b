//! Finds the charset that a `<meta>` tag at the beginning of a page names.
//!
//! Implements the algorithms "prescan a byte stream to determine its encoding" and "get an attribute" of
//! WHATWG HTML, section 13.2.3.2.

use encoding_rs::Encoding;

/// The charset label of the first `<meta charset>` or `<meta http-equiv=content-type content>` that gives a
/// known label. `None` if no complete tag in `html` gives one.
pub(super) fn prescan(html: &[u8]) -> Option<&[u8]> {
    let mut at = 0;
    while at < html.len() {
        let rest = &html[at..];
        if rest.starts_with(b"<!--") {
            // The two opening dashes may also close the comment: `<!-->`.
            at += 2 + memchr::memmem::find(&rest[2..], b"-->")? + 2;
        } else if is_meta(rest) {
            at += 5;
            if let Some(label) = meta(html, &mut at) {
                return Some(label);
            }
        } else if is_tag(rest) {
            at += rest.iter().position(|b| b.is_ascii_whitespace() || *b == b'>')?;
            while attribute(html, &mut at).is_some() {}
        } else if matches!(rest, [b'<', b'!' | b'/' | b'?', ..]) {
            at += memchr::memchr(b'>', rest)?;
        } else {
            // Tags begin with a bracket, so skip to the next one.
            at += memchr::memchr(b'<', &rest[1..])?;
        }
        at += 1;
    }
    None
}

fn is_meta(rest: &[u8]) -> bool {
    rest.len() > 5
        && rest[..5].eq_ignore_ascii_case(b"<meta")
        && (rest[5].is_ascii_whitespace() || rest[5] == b'/')
}

fn is_tag(rest: &[u8]) -> bool {
    match rest {
        [b'<', b'/', letter, ..] | [b'<', letter, ..] => letter.is_ascii_alphabetic(),
        _ => false,
    }
}

/// The charset label of the `<meta>` tag whose attributes begin at `at`. Moves `at` to the end of the tag. If
/// an attribute is repeated, the first one counts.
///
/// `None` if the tag gives no label, if the label is unknown, or if the bytes end before the tag does.
fn meta<'a>(html: &'a [u8], at: &mut usize) -> Option<&'a [u8]> {
    let (mut http_equiv, mut content, mut charset) = (None, None, None);
    while let Some((name, value)) = attribute(html, at) {
        let field = if name.eq_ignore_ascii_case(b"http-equiv") {
            &mut http_equiv
        } else if name.eq_ignore_ascii_case(b"content") {
            &mut content
        } else if name.eq_ignore_ascii_case(b"charset") {
            &mut charset
        } else {
            continue;
        };
        field.get_or_insert(value);
    }
    if *at == html.len() {
        return None;
    }
    let pragma = http_equiv.is_some_and(|value| value.eq_ignore_ascii_case(b"content-type"));
    let label = charset.or_else(|| content.filter(|_| pragma).and_then(charset_in_content))?;
    Encoding::for_label(label).map(|_| label)
}

/// "Get an attribute": returns the name and the value of the next attribute, and moves `at` behind the
/// attribute. An attribute without a value has an empty value.
///
/// At the end of the tag it returns `None` and sets `at` to the closing bracket. If the bytes end before the
/// tag does, it returns `None` and sets `at` to the end of the bytes.
fn attribute<'a>(html: &'a [u8], at: &mut usize) -> Option<(&'a [u8], &'a [u8])> {
    let attribute = complete_attribute(html, at);
    if attribute.is_none() && html.get(*at) != Some(&b'>') {
        *at = html.len();
    }
    attribute
}

/// Like [`attribute`], but leaves `at` anywhere in the tag if the bytes end before the tag does.
fn complete_attribute<'a>(html: &'a [u8], at: &mut usize) -> Option<(&'a [u8], &'a [u8])> {
    let skip = |at: &mut usize, slash: bool| {
        while html.get(*at).is_some_and(|b| b.is_ascii_whitespace() || slash && *b == b'/') {
            *at += 1;
        }
    };
    skip(at, true);
    if *html.get(*at)? == b'>' {
        return None;
    }
    let start = *at;
    // A name may begin with an equals sign.
    let ends = |b: &u8| b.is_ascii_whitespace() || matches!(b, b'=' | b'/' | b'>');
    *at += 1 + html[start + 1..].iter().position(ends)?;
    let name = &html[start..*at];
    skip(at, false);
    if *html.get(*at)? != b'=' {
        return Some((name, b""));
    }
    *at += 1;
    skip(at, false);
    let start = *at;
    match *html.get(start)? {
        quote @ (b'"' | b'\'') => {
            let value = &html[start + 1..];
            let length = memchr::memchr(quote, value)?;
            *at += length + 2;
            Some((name, &value[..length]))
        }
        _ => {
            *at += html[start..].iter().position(|b| b.is_ascii_whitespace() || *b == b'>')?;
            Some((name, &html[start..*at]))
        }
    }
}

/// "Extracting a character encoding from a meta element": the label after `charset=` in `content`. `None` if
/// there is no `charset=`, or if the closing quotation mark of the label is missing.
fn charset_in_content(content: &[u8]) -> Option<&[u8]> {
    let mut rest = content;
    loop {
        rest = &rest[rest.windows(7).position(|w| w.eq_ignore_ascii_case(b"charset"))? + 7..];
        if let [b'=', value @ ..] = rest.trim_ascii_start() {
            return match value.trim_ascii_start() {
                [quote @ (b'"' | b'\''), quoted @ ..] => Some(&quoted[..memchr::memchr(*quote, quoted)?]),
                value => value.split(|b| b.is_ascii_whitespace() || *b == b';').next(),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn label(html: &str) -> Option<String> {
        prescan(html.as_bytes()).map(|label| String::from_utf8(label.to_ascii_lowercase()).unwrap())
    }

    #[test]
    fn the_first_usable_meta_tag_names_the_charset() {
        for html in [
            "<meta charset=latin1>",
            "<META CHARSET='LATIN1'>",
            "<meta/charset = \"latin1\" />",
            "<html lang='<meta charset=utf-8>'><meta charset=latin1>",
            "<!-- <meta charset=utf-8> --><meta charset=latin1>",
            "<!--><meta charset=latin1><!-- -->",
            "<!doctype a <meta charset=utf-8><meta charset=latin1>",
            "</a <meta charset=utf-8><?b <meta charset=utf-8><meta charset=latin1>",
            "<meta charset=klingon><meta charset=latin1>",
            "<meta name=a><meta charset=latin1 charset=utf-8>",
            "<meta http-equiv=Content-Type content='text/html; charset=latin1'>",
            "<meta content='text/html;charset = \"latin1\" x' http-equiv=content-type>",
            "<meta http-equiv=content-type content='charset utf-8; charset=latin1; charset=utf-8'>",
            "<meta content='charset=utf-8' http-equiv=content-type charset=latin1>",
            "< <meta charset=latin1>",
        ] {
            assert_eq!(label(html).as_deref(), Some("latin1"), "{html}");
        }
    }

    #[test]
    fn incomplete_or_other_tags_name_no_charset() {
        for html in [
            "",
            "<meta",
            "<meta charset",
            "<meta charset=latin1",
            "<meta charset='latin1",
            "<meta charset='latin1' ",
            "<metacharset=latin1>",
            "<meta content='charset=latin1'>",
            "<meta http-equiv=refresh content='charset=latin1'>",
            "<meta http-equiv=content-type content='charset=\"latin1'>",
            "<meta http-equiv=content-type content='latin1'>",
            "<!-- <meta charset=latin1>",
            "<a b='<meta charset=latin1>",
            "<",
            "</",
        ] {
            assert_eq!(label(html), None, "{html}");
        }
    }
}
