//! The charset that the beginning of a page names in a `<meta>` tag: WHATWG HTML, section 13.2.3.2,
//! "prescan a byte stream to determine its encoding" and "get an attribute".

/// The label of the first usable `<meta charset>` or `<meta http-equiv=content-type content>`.
pub(super) fn prescan(html: &[u8]) -> Option<Vec<u8>> {
    let mut at = 0;
    while at < html.len() {
        let rest = &html[at..];
        if rest.starts_with(b"<!--") {
            // The two dashes that open may also close: `<!-->`.
            at += 2 + memchr::memmem::find(&rest[2..], b"-->")? + 3;
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

/// The label in one `<meta>` tag whose attributes begin at `at`.
fn meta(html: &[u8], at: &mut usize) -> Option<Vec<u8>> {
    let mut seen: Vec<Vec<u8>> = Vec::new();
    let mut pragma = false;
    let mut needs_pragma = None;
    let mut label = None;
    while let Some((name, value)) = attribute(html, at) {
        if seen.contains(&name) {
            continue;
        }
        match name.as_slice() {
            b"http-equiv" => pragma |= value == b"content-type",
            b"content" if label.is_none() => {
                if let Some(found) = charset_in_content(&value) {
                    label = Some(found);
                    needs_pragma = Some(true);
                }
            }
            b"charset" => {
                label = Some(value);
                needs_pragma = Some(false);
            }
            _ => {}
        }
        seen.push(name);
    }
    match needs_pragma? {
        true if !pragma => None,
        _ => label.filter(|l| encoding_rs::Encoding::for_label(l).is_some()),
    }
}

/// "Get an attribute": its name and value in lower case; `at` is left after it. None at the end of the
/// tag or of the bytes.
fn attribute(html: &[u8], at: &mut usize) -> Option<(Vec<u8>, Vec<u8>)> {
    let skip_space = |at: &mut usize| {
        while html.get(*at).is_some_and(u8::is_ascii_whitespace) {
            *at += 1;
        }
    };
    while html.get(*at).is_some_and(|b| b.is_ascii_whitespace() || *b == b'/') {
        *at += 1;
    }
    if *html.get(*at)? == b'>' {
        return None;
    }
    let mut name = Vec::new();
    loop {
        match *html.get(*at)? {
            b'=' if !name.is_empty() => break,
            b'/' | b'>' => return Some((name, Vec::new())),
            b if b.is_ascii_whitespace() => {
                skip_space(at);
                if *html.get(*at)? != b'=' {
                    return Some((name, Vec::new()));
                }
                break;
            }
            b => name.push(b.to_ascii_lowercase()),
        }
        *at += 1;
    }
    *at += 1;
    skip_space(at);
    let mut value = Vec::new();
    match *html.get(*at)? {
        quote @ (b'"' | b'\'') => loop {
            *at += 1;
            match *html.get(*at)? {
                b if b == quote => {
                    *at += 1;
                    return Some((name, value));
                }
                b => value.push(b.to_ascii_lowercase()),
            }
        },
        _ => loop {
            match *html.get(*at)? {
                b if b.is_ascii_whitespace() || b == b'>' => return Some((name, value)),
                b => value.push(b.to_ascii_lowercase()),
            }
            *at += 1;
        },
    }
}

/// "Extracting a character encoding from a meta element": the label after `charset=` in `content`,
/// which is in lower case.
fn charset_in_content(content: &[u8]) -> Option<Vec<u8>> {
    let mut rest = content;
    loop {
        rest = &rest[memchr::memmem::find(rest, b"charset")? + 7..];
        let trimmed = rest.trim_ascii_start();
        if let [b'=', value @ ..] = trimmed {
            let value = value.trim_ascii_start();
            let label = match value {
                [quote @ (b'"' | b'\''), quoted @ ..] => &quoted[..memchr::memchr(*quote, quoted)?],
                _ => value.split(|b| b.is_ascii_whitespace() || *b == b';').next()?,
            };
            return Some(label.to_vec());
        }
    }
}
