//! What is not as it should be with the replicas of ranges.

use std::time::Instant;

use doppel_protocol::answer::{Attention, ClusterRange, Standby};
use doppel_protocol::membership::Membership;

/// Records that a replica may be behind while all is well.
const LAG: u64 = 1_000;

/// Owners whose writes wait, replicas that do not follow, and ranges without an owner.
pub(super) fn of_replicas(membership: &Membership, ranges: &[ClusterRange], now: Instant) -> Vec<Attention> {
    let mut troubles = Vec::new();
    for range in ranges {
        match &range.owner {
            None => troubles.push(Attention {
                what: format!("no node has said that it owns range {}", range.range),
                remedy: "start a node that has a replica of it; where the log answers, one takes over within seconds"
                    .to_owned(),
            }),
            Some(owner) => {
                let heard = membership.replicas(range.range, now);
                let told = heard.into_iter().find(|replica| replica.node == *owner);
                if let Some(trouble) = told.and_then(|told| told.trouble) {
                    troubles.push(Attention {
                        what: format!("writes of range {} wait at {owner}, its owner: {trouble}", range.range),
                        remedy: "where its log is full, give the stream more bytes (docs/CLUSTER.md); where it does not \
                                 answer, see to the log servers; where no standby has it, start a node that has a replica"
                            .to_owned(),
                    });
                }
            }
        }
        for Standby { node, follows, lag, reason } in &range.standbys {
            if !follows {
                let reason = reason.as_deref().unwrap_or("it does not say why");
                troubles.push(Attention {
                    what: format!("range {} has no replica at {node} that follows: {reason}", range.range),
                    remedy: format!("start `doppel tier1 --name {node}`, or do what its log says"),
                });
            } else if lag.is_some_and(|lag| lag > LAG) {
                troubles.push(Attention {
                    what: format!("the replica of range {} at {node} is behind", range.range),
                    remedy: "wait; where it stays so, that machine is too slow".to_owned(),
                });
            }
        }
    }
    troubles
}

#[cfg(test)]
mod tests {
    use doppel_model::{Epoch, RangeId};
    use doppel_protocol::membership::{Beat, Claim};

    use super::*;

    fn claim(owns: bool, trouble: Option<&str>) -> Claim {
        let trouble = trouble.map(str::to_owned);
        Claim {
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

    /// What is wrong when the owner and a standby of a range have told this.
    fn troubles(owner: Option<&str>, standby: Option<&str>) -> Vec<String> {
        let (membership, now) = (Membership::new(), Instant::now());
        for (node, claim) in [("record-1", claim(true, owner)), ("record-2", claim(false, standby))] {
            membership.take(Beat { node: node.to_owned(), incarnation: 1, ranges: vec![claim] }, now);
        }
        let range = ClusterRange {
            range: RangeId(2),
            first_shard: 0,
            last_shard: 3,
            owner: Some("record-1".to_owned()),
            served: true,
            epoch: Some(1),
            standbys: vec![Standby {
                node: "record-2".to_owned(),
                follows: standby.is_none(),
                lag: Some(0),
                reason: standby.map(str::to_owned),
            }],
            replicas: 2,
            live_replicas: 2,
            live: None,
            pending: None,
        };
        of_replicas(&membership, &[range], now).into_iter().map(|one| one.what).collect()
    }

    #[test]
    fn an_owner_whose_writes_wait_is_told_of_as_a_standby_that_does_not_follow_is() {
        assert_eq!(troubles(None, None), [""; 0]);
        assert_eq!(
            troubles(Some("the log is full"), None),
            ["writes of range 2 wait at record-1, its owner: the log is full"]
        );
        assert_eq!(
            troubles(None, Some("no log")),
            ["range 2 has no replica at record-2 that follows: no log"]
        );
    }
}
