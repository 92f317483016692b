//! The condition under which a commit of a replicated range counts as settled.

use serde::{Deserialize, Serialize};

/// Condition under which a commit of the owner is settled. The owner acknowledges a commit, and sends
/// messages and orders that result from it, only after the commit is settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Settlement {
    /// A commit is settled when the log has acknowledged it and the owner has synced it to its own disk. The
    /// log servers must sync an entry to disk before they acknowledge it.
    #[default]
    Log,
    /// A commit is settled when the log has acknowledged it and the owner and one standby have synced it to
    /// disk. This is for a log whose servers acknowledge entries before they sync them.
    Standby,
}

impl Settlement {
    /// Number of replicas, of `replicas` in all, that must report their position before one of them takes the
    /// range over automatically. The next owner counts as one of them. Under [`Standby`](Self::Standby) every
    /// settled commit is on two replicas. All replicas but one therefore include one that has the commit,
    /// whatever the log has lost.
    #[must_use]
    pub fn answers(self, replicas: usize) -> usize {
        match self {
            Self::Log => 1,
            Self::Standby => replicas.saturating_sub(1).max(1),
        }
    }
}
