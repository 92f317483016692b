//! What happens to the replicas of a range and to its log.

use super::ownership::Successor;
use super::random::Random;
use super::violation::Checked;
use super::world::World;

/// Whatever it is about is taken modulo what there is. Nothing happens where ranges are not replicated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReplicaAction {
    /// From now on one in so many calls of the log fails; 0 for none.
    Fail { one_in: u8, seed: u32 },
    /// The log answers none of the next calls.
    Away { calls: u8 },
    /// What is late lands in the log.
    Land,
    /// Another node takes over while the owner lives.
    Depose(Successor),
    /// The same between the next commit that counts and anything of it that leaves.
    DeposeNext(Successor),
    /// A deposed owner finds that out.
    Wake { which: u8 },
    /// A standby reads on.
    Follow { node: u8 },
    /// A standby dies, and begins with what its disk has: not the last records.
    Restart { node: u8, lost: u8 },
    /// A standby begins with an empty disk.
    Wipe { node: u8 },
    /// The disk of a node is flushed.
    Flush { node: u8 },
    /// The log loses its last entries. Owners that sleep die with it: one that wakes up behind the loss of what deposed it is
    /// left to a person.
    LoseTail { entries: u8 },
}

/// One of them, by the habits of a run.
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
            // A disk and the end of the log are not lost at once.
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
