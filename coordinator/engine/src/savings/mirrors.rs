//! Counts, for pairs of hosts, the pages of one host that can be dropped for pages of the other.
//!
//! Memory is bounded by the number of pairs and by the length of a host name. Longer names are truncated; no
//! host on the network has such a name.

use std::collections::HashMap;

use doppel_contract::answer::HostMirror;

use crate::limits::MIRROR_NAME_BYTES;

/// Reason why a page can be dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DropReason {
    Redirect,
    Copy,
    Near,
}

/// Counters for pairs of hosts.
#[derive(Debug)]
pub(super) struct MirrorCounter {
    pairs: HashMap<(Box<str>, Box<str>), PairCounts>,
    pairs_max: usize,
    on_one_host: u64,
    across_hosts: u64,
    cut: bool,
}

#[derive(Debug, Clone, Copy)]
struct PairCounts {
    copies: u64,
    near: u64,
    redirects: u64,
    bytes: Option<u64>,
}

/// Result of the counting.
#[derive(Debug)]
pub(super) struct MirrorSummary {
    pub(super) mirrors: Vec<HostMirror>,
    pub(super) on_one_host: u64,
    pub(super) across_hosts: u64,
    pub(super) left_out: u64,
    pub(super) cut: bool,
}

impl PairCounts {
    fn pages(&self) -> u64 {
        self.copies + self.near + self.redirects
    }
}

impl MirrorCounter {
    pub(super) fn new(pairs_max: usize) -> Self {
        Self { pairs: HashMap::new(), pairs_max, on_one_host: 0, across_hosts: 0, cut: false }
    }

    /// Counts a page of `host` that can be dropped for a page of `of`. Pages without a host, such as files
    /// and records, do not count.
    pub(super) fn add(&mut self, host: String, of: String, kind: DropReason, bytes: Option<u64>) {
        if host.is_empty() || of.is_empty() {
            return;
        }
        if host == of {
            self.on_one_host += 1;
            return;
        }
        self.across_hosts += 1;
        let none = PairCounts { copies: 0, near: 0, redirects: 0, bytes: Some(0) };
        let counts = self.pairs.entry((name(host), name(of))).or_insert(none);
        *match kind {
            DropReason::Redirect => &mut counts.redirects,
            DropReason::Copy => &mut counts.copies,
            DropReason::Near => &mut counts.near,
        } += 1;
        counts.bytes = counts.bytes.zip(bytes).map(|(sum, bytes)| sum + bytes);
        if self.pairs.len() > self.pairs_max {
            self.forget_rare();
        }
    }

    /// Removes every pair whose number of pages is at most the median.
    fn forget_rare(&mut self) {
        self.cut = true;
        let mut pages: Vec<u64> = self.pairs.values().map(PairCounts::pages).collect();
        let middle = pages.len() / 2;
        let (_, median, _) = pages.select_nth_unstable(middle);
        let median = *median;
        self.pairs.retain(|_, counts| counts.pages() > median);
    }

    /// Returns the result with up to `list` pairs, those with the most pages first.
    pub(super) fn finish(self, list: usize) -> MirrorSummary {
        let Self { pairs, on_one_host, across_hosts, cut, .. } = self;
        let mut mirrors: Vec<HostMirror> = pairs
            .into_iter()
            .map(|((host, of), counts)| HostMirror {
                host: host.into(),
                of: of.into(),
                pages: counts.pages(),
                copies: counts.copies,
                near: counts.near,
                redirects: counts.redirects,
                bytes: counts.bytes,
            })
            .collect();
        mirrors.sort_unstable_by(|a, b| {
            b.pages.cmp(&a.pages).then_with(|| (&a.host, &a.of).cmp(&(&b.host, &b.of)))
        });
        mirrors.truncate(list);
        let listed: u64 = mirrors.iter().map(|mirror| mirror.pages).sum();
        MirrorSummary { mirrors, on_one_host, across_hosts, left_out: across_hosts - listed, cut }
    }
}

/// Truncates the name of a host if it is longer than [`MIRROR_NAME_BYTES`].
fn name(mut host: String) -> Box<str> {
    if host.len() > MIRROR_NAME_BYTES {
        let ends =
            host.char_indices().map(|(at, _)| at).take_while(|at| at + MORE.len_utf8() <= MIRROR_NAME_BYTES);
        host.truncate(ends.last().unwrap_or(0));
        host.push(MORE);
    }
    host.into()
}

/// Mark at the end of a truncated name.
const MORE: char = '…';

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_are_truncated() {
        let longest = "a".repeat(MIRROR_NAME_BYTES);
        assert_eq!(*name(longest.clone()), longest);
        for host in [format!("{longest}a"), "a".repeat(8_000), "é".repeat(200)] {
            let cut = name(host.clone());
            let kept = cut.strip_suffix(MORE).unwrap_or_else(|| panic!("{cut} says that it is cut"));
            assert!(
                host.starts_with(kept) && (MIRROR_NAME_BYTES - 1..=MIRROR_NAME_BYTES).contains(&cut.len())
            );
        }
        let mut mirrors = MirrorCounter::new(8);
        mirrors.add(format!("{longest}1"), "a".repeat(8_000), DropReason::Copy, None);
        assert!(mirrors.pairs.keys().all(|(host, of)| host.len() + of.len() <= 2 * MIRROR_NAME_BYTES));
        assert_eq!(mirrors.finish(1).across_hosts, 1);
    }

    #[test]
    fn pages_without_a_host_are_not_mirrors() {
        let mut mirrors = MirrorCounter::new(8);
        for (host, of) in [("", ""), ("a", ""), ("", "a"), ("a", "b"), ("a", "a")] {
            mirrors.add(host.to_owned(), of.to_owned(), DropReason::Copy, Some(1));
        }
        let found = mirrors.finish(8);
        let [only] = &found.mirrors[..] else { panic!("one pair has names: {found:?}") };
        assert_eq!((&*only.host, &*only.of, only.pages), ("a", "b", 1));
        assert_eq!((found.on_one_host, found.across_hosts, found.left_out), (1, 1, 0));
    }

    #[test]
    fn frequent_pairs_outlive_rare_ones() {
        let mut mirrors = MirrorCounter::new(8);
        for round in 0..100 {
            mirrors.add("a".to_owned(), "b".to_owned(), DropReason::Copy, Some(2));
            mirrors.add(format!("rare{round}"), "b".to_owned(), DropReason::Near, None);
            mirrors.add("a".to_owned(), "a".to_owned(), DropReason::Near, None);
            assert!(mirrors.pairs.len() <= 8);
        }
        let found = mirrors.finish(1);
        let [first] = &found.mirrors[..] else { panic!("one is listed: {found:?}") };
        assert_eq!((&*first.host, &*first.of, first.pages, first.bytes), ("a", "b", 100, Some(200)));
        assert_eq!((found.on_one_host, found.across_hosts, found.left_out, found.cut), (100, 200, 100, true));
    }

    #[test]
    fn equally_rare_pairs_are_discarded_together() {
        let mut mirrors = MirrorCounter::new(4);
        (0..5).for_each(|n| mirrors.add(format!("h{n}"), "b".to_owned(), DropReason::Redirect, None));
        assert_eq!(mirrors.pairs.len(), 0);
        assert_eq!(mirrors.finish(10).left_out, 5);
    }
}
