//! Recognises *plain* URLs: URLs that are in their normalised form for certain, without parsing.
//!
//! Most URLs are plain, so this check saves most calls of the URL parser.

/// The longest host name of the domain name system (RFC 1035, section 2.3.4). URLs with a longer host are
/// left to the parser.
const HOST_BYTES_MAX: usize = 255;

/// Whether a text without a fragment is certainly a URL in its normalised form.
///
/// Such a URL begins with `http://` or `https://`. Its host has ASCII letters and no port, and its path
/// contains nothing that the WHATWG rules escape or resolve. `false` decides nothing: the caller must parse
/// the text.
pub(super) fn is_plain(text: &str) -> bool {
    let Some(rest) = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://")) else {
        return false;
    };
    let Some(slash) = rest.bytes().position(|byte| byte == b'/') else { return false };
    let (host, path) = rest.as_bytes().split_at(slash);
    // If the last label begins with a digit, the host may be an IPv4 address. Two hyphens may belong to
    // Punycode.
    let last_label_start = host.rsplit(|byte| *byte == b'.').next().and_then(<[u8]>::first);
    let is_in_host =
        |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'.' | b'-');
    let has_plain_host = host.len() <= HOST_BYTES_MAX
        && host.first() != Some(&b'.')
        && last_label_start.is_some_and(u8::is_ascii_lowercase)
        && host.iter().all(is_in_host)
        && !host.windows(2).any(|pair| pair[0] == pair[1] && !pair[0].is_ascii_alphanumeric());
    // Most paths are plain, so checking all bytes without an early exit is fastest: the loop vectorises. The
    // rules may resolve a segment that begins with a dot, escaped or not. The percent sign of an escape is
    // not allowed here.
    let is_in_path = |byte: u8| {
        byte.is_ascii_alphanumeric()
            || matches!(
                byte,
                b'/' | b'-'
                    | b'_'
                    | b'.'
                    | b'~'
                    | b'='
                    | b'&'
                    | b'?'
                    | b'+'
                    | b','
                    | b';'
                    | b':'
                    | b'@'
                    | b'('
                    | b')'
            )
    };
    has_plain_host
        && path.iter().fold(true, |plain, byte| plain & is_in_path(*byte))
        && !path.windows(2).any(|pair| pair == b"/.")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_url_parser_leaves_plain_urls_unchanged(
            scheme in "https?://|https?://|http:/",
            host in "[a-z]{1,3}[.]org|[a-z0-9.-]{0,8}|xn--[a-z]{1,4}[.]a|[a-z]{3}:80|[0-9.]{1,6}[a-z]?|[a-zA-Z%@_]{1,4}",
            path in r"/?|/[a-c./]{0,8}|/[a-c./?%2eE=&']{0,10}|/[ -~]{0,6}|.{0,4}",
        ) {
            let text = format!("{scheme}{host}{path}");
            if !text.contains('#') && is_plain(&text) {
                let parsed = url::Url::parse(&text);
                prop_assert_eq!(parsed.as_ref().map(url::Url::as_str), Ok(text.as_str()));
            }
        }
    }

    #[test]
    fn usual_urls_are_plain_and_unusual_ones_are_not() {
        for plain in [
            "https://a.org/",
            "http://a-b.c1.org/d/e.f?g=h&i=j:k",
            "http://localhost/a_b~c/(d)",
            "https://a/?",
        ] {
            assert!(is_plain(plain), "{plain}");
        }
        for other in [
            "http://a.org",
            "http://A.org/",
            "http://a.org:80/",
            "http://1.2.3.4/",
            "http://0x7f.1/",
            "http://a..b/",
            "http://.a/",
            "http://a./",
            "http://xn--a/",
            "http://a/../b",
            "http://a/%2e/b",
            "http://a/b c",
            "http://a/'",
            "http:///a",
            "file:///a",
            "HTTP://a/",
            "http://é/",
        ] {
            assert!(!is_plain(other), "{other}");
        }
    }
}
