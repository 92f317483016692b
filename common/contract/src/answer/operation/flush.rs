//! The result of a flush: whether everything is decided, and the remaining work.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::counters::Backlog;

/// Result of a flush.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Flushed)]
pub struct FlushResult {
    /// Whether every page accepted before the call is decided.
    pub done: bool,
    /// Accepted work that is not done yet, including pages that arrived during the call.
    pub backlog: Backlog,
}
