//! Reads the `content` attribute of a meta refresh as a browser does: the "shared declarative refresh steps" of WHATWG
//! HTML, 4.2.5.3.

/// The longest delay in seconds with which a refresh is a redirect.
const DELAY_S_MAX: u32 = 10;

/// The URL that a refresh leads to, if its delay is at most [`DELAY_S_MAX`]. It is empty if the refresh names none, and
/// then the page itself is meant.
pub(super) fn target(content: &str) -> Option<&str> {
    let rest = content.trim_ascii_start();
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    if digits == 0 && !rest.starts_with('.') {
        return None;
    }
    let seconds = if digits == 0 { 0 } else { rest[..digits].parse().unwrap_or(u32::MAX) };
    if seconds > DELAY_S_MAX {
        return None;
    }
    let rest = rest[digits..].trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    if !rest.starts_with(|c: char| matches!(c, ';' | ',') || c.is_ascii_whitespace()) && !rest.is_empty() {
        return None;
    }
    let rest = rest.trim_ascii_start();
    let rest = rest.strip_prefix([';', ',']).unwrap_or(rest).trim_ascii_start();
    let rest = after_url(rest).unwrap_or(rest);
    let url = match rest.chars().next() {
        Some(quote @ ('"' | '\'')) => rest[1..].split(quote).next().unwrap_or_default(),
        _ => rest,
    };
    Some(url.trim_ascii())
}

/// The text after `url =`, if it begins like this.
fn after_url(rest: &str) -> Option<&str> {
    let (name, rest) = rest.split_at_checked(3)?;
    let rest = rest.trim_ascii_start().strip_prefix('=')?;
    name.eq_ignore_ascii_case("url").then(|| rest.trim_ascii_start())
}

#[cfg(test)]
mod tests {
    #[test]
    fn refresh_content_as_in_a_browser() {
        for (content, target) in [
            ("0;url=x", Some("x")),
            ("0; URL=x", Some("x")),
            ("0,x", Some("x")),
            ("0 x", Some("x")),
            (" 5 ; url = 'x' y", Some("x")),
            ("0;url=\"x", Some("x")),
            ("0;'x'", Some("x")),
            ("0;urlx", Some("urlx")),
            ("0;url", Some("url")),
            ("0;uri=x", Some("uri=x")),
            ("0;url= x ", Some("x")),
            (".5;x", Some("x")),
            ("1.5;x", Some("x")),
            ("10;x", Some("x")),
            ("0", Some("")),
            ("0;", Some("")),
            ("11;x", None),
            ("99999999999999999999;x", None),
            ("", None),
            ("x", None),
            ("0x", None),
            ("-1;x", None),
            ("0;url='é'", Some("é")),
            ("0;é", Some("é")),
            ("0é", None),
        ] {
            assert_eq!(super::target(content), target, "{content}");
        }
    }
}
