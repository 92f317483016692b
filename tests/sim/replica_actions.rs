//! Actions on the replicas of a range and on its log.

use super::ownership::Successor;
use super::random::Random;
use super::violation::Checked;
use super::world::World;

/// An action on replicas. Its numbers are taken modulo the number of candidates. It has no effect on
/// unreplicated ranges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReplicaAction {
    /// From now on, one in `one_in` calls of the log fails; 0 for none.
    Fail { one_in: u8, seed: u32 },
    /// The log does not answer the next `calls` calls.
    Away { calls: u8 },
    /// Late appends land in the log.
    Land,
    /// Another node takes over while the owner lives.
    Depose(Successor),
    /// Another node takes over after the next commit counts, and before any effect of it leaves.
    DeposeNext(Successor),
    /// A deposed owner wakes up and learns that it is deposed.
    Wake { which: u8 },
    /// A standby reads on in the log.
    Follow { node: u8 },
    /// A standby dies, and restarts from its disk without the last `lost` records.
    Restart { node: u8, lost: u8 },
    /// A standby restarts with an empty disk.
    Wipe { node: u8 },
    /// The disk of a node is flushed.
    Flush { node: u8 },
    /// The log loses its last entries. Sleeping owners die with them: an owner that wakes up after the log
    /// lost the entry that deposed it needs an operator.
    LoseTail { entries: u8 },
}

/// A random action, by the habits of a run.
pub(crate) fn replica_action(random: &mut Random) -> ReplicaAction {
    let mut byte = || random.below(256) as u8;
    let (node, lost) = (byte(), byte() % 8);
    let successor =
        Successor { by: random.number(), rival: random.once_in(3), orders_first: random.once_in(2) };
    match random.below(40) {
        0..4 => {
            let one_in = [0, 2, 4, 10, 30][random.below(5) as usize];
            ReplicaAction::Fail { one_in, seed: random.number() }
        }
        4..6 => ReplicaAction::Away { calls: 1 + random.below(12) as u8 },
        6..9 => ReplicaAction::Land,
        9..13 => ReplicaAction::Depose(successor),
        13..16 => ReplicaAction::DeposeNext(successor),
        16..22 => ReplicaAction::Wake { which: node },
        22..33 => ReplicaAction::Follow { node },
        33..36 => ReplicaAction::Restart { node, lost },
        36..38 => ReplicaAction::Wipe { node },
        _ => ReplicaAction::Flush { node },
    }
}

impl World {
    pub(crate) fn act_on_replicas(&mut self, at: usize, action: ReplicaAction) -> Checked {
        let host = &mut self.hosts[at];
        let (Some(present), Some(replicas)) = (host.store.present(), &mut host.replicas) else {
            return Ok(());
        };
        let owner = present.owner();
        let is_standby = |node: usize| owner != Some(node) && !host.deposed.iter().any(|one| one.is_of(node));
        let node_of = |node: u8| Some(usize::from(node) % replicas.count()).filter(|node| is_standby(*node));
        match action {
            ReplicaAction::Fail { one_in, seed } => replicas.log.fail(one_in.into(), seed.into()),
            ReplicaAction::Away { calls } => replicas.log.go_away(calls.into()),
            ReplicaAction::Land => replicas.log.land(),
            ReplicaAction::Depose(successor) => {
                self.depose(at, successor, false)?;
            }
            ReplicaAction::DeposeNext(successor) => host.depose_next = Some(successor),
            ReplicaAction::Wake { which } => self.wake(at, which.into())?,
            ReplicaAction::Follow { node } => {
                if let Some(node) = node_of(node) {
                    replicas.follow(node)?;
                }
            }
            ReplicaAction::Restart { node, lost } => {
                if let Some(node) = node_of(node) {
                    replicas.crash(node, lost.into())?;
                }
            }
            // A disk and the end of the log are not lost in the same run.
            ReplicaAction::Wipe { .. } if replicas.loses_tail() => {}
            ReplicaAction::Wipe { node } => {
                if let Some(node) = node_of(node) {
                    replicas.wipe(node);
                }
            }
            ReplicaAction::LoseTail { entries } => {
                replicas.log.lose_tail(entries.into());
                for deposed in std::mem::take(&mut host.deposed) {
                    replicas.crash(deposed.node(), 0)?;
                }
            }
            ReplicaAction::Flush { node } => replicas.flush(usize::from(node) % replicas.count()),
        }
        Ok(())
    }
}
