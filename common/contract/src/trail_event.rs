//! The kinds of entries in the audit trail of repairs and quarantines.

use serde::{Deserialize, Serialize};

/// Kind of an entry in the audit trail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum TrailEvent {
    /// An operator requested a repair.
    Repair,
    /// The group was quarantined, because it has too many distinct contents to give advice.
    Quarantined,
    /// The quarantine ended: after a repair, because the group became small enough, or because the group is
    /// no longer in use.
    Released,
}
