//! The processes of a replicated cluster. Each publishes its presence, with the description that it runs
//! with. From these reports follows which processes must be restarted or stopped.
//!
//! A presence can be lost, late or duplicated, so presences serve for advice only and decide nothing. Their
//! number and size are bounded.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use doppel_contract::answer::Attention;
use serde::{Deserialize, Serialize};

use crate::description::Description;
use crate::description::steps::ProcessRole;

/// A process that was not heard for this time counts as ended.
const ENDED_AFTER: Duration = Duration::from_secs(10);

/// A process that was heard within this time counts as running.
const RUNS: Duration = Duration::from_secs(5);

/// Largest number of processes in the table; reports of further ones are dropped.
const PROCESSES_MAX: usize = 1_024;

/// Longest accepted name, in bytes.
const NAME_BYTES_MAX: usize = 63;

/// What a process publishes about itself every few seconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Presence {
    pub(crate) role: ProcessRole,
    /// Name of the node or coordinator.
    pub name: String,
    /// Random number, drawn anew at each start of the process.
    pub(crate) incarnation: u64,
    /// Version of the description that the process runs with.
    pub version: u64,
    /// Whether a newer description differs in the part that concerns this process.
    pub(crate) restart: bool,
}

/// The presences that were heard, and the description that META has.
#[derive(Debug)]
pub struct Processes(Mutex<ProcessTable>);

#[derive(Debug)]
struct ProcessTable {
    /// Version of the last description that was read from META.
    version: u64,
    description: Description,
    /// The last presence of each process and its time. Coordinators may share a name, so the incarnation is
    /// in the key.
    heard: BTreeMap<(ProcessRole, String, u64), (Presence, Instant)>,
}

impl Processes {
    /// Creates the table, with the description of META and without presences.
    pub fn new(version: u64, description: Description) -> Self {
        Self(Mutex::new(ProcessTable { version, description, heard: BTreeMap::new() }))
    }

    /// Records the description that META has now.
    pub(crate) fn described(&self, version: u64, description: &Description) {
        let mut known = self.lock();
        (known.version, known.description) = (version, description.clone());
    }

    /// Records the presence of a process. Ignores it if its name is too long, or if the table is full.
    pub(crate) fn take(&self, presence: Presence, now: Instant) {
        if presence.name.len() > NAME_BYTES_MAX {
            return;
        }
        // Only one process of a node runs at a time, so a new incarnation replaces the old one.
        let life = if presence.role == ProcessRole::Coordinator { presence.incarnation } else { 0 };
        let key = (presence.role, presence.name.clone(), life);
        let heard = &mut self.lock().heard;
        heard.retain(|_, (_, at)| now.saturating_duration_since(*at) < ENDED_AFTER);
        if heard.len() < PROCESSES_MAX || heard.contains_key(&key) {
            heard.insert(key, (presence, now));
        }
    }

    /// The nodes that count as running, with the time since each was heard.
    pub fn nodes(&self, now: Instant) -> Vec<(String, Duration)> {
        let all = &self.lock().heard;
        let nodes = all.values().filter(|(presence, _)| presence.role != ProcessRole::Coordinator);
        let nodes = nodes.map(|(presence, at)| (presence.name.clone(), now.saturating_duration_since(*at)));
        nodes.filter(|(_, silence)| *silence < RUNS).collect()
    }

    /// Warnings about processes that run with an outdated description or no longer belong to the cluster.
    pub(crate) fn attention(&self, now: Instant) -> Vec<Attention> {
        let ProcessTable { version: newest, description, heard } = &*self.lock();
        let mut found = Vec::new();
        for (presence, at) in heard.values() {
            if now.saturating_duration_since(*at) >= ENDED_AFTER {
                continue;
            }
            let Presence { role, name, version, restart, .. } = presence;
            let remedy = if !role.is_in(description, name) {
                format!("stop it; to use {name} again, run `doppel cluster add`")
            } else if version > newest {
                "repeat the lost change: `doppel cluster show` shows what META has".to_owned()
            } else if *restart {
                "restart it; restart nodes of tier 1 one after the other, each when no other problem is left"
                    .to_owned()
            } else {
                continue;
            };
            let what = match (role.is_in(description, name), version > newest) {
                (false, _) => format!("{role} {name} runs, and is not in the cluster any more"),
                (_, true) => format!(
                    "{role} {name} runs with version {version} of the cluster's description, and META ends with {newest}: \
                     META has lost its last entries"
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
    fn outdated_and_removed_processes_cause_warnings() {
        let (processes, now) = (Processes::new(2, replicated(|_| {})), Instant::now());
        processes.take(presence(ProcessRole::Tier1, "record", 2, false), now);
        // An older description without a relevant difference needs no restart.
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
        // The processes are restarted or have ended.
        processes.take(presence(ProcessRole::Tier2, "index-2", 2, false), now);
        assert_eq!(told(&processes, now).len(), 2);
        assert_eq!(told(&processes, now + ENDED_AFTER), [""; 0]);
        // META has lost its last entries.
        processes.described(1, &replicated(|_| {}));
        assert!(told(&processes, now)[1].contains("META ends with 1: META has lost its last entries"));
    }

    #[test]
    fn long_names_and_too_many_processes_are_ignored() {
        let (processes, now) = (Processes::new(9, replicated(|_| {})), Instant::now());
        processes.take(presence(ProcessRole::Tier1, &"n".repeat(64), 1, true), now);
        assert_eq!(told(&processes, now), [""; 0]);
        for n in 0..2_000 {
            processes.take(presence(ProcessRole::Tier1, &n.to_string(), 1, true), now);
        }
        assert_eq!(told(&processes, now).len(), PROCESSES_MAX);
        processes.take(presence(ProcessRole::Tier1, "late", 1, true), now + ENDED_AFTER);
        assert_eq!(told(&processes, now + ENDED_AFTER).len(), 1);
    }
}
