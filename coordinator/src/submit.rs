//! Submissions to tier 1, each with its outcome.
//!
//! Invariant: every outcome is given with the page it belongs to, or none is given.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use doppel_protocol::{Outcome, Submission, Tier1Error};

use crate::access::Caller;
use crate::app::App;
use crate::problem::Problem;

/// Tier 1 gave too many or too few. All submissions were recorded, and may be sent again.
#[derive(Debug, thiserror::Error)]
#[error("tier 1 gave {outcomes} outcomes for {submissions} submissions")]
pub(crate) struct Unpaired {
    /// Submissions.
    submissions: usize,
    /// Outcomes.
    outcomes: usize,
}

/// A submission's key and what came of it.
type Recorded<K> = (K, Result<Outcome, Tier1Error>);

/// Records submissions of a client in tier 1, and gives each key back beside the outcome of its submission, or the refusal; blocks.
///
/// # Errors
/// When tier 1 has not one answer for each submission.
pub(crate) fn submit<K>(
    app: &App,
    caller: &Caller,
    submissions: Vec<(K, Submission)>,
) -> Result<Vec<Recorded<K>>, Unpaired> {
    let (keys, submissions): (Vec<K>, Vec<Submission>) = submissions.into_iter().unzip();
    let span = tracing::debug_span!("submit", pages = submissions.len());
    let outcomes = span.in_scope(|| app.tier1().submit_each(caller.client(), submissions));
    if outcomes.len() != keys.len() {
        return Err(Unpaired { submissions: keys.len(), outcomes: outcomes.len() });
    }
    if let Some(Err(full @ Tier1Error::ClientFull { .. })) = outcomes.last() {
        warn_of_flood(caller, full);
    }
    let recorded: Vec<Outcome> = outcomes.iter().flatten().copied().collect();
    app.metrics().recorded(&recorded);
    Ok(keys.into_iter().zip(outcomes).collect())
}

/// Seconds between two warnings about clients that have as many pending pages as one client may have.
const WARNING_SECONDS: u64 = 60;

/// Tells operators which client sends pages faster than they are decided.
fn warn_of_flood(caller: &Caller, full: &Tier1Error) {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let (now, next) = (START.elapsed().as_secs(), NEXT.load(Ordering::Relaxed));
    let is_due = now >= next
        && NEXT.compare_exchange(next, now + WARNING_SECONDS, Ordering::Relaxed, Ordering::Relaxed).is_ok();
    if is_due {
        tracing::warn!(client = caller.shown(), reason = %full, "a client sends pages faster than they are decided, and gets 429");
    }
}

impl From<Unpaired> for Problem {
    fn from(error: Unpaired) -> Self {
        tracing::error!(%error, "outcomes do not fit the submissions");
        Self::internal()
    }
}
