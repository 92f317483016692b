//! The names under which a front door may be asked.
//!
//! A browser asks whatever address a name leads to, and a page may read answers under the name it came from. So a page of a name that
//! was led to this server (DNS rebinding) could read everything and change everything. Such a request has that name in `Host`, and
//! is refused: names are taken that an operator has given, and those of the machine itself. Addresses are always taken, since no
//! name was led anywhere then.
//!
//! For the same reason a request that changes something and comes from a page has to come from a page of this server: browsers send
//! `Origin` with these.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::str::FromStr;
use std::sync::Arc;

use axum::http::{HeaderMap, Request, header, uri::Authority};

/// A name as a host is asked by: letters, digits, `-`, `_` and dots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostName(String);

/// The text is no name of a host.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is no name of a host: give it as in a URL, without scheme and port, such as doppel.example.org"
)]
pub struct HostNameError(String);

impl FromStr for HostName {
    type Err = HostNameError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let name = without_final_dot(text);
        let is_label = |label: &str| {
            !label.is_empty()
                && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
        };
        if name.len() > 253 || !name.split('.').all(is_label) {
            return Err(HostNameError(text.to_owned()));
        }
        Ok(Self(name.to_ascii_lowercase()))
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The names that are taken beside those of the machine itself.
#[derive(Debug, Clone, Default)]
pub struct Hosts(Arc<[HostName]>);

impl From<Vec<HostName>> for Hosts {
    fn from(names: Vec<HostName>) -> Self {
        Self(names.into())
    }
}

impl Hosts {
    /// The name in a request under which this server is not to be asked; none where all is well. A request without `Host` is of
    /// no browser.
    pub(crate) fn refused<B>(&self, request: &Request<B>) -> Option<String> {
        match asked(request) {
            None => None,
            Some(Err(text)) => Some(text),
            Some(Ok(authority)) => (!self.take(authority.host())).then(|| authority.host().to_owned()),
        }
    }

    fn take(&self, host: &str) -> bool {
        let name = without_final_dot(host);
        let address = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        let last_label = name.rsplit('.').next().unwrap_or(name);
        last_label.eq_ignore_ascii_case("localhost")
            || name.parse::<Ipv4Addr>().is_ok()
            || address.is_some_and(|address| address.parse::<Ipv6Addr>().is_ok())
            || self.0.iter().any(|taken| taken.0.eq_ignore_ascii_case(name))
    }
}

/// Whether a page of another server sent a request.
pub(crate) fn is_of_another_origin<B>(request: &Request<B>) -> bool {
    let Some(origin) = request.headers().get(header::ORIGIN) else { return false };
    let origin = origin.to_str().ok().and_then(|origin| origin.split_once("://"));
    let Some((scheme, origin)) = origin else { return true };
    let Some(Ok(asked)) = asked(request) else { return true };
    let default = if scheme == "https" { 443 } else { 80 };
    let parts = |authority: &Authority| {
        let host = without_final_dot(authority.host()).to_ascii_lowercase();
        (host, authority.port_u16().unwrap_or(default))
    };
    origin.parse::<Authority>().map_or(true, |origin| parts(&origin) != parts(&asked))
}

/// Whom a request asks: by its URI, or else by `Host`; the text where it cannot be read.
fn asked<B>(request: &Request<B>) -> Option<Result<Authority, String>> {
    request.uri().authority().map(|authority| Ok(authority.clone())).or_else(|| of_headers(request.headers()))
}

fn of_headers(headers: &HeaderMap) -> Option<Result<Authority, String>> {
    let mut hosts = headers.get_all(header::HOST).iter();
    let host = hosts.next()?;
    // Two of them may be read otherwise by whoever stands in front.
    let only = hosts.next().is_none();
    Some(match Authority::try_from(host.as_bytes()) {
        Ok(authority) if only && !host.as_bytes().contains(&b'@') => Ok(authority),
        _ => Err(String::from_utf8_lossy(host.as_bytes()).into_owned()),
    })
}

fn without_final_dot(name: &str) -> &str {
    name.strip_suffix('.').unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(uri: &str, headers: &[(&str, &str)]) -> Request<()> {
        let mut request = Request::builder().uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap()
    }

    #[test]
    fn names_that_were_given_and_those_of_the_machine_are_taken() {
        let hosts = Hosts::from(vec!["Doppel.example.org".parse().unwrap()]);
        let taken = [
            "localhost",
            "localhost:7700",
            "LOCALHOST.",
            "a.localhost",
            "127.0.0.1:7700",
            "10.0.0.31",
            "[::1]:7700",
            "doppel.example.org",
            "DOPPEL.example.org.:443",
        ];
        for host in taken {
            assert_eq!(hosts.refused(&request("/", &[("host", host)])), None, "{host}");
        }
        for host in
            ["evil.example", "example.org", "xdoppel.example.org", "localhost.evil.example", "1.2.3.4.evil"]
        {
            assert_eq!(hosts.refused(&request("/", &[("host", host)])).as_deref(), Some(host));
        }
        for host in ["", "a b", "user@localhost", "[::1"] {
            assert!(hosts.refused(&request("/", &[("host", host)])).is_some(), "{host}");
        }
        assert!(hosts.refused(&request("/", &[("host", "localhost"), ("host", "localhost")])).is_some());
        // As HTTP/1.0, and as proxies ask.
        assert_eq!(hosts.refused(&request("/", &[])), None);
        let asked = request("http://evil.example/", &[("host", "localhost")]);
        assert_eq!(hosts.refused(&asked).as_deref(), Some("evil.example"));
    }

    #[test]
    fn an_origin_is_this_server_or_another() {
        let of = |host: &str, origin: &str| {
            is_of_another_origin(&request("/", &[("host", host), ("origin", origin)]))
        };
        for (host, origin) in [
            ("localhost:7700", "http://localhost:7700"),
            ("doppel.example", "https://doppel.example"),
            ("doppel.example:443", "https://DOPPEL.example"),
            ("[::1]:7700", "http://[::1]:7700"),
        ] {
            assert!(!of(host, origin), "{origin}");
        }
        for (host, origin) in [
            ("localhost:7700", "http://localhost:8000"),
            ("localhost:7700", "http://evil.example"),
            ("doppel.example", "https://other.example"),
            ("localhost:7700", "null"),
            ("localhost:7700", "http://"),
        ] {
            assert!(of(host, origin), "{origin}");
        }
        // Programs send none.
        assert!(!is_of_another_origin(&request("/", &[("host", "localhost")])));
    }

    #[test]
    fn what_is_no_name_is_refused() {
        for text in ["", ".", "a..b", "http://a.example", "a.example:80", "a b", "[::1]"] {
            assert!(text.parse::<HostName>().is_err(), "{text}");
        }
        assert_eq!("A.example.".parse::<HostName>().unwrap().to_string(), "a.example");
    }
}
