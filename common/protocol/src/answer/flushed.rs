//! What is left after a flush.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Backlog;

/// What is left after a flush.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Flushed {
    /// Whether everything accepted before the call is decided.
    pub done: bool,
    /// Accepted work that is not yet done, including pages that came during the call.
    pub backlog: Backlog,
}
