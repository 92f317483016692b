//! Counts pairs of hosts that mirror each other: how many pages of each host are duplicates of pages of the
//! other.
//!
//! The first pass takes pairs of hosts from [`Savings`], which finds pairs in bounded memory. It selects the
//! pairs with most pages, both directions together. A second pass counts the pages of the selected pairs
//! exactly, and all live pages of their hosts.

use std::collections::HashMap;

use doppel_contract::Status;
use doppel_contract::answer::{HostMirror, Savings};
use doppel_protocol::Line;

/// Number of pairs that are shown.
const SHOWN: usize = 20;

/// Two hosts, in lexicographic order.
type Hosts = (String, String);

/// Selected pairs, and the pages counted so far.
#[derive(Debug)]
pub(super) struct MirrorPairCounter {
    /// Pages of the first host that are duplicates of pages of the second, and the other way round.
    pairs: HashMap<Hosts, [u64; 2]>,
    hosts: HashMap<String, u64>,
    across_hosts: u64,
    on_one_host: u64,
    was_cut: bool,
}

/// Hosts that mirror each other.
#[derive(Debug)]
pub(super) struct Mirrors {
    /// Selected pairs; the pair with most pages comes first.
    pub(super) pairs: Vec<Pair>,
    /// Duplicates between other pairs of hosts.
    pub(super) others: u64,
    /// Duplicates whose kept page is on the same host.
    pub(super) on_one_host: u64,
    /// Whether rare pairs were dropped because there were too many. A dropped pair may have more pages than
    /// the last pair that is shown.
    pub(super) was_cut: bool,
}

/// Two hosts.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Pair {
    /// The sides; the host with more duplicates comes first.
    pub(super) sides: [Side; 2],
}

/// One host of a pair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Side {
    pub(super) host: String,
    /// Number of live pages of the host.
    pub(super) pages: u64,
    /// Number of pages of this host that are duplicates of pages of the other host.
    pub(super) duplicates: u64,
}

impl MirrorPairCounter {
    pub(super) fn of(savings: &Savings) -> Self {
        let mut sums: HashMap<Hosts, u64> = HashMap::new();
        for HostMirror { host, of, pages, .. } in &savings.mirrors {
            *sums.entry(ordered(host.clone(), of.clone())).or_default() += pages;
        }
        let mut pairs: Vec<_> = sums.into_iter().collect();
        pairs.sort_by(|(a, a_pages), (b, b_pages)| b_pages.cmp(a_pages).then_with(|| a.cmp(b)));
        pairs.truncate(SHOWN);
        let hosts = pairs.iter().flat_map(|((a, b), _)| [a, b]).map(|host| (host.clone(), 0));
        Self {
            hosts: hosts.collect(),
            pairs: pairs.into_iter().map(|(hosts, _)| (hosts, [0, 0])).collect(),
            across_hosts: savings.across_hosts,
            on_one_host: savings.on_one_host,
            was_cut: savings.mirrors_cut,
        }
    }

    /// Counts a live page.
    pub(super) fn add(&mut self, line: &Line) {
        if self.hosts.is_empty() {
            return;
        }
        let host = line.url.host();
        let Some(pages) = self.hosts.get_mut(&host) else { return };
        *pages += 1;
        let of = line.duplicate_of.as_ref().filter(|_| line.status == Status::Duplicate);
        let Some(of) = of.map(doppel_model::PageUrl::host) else { return };
        let direction = usize::from(of < host);
        if let Some(duplicates) = self.pairs.get_mut(&ordered(host, of)) {
            duplicates[direction] += 1;
        }
    }

    pub(super) fn finish(self) -> Mirrors {
        let Self { pairs, hosts, across_hosts, on_one_host, was_cut } = self;
        let side = |host: String, duplicates| {
            let pages = hosts.get(&host).copied().unwrap_or(0);
            Side { host, pages, duplicates }
        };
        let pair = |((a, b), [of_a, of_b]): (Hosts, [u64; 2])| {
            let mut sides = [side(a, of_a), side(b, of_b)];
            sides.sort_by_key(|side| std::cmp::Reverse(side.duplicates));
            Pair { sides }
        };
        let mut pairs: Vec<_> = pairs.into_iter().map(pair).collect();
        // A host name that was cut because of its length is the name of no page.
        pairs.retain(|pair| pair.duplicates() > 0);
        pairs.sort_by(|a, b| b.duplicates().cmp(&a.duplicates()).then_with(|| a.hosts().cmp(&b.hosts())));
        let shown: u64 = pairs.iter().map(Pair::duplicates).sum();
        Mirrors { pairs, others: across_hosts.saturating_sub(shown), on_one_host, was_cut }
    }
}

impl Pair {
    fn duplicates(&self) -> u64 {
        self.sides.iter().map(|side| side.duplicates).sum()
    }

    fn hosts(&self) -> [&str; 2] {
        self.sides.each_ref().map(|side| &*side.host)
    }
}

fn ordered(a: String, b: String) -> Hosts {
    if a <= b { (a, b) } else { (b, a) }
}
