//! The processes of a replicated cluster, as each says it with which description of the cluster it runs; and which of them are
//! to be restarted, or to end.
//!
//! What they say may be lost, late, or come twice, so it decides nothing. All is bounded.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use doppel_contract::answer::Attention;
use serde::{Deserialize, Serialize};

use crate::description::Description;
use crate::description::steps::ProcessRole;

/// A process that has said nothing for so long has ended.
const SILENCE: Duration = Duration::from_secs(10);

/// One that has said something within this time runs.
const RUNS: Duration = Duration::from_secs(5);

/// Processes that are listened to.
const PROCESSES_MAX: usize = 1_024;

/// The longest name.
const NAME_BYTES_MAX: usize = 63;

/// What a process says of itself, every few seconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Presence {
    pub(crate) role: ProcessRole,
    /// Name of the node or front door.
    pub name: String,
    /// A number that no other life of it has.
    pub(crate) incarnation: u64,
    /// The version of the description that it runs with.
    pub version: u64,
    /// Whether a newer one says something else of what it does.
    pub(crate) restart: bool,
}

/// What was heard, and what META says.
#[derive(Debug)]
pub struct Processes(Mutex<ProcessTable>);

#[derive(Debug)]
struct ProcessTable {
    /// The last description that META is known to have.
    version: u64,
    description: Description,
    /// The last one of each process; coordinators may share a name.
    heard: BTreeMap<(ProcessRole, String, u64), (Presence, Instant)>,
}

impl Processes {
    /// Nothing was heard yet.
    pub fn new(version: u64, description: Description) -> Self {
        Self(Mutex::new(ProcessTable { version, description, heard: BTreeMap::new() }))
    }

    /// What META has now.
    pub(crate) fn described(&self, version: u64, description: &Description) {
        let mut known = self.lock();
        (known.version, known.description) = (version, description.clone());
    }

    /// Takes note of what a process says.
    pub(crate) fn take(&self, presence: Presence, now: Instant) {
        if presence.name.len() > NAME_BYTES_MAX {
            return;
        }
        // Nodes have one life at a time.
        let life = if presence.role == ProcessRole::Coordinator { presence.incarnation } else { 0 };
        let key = (presence.role, presence.name.clone(), life);
        let heard = &mut self.lock().heard;
        heard.retain(|_, (_, at)| now.saturating_duration_since(*at) < SILENCE);
        if heard.len() < PROCESSES_MAX || heard.contains_key(&key) {
            heard.insert(key, (presence, now));
        }
    }

    /// The nodes that were heard a short time ago, and when: each says that it is there every few seconds.
    pub fn nodes(&self, now: Instant) -> Vec<(String, Duration)> {
        let all = &self.lock().heard;
        let nodes = all.values().filter(|(presence, _)| presence.role != ProcessRole::Coordinator);
        let nodes = nodes.map(|(presence, at)| (presence.name.clone(), now.saturating_duration_since(*at)));
        nodes.filter(|(_, silence)| *silence < RUNS).collect()
    }

    /// The processes that run, and do not run as META has it.
    pub(crate) fn attention(&self, now: Instant) -> Vec<Attention> {
        let ProcessTable { version: newest, description, heard } = &*self.lock();
        let mut found = Vec::new();
        for (presence, at) in heard.values() {
            if now.saturating_duration_since(*at) >= SILENCE {
                continue;
            }
            let Presence { role, name, version, restart, .. } = presence;
            let remedy = if !role.is_in(description, name) {
                format!("stop it; `doppel cluster add` takes {name} in again")
            } else if version > newest {
                "make the change again that is missing: `doppel cluster show` shows what META has".to_owned()
            } else if *restart {
                "restart it; nodes of tier 1 one after the other, each when all is well again but for this"
                    .to_owned()
            } else {
                continue;
            };
            let what = match (role.is_in(description, name), version > newest) {
                (false, _) => format!("{role} {name} runs, and is not in the cluster any more"),
                (_, true) => format!(
                    "{role} {name} runs with version {version} of the cluster's description, and META ends with {newest}: it has \
                     lost its end"
                ),
                _ => format!(
                    "{role} {name} runs with version {version} of the cluster's description, and the present one is {newest}"
                ),
            };
            found.push(Attention { what, remedy });
        }
        found
    }

    fn lock(&self) -> MutexGuard<'_, ProcessTable> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::tests::replicated;

    fn presence(role: ProcessRole, name: &str, version: u64, restart: bool) -> Presence {
        Presence { role, name: name.to_owned(), incarnation: version, version, restart }
    }

    fn told(processes: &Processes, now: Instant) -> Vec<String> {
        processes.attention(now).into_iter().map(|one| one.what).collect()
    }

    #[test]
    fn whoever_is_to_be_restarted_or_to_end_is_told_of() {
        let (processes, now) = (Processes::new(2, replicated(|_| {})), Instant::now());
        processes.take(presence(ProcessRole::Tier1, "record", 2, false), now);
        // It has an older one that says the same of what it does.
        processes.take(presence(ProcessRole::Tier2, "index-1", 1, false), now);
        assert_eq!(told(&processes, now), [""; 0]);
        let running: Vec<String> = processes.nodes(now).into_iter().map(|(name, _)| name).collect();
        assert_eq!(
            (&*running, processes.nodes(now + RUNS).len()),
            (&["record".to_owned(), "index-1".to_owned()][..], 0)
        );
        processes.take(presence(ProcessRole::Tier2, "index-2", 1, true), now);
        processes.take(presence(ProcessRole::Coordinator, "front", 1, true), now);
        processes.take(presence(ProcessRole::Coordinator, "front", 2, false), now);
        processes.take(presence(ProcessRole::Tier1, "gone", 1, true), now);
        assert_eq!(
            told(&processes, now),
            [
                "tier-1 node gone runs, and is not in the cluster any more",
                "tier-2 node index-2 runs with version 1 of the cluster's description, and the present one is 2",
                "coordinator front runs with version 1 of the cluster's description, and the present one is 2",
            ]
        );
        // They are restarted, or have ended.
        processes.take(presence(ProcessRole::Tier2, "index-2", 2, false), now);
        assert_eq!(told(&processes, now).len(), 2);
        assert_eq!(told(&processes, now + SILENCE), [""; 0]);
        // META has lost its end.
        processes.described(1, &replicated(|_| {}));
        assert!(told(&processes, now)[1].contains("META ends with 1: it has lost its end"));
    }

    #[test]
    fn what_is_too_much_is_ignored() {
        let (processes, now) = (Processes::new(9, replicated(|_| {})), Instant::now());
        processes.take(presence(ProcessRole::Tier1, &"n".repeat(64), 1, true), now);
        assert_eq!(told(&processes, now), [""; 0]);
        for n in 0..2_000 {
            processes.take(presence(ProcessRole::Tier1, &n.to_string(), 1, true), now);
        }
        assert_eq!(told(&processes, now).len(), PROCESSES_MAX);
        processes.take(presence(ProcessRole::Tier1, "late", 1, true), now + SILENCE);
        assert_eq!(told(&processes, now + SILENCE).len(), 1);
    }
}
