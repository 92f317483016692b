//! URLs that are known to be in their normalised form without being parsed.

/// The longest name of a host in the domain name system (RFC 1035, section 2.3.4). Whether a longer one is a URL is not decided at once.
const HOST_BYTES_MAX: usize = 255;

/// Whether a text without a fragment is certainly a URL in its normalised form, which most are: an http or https URL whose host has ASCII
/// letters and no port, and whose path has nothing that the WHATWG rules escape or resolve. Nothing is decided about any other text.
pub(super) fn is_plain(text: &str) -> bool {
    let Some(rest) = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://")) else {
        return false;
    };
    let Some(slash) = rest.bytes().position(|byte| byte == b'/') else { return false };
    let (host, path) = rest.as_bytes().split_at(slash);
    // A last label that begins with a digit may be the end of an IPv4 address, and two hyphens the beginning of Punycode.
    let last = host.rsplit(|byte| *byte == b'.').next().and_then(<[u8]>::first);
    let is_in_host =
        |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'.' | b'-');
    let has_plain_host = host.len() <= HOST_BYTES_MAX
        && host.first() != Some(&b'.')
        && last.is_some_and(u8::is_ascii_lowercase)
        && host.iter().all(is_in_host)
        && !host.windows(2).any(|pair| pair[0] == pair[1] && !pair[0].is_ascii_alphanumeric());
    // Bytes of which most are of one kind are looked at fastest all at once. A segment that begins with a dot may be resolved, also if the
    // dot is escaped.
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
        fn what_is_plain_is_what_the_parser_of_urls_writes(
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
    fn most_urls_are_plain() {
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
