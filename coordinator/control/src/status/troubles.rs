//! Warnings about the replicas of ranges, each with a remedy that fits the known facts. A remedy never says
//! to start a node that is known to run, and names only causes that the reports do not rule out.

use std::time::Instant;

use doppel_contract::answer::{Attention, ClusterRange, EngineStatus, Standby};
use doppel_protocol::beats::ClusterMembership;

use super::log::{is_full, servers_away};
use super::running::Running;

/// Number of log records that a replica may be behind without a warning.
const LAG: u64 = 1_000;

/// Warnings about owners whose writes wait, replicas that do not follow, and ranges without an owner.
pub(super) fn of_replicas(
    membership: &ClusterMembership,
    ranges: &[ClusterRange],
    (running, engine): (&Running, Option<&EngineStatus>),
    now: Instant,
) -> Vec<Attention> {
    let mut troubles = Vec::new();
    for range in ranges {
        match &range.owner {
            None => troubles.push(unowned(range, running)),
            Some(owner) => {
                let heard = membership.replicas(range.range, now);
                let told = heard.into_iter().find(|replica| replica.node == *owner);
                if let Some(trouble) = told.and_then(|told| told.claim.trouble) {
                    troubles.push(Attention {
                        what: format!(
                            "writes of range {} wait at {owner}, its owner: {trouble}",
                            range.range
                        ),
                        remedy: waits(owner, range, running, engine),
                    });
                }
            }
        }
        for standby @ Standby { node, follows, lag, .. } in &range.standbys {
            if !follows {
                troubles.push(lost(range, standby, running));
            } else if lag.is_some_and(|lag| lag > LAG) {
                troubles.push(Attention {
                    what: format!("the replica of range {} at {node} is behind", range.range),
                    remedy: "wait; if the replica stays behind, its machine is too slow".to_owned(),
                });
            }
        }
    }
    troubles
}

/// A warning about a range without an owner.
fn unowned(ClusterRange { range, standbys, .. }: &ClusterRange, running: &Running) -> Attention {
    let (there, away): (Vec<&Standby>, Vec<&Standby>) =
        standbys.iter().partition(|standby| running.has(&standby.node));
    let named = |some: &[&Standby]| some.iter().map(|one| &*one.node).collect::<Vec<_>>().join(", ");
    let remedy = if there.is_empty() {
        format!(
            "start one of the nodes with a replica, {}; if the log answers, that node takes over",
            named(&away)
        )
    } else {
        let others = if away.is_empty() { String::new() } else { format!("; start {}, too", named(&away)) };
        format!(
            "wait some seconds, because {} may take over the range; the log of a node says what prevents it{others}",
            named(&there)
        )
    };
    Attention { what: format!("no node claims to own range {range}"), remedy }
}

/// A warning about a node that should follow a range and does not.
fn lost(ClusterRange { range, .. }: &ClusterRange, standby: &Standby, running: &Running) -> Attention {
    let Standby { node, reason, .. } = standby;
    let is_there = running.has(node);
    let reason = reason.as_deref().unwrap_or("it does not say why");
    let remedy = match is_there {
        true => format!("{node} was heard a moment ago: wait, or do what the reason says; its log says more"),
        false if running.is_empty() => format!("start `doppel tier1 --name {node}`, if it does not run"),
        false => format!("start `doppel tier1 --name {node}`"),
    };
    Attention { what: format!("range {range} has no replica at {node} that follows: {reason}"), remedy }
}

/// The remedy for writes that wait for the log or a standby.
fn waits(owner: &str, range: &ClusterRange, running: &Running, engine: Option<&EngineStatus>) -> String {
    let mut remedies = Vec::new();
    let stream = engine.and_then(|log| log.streams.iter().find(|stream| stream.range == range.range));
    if let Some(stream) = stream.filter(|stream| is_full(stream)) {
        remedies.push(format!(
            "its stream is full, so give it more bytes: `nats stream edit {} --max-bytes BYTES` (docs/guides/grow-and-repair-a-cluster.md)",
            stream.stream
        ));
    }
    let away = engine.map(servers_away).unwrap_or_default();
    if !away.is_empty() {
        remedies.push(format!("start the log servers that are away: {}", away.join(", ")));
    } else if stream.is_some_and(|stream| stream.reason.is_some()) {
        remedies.push(
            "its stream has no leader, so wait some seconds for an election of the log servers".to_owned(),
        );
    }
    if !range.standbys.is_empty() && range.standbys.iter().all(|standby| !standby.follows) {
        let away: Vec<&str> =
            range.standbys.iter().map(|standby| &*standby.node).filter(|node| !running.has(node)).collect();
        remedies.push(match &*away {
            [] => "no standby follows, so read the logs of the standbys".to_owned(),
            away => format!("no standby follows, so start {}", away.join(", ")),
        });
    }
    if remedies.is_empty() {
        return format!("wait, or do what the reason says; the log of {owner} says more");
    }
    remedies.join("; ")
}

#[cfg(test)]
mod tests {
    use doppel_contract::answer::EngineServer;
    use doppel_model::{Epoch, RangeId};
    use doppel_protocol::beats::{Beat, RangeClaim};

    use super::super::Replicas;
    use super::super::log::tests::stream;
    use super::*;
    use crate::cluster::tests::replicated;
    use crate::status::processes::Processes;

    fn claim(owns: bool, trouble: Option<&str>) -> RangeClaim {
        let trouble = trouble.map(str::to_owned);
        RangeClaim {
            range: RangeId(2),
            epoch: Epoch(1),
            owns,
            index: 7,
            known: true,
            sequence: 7,
            needs: 7,
            trouble,
        }
    }

    fn range(owner: Option<&str>, standbys: Vec<Standby>) -> ClusterRange {
        ClusterRange {
            range: RangeId(2),
            first_shard: 0,
            last_shard: 3,
            owner: owner.map(str::to_owned),
            served: true,
            epoch: Some(1),
            standbys,
            replicas: 2,
            live_replicas: 2,
            live: None,
            pending: None,
        }
    }

    fn standby(node: &str, reason: Option<&str>) -> Standby {
        let reason = reason.map(str::to_owned);
        Standby { node: node.to_owned(), follows: reason.is_none(), lag: Some(0), reason }
    }

    /// A log of three servers, of which the first `answering` answer, with one stream of `bytes` bytes for
    /// the range.
    fn log(answering: u16, bytes: u64) -> EngineStatus {
        let server = |n: u16| EngineServer {
            name: Some(format!("log-{n}")),
            address: format!("nats://10.0.0.{n}:4222"),
            version: None,
            answers: n <= answering,
            reason: None,
        };
        EngineStatus { servers: (1..=3).map(server).collect(), streams: vec![stream(2, bytes)] }
    }

    /// Warnings that follow from these beats and the status of the range.
    fn found(beats: &[(&str, RangeClaim)], range: ClusterRange, engine: &EngineStatus) -> Vec<Attention> {
        let now = Instant::now();
        let replicas = Replicas {
            membership: ClusterMembership::new().into(),
            processes: Processes::new(1, replicated(|_| {})).into(),
            nodes: Vec::new(),
        };
        for (node, claim) in beats.iter().cloned() {
            replicas
                .membership
                .take(Beat { node: node.to_owned(), incarnation: 1, ranges: vec![claim] }, now);
        }
        let running = Running::of(Some(&replicas), now);
        of_replicas(&replicas.membership, &[range], (&running, Some(engine)), now)
    }

    fn whats(owner: Option<&str>, reason: Option<&str>) -> Vec<String> {
        let beats = [("record-1", claim(true, owner)), ("record-2", claim(false, reason))];
        let range = range(Some("record-1"), vec![standby("record-2", reason)]);
        found(&beats, range, &log(3, 50)).into_iter().map(|one| one.what).collect()
    }

    #[test]
    fn waiting_writes_and_standbys_that_do_not_follow_cause_warnings() {
        assert_eq!(whats(None, None), [""; 0]);
        assert_eq!(
            whats(Some("the log is full"), None),
            ["writes of range 2 wait at record-1, its owner: the log is full"]
        );
        assert_eq!(whats(None, Some("no log")), ["range 2 has no replica at record-2 that follows: no log"]);
    }

    #[test]
    fn a_remedy_fits_what_is_known() {
        let waits = claim(true, Some("it waits"));
        let remedies = |beats: &[(&str, RangeClaim)], range, log: &EngineStatus| -> Vec<String> {
            found(beats, range, log).into_iter().map(|one| one.remedy).collect()
        };
        let owner = |standbys| range(Some("record-1"), standbys);
        let follows = || owner(vec![standby("record-2", None)]);
        assert_eq!(
            remedies(&[("record-1", waits.clone())], follows(), &log(1, 50)),
            ["start the log servers that are away: nats://10.0.0.2:4222, nats://10.0.0.3:4222"]
        );
        let full = remedies(&[("record-1", waits.clone())], follows(), &log(3, 100));
        assert!(full[0].starts_with("its stream is full, so give it more") && full.len() == 1, "{full:?}");
        let nothing = remedies(&[("record-1", waits.clone())], follows(), &log(3, 50));
        assert_eq!(nothing, ["wait, or do what the reason says; the log of record-1 says more"]);
        // A standby that is away, and one that runs.
        let away = || owner(vec![standby("record-2", Some("the node was not heard lately"))]);
        assert_eq!(
            remedies(&[("record-1", waits.clone())], away(), &log(3, 50)),
            ["no standby follows, so start record-2", "start `doppel tier1 --name record-2`"]
        );
        let there = [("record-1", claim(true, None)), ("record-2", claim(false, Some("it copies")))];
        let running = remedies(&there, owner(vec![standby("record-2", Some("it copies"))]), &log(3, 50));
        assert!(
            running[0].starts_with("record-2 was heard a moment ago: wait") && running.len() == 1,
            "{running:?}"
        );
        // No node owns the range.
        let none = || range(None, vec![standby("record-1", None), standby("record-2", None)]);
        let dead = remedies(&[], none(), &log(3, 50));
        assert!(dead[0].starts_with("start one of the nodes with a replica, record-1, record-2"), "{dead:?}");
        let one = remedies(&[("record-2", claim(false, None))], none(), &log(3, 50));
        assert!(
            one[0].starts_with("wait some seconds, because record-2 may")
                && one[0].ends_with("start record-1, too"),
            "{one:?}"
        );
    }
}
