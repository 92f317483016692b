//! Protection against DNS rebinding and cross-origin writes: the host names that requests may use.
//!
//! A browser lets a page read answers from the host name that the page came from, whatever address that name
//! resolves to. An attacker who points a name of their own at this server (DNS rebinding) could therefore
//! read and change everything. The browser sends the attacker's name in the `Host` header, so the server
//! refuses names that it does not know. It accepts the names that the operator has configured, the names of
//! the machine itself, and IP addresses. An IP address involves no name that could be rebound.
//!
//! For the same reason, a write request that a page sends must come from a page of this server. Browsers send
//! the `Origin` header with such requests.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::str::FromStr;
use std::sync::Arc;

use axum::http::{HeaderMap, Request, header, uri::Authority};

/// A host name: letters, digits, `-`, `_` and dots, stored in lower case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostName(String);

/// Error for a text that is not a host name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not a host name; write the name as in a URL, without scheme and port, such as doppel.example.org"
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

/// Host names that the server accepts besides the names of the machine itself.
#[derive(Debug, Clone, Default)]
pub struct Hosts(Arc<[HostName]>);

impl From<Vec<HostName>> for Hosts {
    fn from(names: Vec<HostName>) -> Self {
        Self(names.into())
    }
}

impl Hosts {
    /// Returns the host name of a request if the server must refuse that name, or `None` if the name is
    /// acceptable.
    ///
    /// A request without `Host` is acceptable, because no browser sends one.
    pub(crate) fn refused_host<B>(&self, request: &Request<B>) -> Option<String> {
        match requested_authority(request) {
            None => None,
            Some(Err(text)) => Some(text),
            Some(Ok(authority)) => (!self.is_accepted(authority.host())).then(|| authority.host().to_owned()),
        }
    }

    fn is_accepted(&self, host: &str) -> bool {
        let name = without_final_dot(host);
        let address = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        let last_label = name.rsplit('.').next().unwrap_or(name);
        last_label.eq_ignore_ascii_case("localhost")
            || name.parse::<Ipv4Addr>().is_ok()
            || address.is_some_and(|address| address.parse::<Ipv6Addr>().is_ok())
            || self.0.iter().any(|taken| taken.0.eq_ignore_ascii_case(name))
    }
}

/// Checks whether the request was sent by a page of another server.
pub(crate) fn is_of_another_origin<B>(request: &Request<B>) -> bool {
    let Some(origin) = request.headers().get(header::ORIGIN) else { return false };
    let origin = origin.to_str().ok().and_then(|origin| origin.split_once("://"));
    let Some((scheme, origin)) = origin else { return true };
    let Some(Ok(requested)) = requested_authority(request) else { return true };
    let default = if scheme == "https" { 443 } else { 80 };
    let parts = |authority: &Authority| {
        let host = without_final_dot(authority.host()).to_ascii_lowercase();
        (host, authority.port_u16().unwrap_or(default))
    };
    origin.parse::<Authority>().map_or(true, |origin| parts(&origin) != parts(&requested))
}

/// Returns the host and port that a request names, in its URI or else in `Host`. The error is the text of a
/// `Host` that cannot be parsed.
fn requested_authority<B>(request: &Request<B>) -> Option<Result<Authority, String>> {
    request
        .uri()
        .authority()
        .map(|authority| Ok(authority.clone()))
        .or_else(|| authority_of_headers(request.headers()))
}

fn authority_of_headers(headers: &HeaderMap) -> Option<Result<Authority, String>> {
    let mut hosts = headers.get_all(header::HOST).iter();
    let host = hosts.next()?;
    // With two `Host` headers, a proxy in front of this server may use the other one.
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
    fn configured_names_and_names_of_the_machine_are_accepted() {
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
            assert_eq!(hosts.refused_host(&request("/", &[("host", host)])), None, "{host}");
        }
        for host in
            ["evil.example", "example.org", "xdoppel.example.org", "localhost.evil.example", "1.2.3.4.evil"]
        {
            assert_eq!(hosts.refused_host(&request("/", &[("host", host)])).as_deref(), Some(host));
        }
        for host in ["", "a b", "user@localhost", "[::1"] {
            assert!(hosts.refused_host(&request("/", &[("host", host)])).is_some(), "{host}");
        }
        assert!(hosts.refused_host(&request("/", &[("host", "localhost"), ("host", "localhost")])).is_some());
        // HTTP/1.0 sends no `Host`, and a request to a proxy has the host in its URI.
        assert_eq!(hosts.refused_host(&request("/", &[])), None);
        let proxied = request("http://evil.example/", &[("host", "localhost")]);
        assert_eq!(hosts.refused_host(&proxied).as_deref(), Some("evil.example"));
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
        // Programs that are not browsers send no `Origin`.
        assert!(!is_of_another_origin(&request("/", &[("host", "localhost")])));
    }

    #[test]
    fn invalid_host_names_are_refused() {
        for text in ["", ".", "a..b", "http://a.example", "a.example:80", "a b", "[::1]"] {
            assert!(text.parse::<HostName>().is_err(), "{text}");
        }
        assert_eq!("A.example.".parse::<HostName>().unwrap().to_string(), "a.example");
    }
}
