//! Determines the site of a page from its host, for policies that treat pages of the same site differently.

use std::net::Ipv4Addr;

use doppel_model::pairwise::Sites;
use doppel_model::{PageUrl, stable_hash64};

/// Returns the hash of the name of the page's site.
pub(crate) fn hash(sites: Sites, url: &PageUrl) -> u64 {
    stable_hash64(name(sites, &url.host()).as_bytes())
}

/// Whether two pages are on the same site, by the given definition of a site.
#[must_use]
pub fn is_one_site(sites: Sites, a: &PageUrl, b: &PageUrl) -> bool {
    name(sites, &a.host()) == name(sites, &b.host())
}

/// Returns the name of the site of `host`: the host itself, its registrable domain, or its parent domain.
fn name(sites: Sites, host: &str) -> &str {
    // A final dot marks a fully qualified name. Host names in links are fully qualified without it.
    let host = host.strip_suffix('.').unwrap_or(host);
    // An IP address has no domain.
    if host.starts_with('[') || host.parse::<Ipv4Addr>().is_ok() {
        return host;
    }
    match sites {
        Sites::Host => host,
        Sites::Registrable => psl::domain_str(host).unwrap_or(host),
        Sites::Parent => match host.split_once('.') {
            Some((_, parent)) if parent.contains('.') => parent,
            _ => host,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_definition_of_a_site_gives_its_name() {
        let all = |host| [Sites::Registrable, Sites::Host, Sites::Parent].map(|sites| name(sites, host));
        assert_eq!(all("docs.example.co.uk"), ["example.co.uk", "docs.example.co.uk", "example.co.uk"]);
        assert_eq!(all("a.github.io"), ["a.github.io", "a.github.io", "github.io"]);
        assert_eq!(all("example.org"), ["example.org"; 3]);
        assert_eq!(all("10.0.0.1"), ["10.0.0.1"; 3]);
        assert_eq!(all("[2001:db8::1]"), ["[2001:db8::1]"; 3]);
        assert_eq!(all("localhost"), ["localhost"; 3]);
    }

    /// Examples of Henzinger, SIGIR 2006, section 1: the label before the first dot is removed if the name
    /// has at least three labels.
    #[test]
    fn the_parent_domain_is_the_site_of_the_paper() {
        let site = |url: &str| name(Sites::Parent, &PageUrl::parse(url).unwrap().host()).to_owned();
        assert_eq!(site("http://www.cs.berkeley.edu/index.html"), "cs.berkeley.edu");
        assert_eq!(site("http://cs.berkeley.edu/index.html"), "berkeley.edu");
        assert_eq!(site("http://berkeley.edu/index.html"), "berkeley.edu");
    }

    #[test]
    fn a_final_dot_of_the_host_does_not_change_the_site() {
        for sites in [Sites::Registrable, Sites::Host, Sites::Parent] {
            for host in ["docs.example.co.uk", "a.github.io", "example.org", "localhost", "10.0.0.1"] {
                let url = |host: &str| PageUrl::parse(&format!("http://{host}/x")).unwrap();
                let complete = url(&format!("{host}."));
                assert_eq!(name(sites, &complete.host()), name(sites, host));
                assert_eq!(hash(sites, &complete), hash(sites, &url(host)));
            }
        }
    }
}
