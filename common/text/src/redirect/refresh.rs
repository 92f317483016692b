//! Parses the `content` attribute of a meta refresh like a browser: the "shared declarative refresh steps" of
//! WHATWG HTML, 4.2.5.3.

/// Meta refresh with its delay and its target.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Refresh<'c> {
    /// Delay in whole seconds.
    pub(crate) delay_s: u32,
    /// URL as the page writes it. Empty if the refresh names no URL and reloads the page itself.
    pub(crate) reference: &'c str,
}

/// Parses the value of `content`. Returns `None` if a browser ignores it.
pub(crate) fn parse(content: &str) -> Option<Refresh<'_>> {
    let rest = content.trim_ascii_start();
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    if digits == 0 && !rest.starts_with('.') {
        return None;
    }
    let delay_s = if digits == 0 { 0 } else { rest[..digits].parse().unwrap_or(u32::MAX) };
    let rest = rest[digits..].trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    if !rest.starts_with(|c: char| matches!(c, ';' | ',') || c.is_ascii_whitespace()) && !rest.is_empty() {
        return None;
    }
    let rest = rest.trim_ascii_start();
    let rest = rest.strip_prefix([';', ',']).unwrap_or(rest).trim_ascii_start();
    let rest = after_url(rest).unwrap_or(rest);
    let reference = match rest.chars().next() {
        Some(quote @ ('"' | '\'')) => rest[1..].split(quote).next().unwrap_or_default(),
        _ => rest,
    };
    Some(Refresh { delay_s, reference: reference.trim_ascii() })
}

/// Returns the text after `url =`, or `None` if `rest` does not begin with it.
fn after_url(rest: &str) -> Option<&str> {
    let (name, rest) = rest.split_at_checked(3)?;
    let rest = rest.trim_ascii_start().strip_prefix('=')?;
    name.eq_ignore_ascii_case("url").then(|| rest.trim_ascii_start())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refresh_content_is_parsed_like_in_a_browser() {
        for (content, expected) in [
            ("0;url=x", Some((0, "x"))),
            ("0; URL=x", Some((0, "x"))),
            ("0,x", Some((0, "x"))),
            ("0 x", Some((0, "x"))),
            (" 5 ; url = 'x' y", Some((5, "x"))),
            ("0;url=\"x", Some((0, "x"))),
            ("0;'x'", Some((0, "x"))),
            ("0;urlx", Some((0, "urlx"))),
            ("0;url", Some((0, "url"))),
            ("0;uri=x", Some((0, "uri=x"))),
            ("0;url= x ", Some((0, "x"))),
            (".5;x", Some((0, "x"))),
            ("1.5;x", Some((1, "x"))),
            ("10;x", Some((10, "x"))),
            ("0", Some((0, ""))),
            ("0;", Some((0, ""))),
            ("11;x", Some((11, "x"))),
            ("99999999999999999999;x", Some((u32::MAX, "x"))),
            ("", None),
            ("x", None),
            ("0x", None),
            ("-1;x", None),
            ("0;url='é'", Some((0, "é"))),
            ("0;é", Some((0, "é"))),
            ("0é", None),
        ] {
            let expected = expected.map(|(delay_s, reference)| Refresh { delay_s, reference });
            assert_eq!(parse(content), expected, "{content}");
        }
    }
}
