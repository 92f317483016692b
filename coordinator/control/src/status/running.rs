//! Which nodes are known to run, even if this process cannot reach them, and what to do about nodes that do
//! not answer.
//!
//! The nodes of a cluster with a log publish through the log that they run. If a node does not answer, these
//! reports tell whether to start the node or to repair the network. They prove nothing if no node at all is
//! heard.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use doppel_contract::answer::Attention;
use doppel_model::RangeId;

use super::{HEARD_WITHIN, IndexAt, RecordAt, Replicas};

/// A node that does not answer, and the address at which it was asked.
#[derive(Debug, Clone, Copy)]
pub(super) struct SilentNode<'n> {
    pub(super) name: &'n str,
    pub(super) address: &'n str,
}

impl<'n> From<&'n RecordAt> for SilentNode<'n> {
    fn from(RecordAt { name, address, .. }: &'n RecordAt) -> Self {
        Self { name, address }
    }
}

impl<'n> From<&'n IndexAt> for SilentNode<'n> {
    fn from(IndexAt { name, address, .. }: &'n IndexAt) -> Self {
        Self { name, address }
    }
}

/// Nodes that were heard a short time ago, with the time since then.
#[derive(Debug, Default)]
pub(super) struct Running(BTreeMap<String, Duration>);

impl Running {
    /// Collects the nodes that were heard through the log. Empty if the cluster has no log.
    pub(super) fn of(replicas: Option<&Replicas>, now: Instant) -> Self {
        let Some(Replicas { membership, processes, .. }) = replicas else { return Self::default() };
        let beats = membership.nodes(now).into_iter().map(|heard| (heard.node, heard.silence));
        let beats = beats.filter(|(_, silence)| *silence < HEARD_WITHIN);
        Self(processes.nodes(now).into_iter().chain(beats).collect())
    }

    /// Whether a node is known to run.
    pub(super) fn has(&self, node: &str) -> bool {
        self.0.contains_key(node)
    }

    /// Whether no node was heard, so that a missing node proves nothing.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The remedy for a node that does not answer. `start` says how to start the node.
    fn remedy(&self, SilentNode { name, address }: SilentNode<'_>, start: &str) -> String {
        match self.0.get(name) {
            Some(silence) => format!(
                "the node was heard through the log {:.1} s ago: ask again in some seconds. If it is still heard then, it \
                 runs; check that this machine reaches {address} (its `--listen`, the network), and read its log",
                silence.as_secs_f32()
            ),
            None if self.is_empty() => {
                format!("{start}, if it does not run; otherwise do what the reason says")
            }
            None => start.to_owned(),
        }
    }

    /// A warning about a node of tier 1 that does not answer, and about the ranges that it owns.
    pub(super) fn tier1(&self, node: SilentNode<'_>, ranges: &[RangeId], reason: &str) -> Attention {
        let name = node.name;
        let served = match ranges {
            [] => String::new(),
            [one] => format!(", and range {one} is not served"),
            all => format!(", and ranges {} are not served", listed(all)),
        };
        Attention {
            what: format!("tier-1 node {name} does not answer{served}: {reason}"),
            remedy: self.remedy(node, &format!("start `doppel tier1 --name {name}` on its directory")),
        }
    }

    /// A warning about a node of tier 2 that does not answer.
    pub(super) fn tier2(&self, node: SilentNode<'_>, reason: &str) -> Attention {
        let name = node.name;
        let start = format!("start `doppel tier2 --name {name}`, with an empty directory if its own is lost");
        Attention {
            what: format!("tier-2 node {name} does not answer, and new pages stay pending: {reason}"),
            remedy: self.remedy(node, &start),
        }
    }
}

/// A warning about a node of tier 2 to which some ranges (`by`) have still to send its contents. The owners
/// of the ranges `silent` do not answer.
pub(super) fn waiting_for_contents(node: &str, by: &[RangeId], silent: &[RangeId]) -> Attention {
    let of = |ranges: &[RangeId]| match ranges {
        [one] => format!("range {one}"),
        all => format!("ranges {}", listed(all)),
    };
    Attention {
        what: format!("tier-2 node {node} waits for contents from {}, and new pages stay pending", of(by)),
        remedy: match silent {
            [] => "wait; the owners of the ranges send the contents by themselves".to_owned(),
            silent => {
                format!(
                    "repair {}, whose owner does not answer; then the contents are sent without further action",
                    of(silent)
                )
            }
        },
    }
}

pub(super) fn listed(ranges: &[RangeId]) -> String {
    ranges.iter().map(RangeId::to_string).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODE: SilentNode<'static> = SilentNode { name: "record-1", address: "10.0.0.1:7801" };

    fn heard(nodes: &[&str]) -> Running {
        Running(nodes.iter().map(|node| ((*node).to_owned(), Duration::from_millis(300))).collect())
    }

    #[test]
    fn a_node_that_runs_is_not_to_be_started() {
        let ranges = [RangeId(1), RangeId(3)];
        let away = heard(&["record-2"]).tier1(NODE, &ranges, "connection refused");
        assert_eq!(
            away.what,
            "tier-1 node record-1 does not answer, and ranges 1, 3 are not served: connection refused"
        );
        assert_eq!(away.remedy, "start `doppel tier1 --name record-1` on its directory");
        let cut_off = heard(&["record-1"]).tier1(NODE, &[], "no answer in 3 s");
        assert!(
            !cut_off.remedy.contains("start `doppel") && cut_off.remedy.contains("10.0.0.1:7801"),
            "{cut_off:?}"
        );
        assert!(
            cut_off
                .remedy
                .starts_with("the node was heard through the log 0.3 s ago: ask again in some seconds"),
            "{cut_off:?}"
        );
        // No node is heard: the log is away, or the cluster has none.
        let index = SilentNode { name: "index-1", address: "10.0.0.2:7802" };
        let unknown = heard(&[]).tier2(index, "refused");
        assert!(
            unknown.remedy.starts_with("start `doppel tier2 --name index-1`, with an empty"),
            "{unknown:?}"
        );
        assert!(unknown.remedy.contains("if it does not run"), "{unknown:?}");
    }

    #[test]
    fn the_ranges_that_must_send_contents_are_named() {
        let told = waiting_for_contents("index-1", &[RangeId(0), RangeId(2)], &[]);
        assert!(told.what.contains("from ranges 0, 2, and") && told.remedy.starts_with("wait"), "{told:?}");
        let silent = waiting_for_contents("index-1", &[RangeId(0), RangeId(2)], &[RangeId(2)]);
        assert!(silent.remedy.starts_with("repair range 2, whose owner does not answer"), "{silent:?}");
    }
}
