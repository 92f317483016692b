//! Submits pages to tier 1 and returns each submission's outcome.
//!
//! Invariant: every outcome is returned with its own page. If outcomes and pages do not correspond, no
//! outcome is returned.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};

use doppel_contract::SubmissionOutcome;
use doppel_model::ClientId;
use doppel_protocol::{Submission, Tier1Error};

use crate::access::Caller;
use crate::app::App;
use crate::problem::Problem;

/// Error for a number of outcomes that differs from the number of submissions. All submissions were recorded,
/// and the client may send them again.
#[derive(Debug, thiserror::Error)]
#[error("tier 1 returned {outcomes} outcomes for {submissions} submissions")]
pub(crate) struct OutcomeCountError {
    /// Number of submissions.
    submissions: usize,
    /// Number of outcomes.
    outcomes: usize,
}

/// Key of a submission, with the outcome or the refusal.
type KeyedOutcome<K> = (K, Result<SubmissionOutcome, Tier1Error>);

/// Records submissions of a client in tier 1. Returns each key with the outcome or refusal of its submission.
/// Blocks.
///
/// # Errors
/// If tier 1 does not return exactly one answer for each submission.
pub(crate) fn submit<K>(
    app: &App,
    caller: &Caller,
    submissions: Vec<(K, Submission)>,
) -> Result<Vec<KeyedOutcome<K>>, OutcomeCountError> {
    let (keys, submissions): (Vec<K>, Vec<Submission>) = submissions.into_iter().unzip();
    let span = tracing::debug_span!("submit", pages = submissions.len());
    let outcomes = span.in_scope(|| app.tier1().submit_each(caller.client(), submissions));
    if outcomes.len() != keys.len() {
        return Err(OutcomeCountError { submissions: keys.len(), outcomes: outcomes.len() });
    }
    let is_full = |refused: &&Tier1Error| matches!(refused, Tier1Error::ClientFull { .. });
    if let Some(full) = outcomes.iter().filter_map(|outcome| outcome.as_ref().err()).find(is_full) {
        warn_of_flood(caller, full);
    }
    let recorded: Vec<SubmissionOutcome> = outcomes.iter().flatten().copied().collect();
    app.metrics().recorded(&recorded);
    Ok(keys.into_iter().zip(outcomes).collect())
}

/// Pause between two warnings about one client whose pages are refused.
const WARNING_PAUSE: Duration = Duration::from_secs(60);

/// Clients whose last warning is remembered. Beyond them, no further client is named within the pause.
const WARNED_CLIENTS_MAX: usize = 1_000;

/// Tells operators which client sends pages faster than they are decided.
fn warn_of_flood(caller: &Caller, full: &Tier1Error) {
    static WARNED: LazyLock<Mutex<HashMap<ClientId, Instant>>> = LazyLock::new(Mutex::default);
    let now = Instant::now();
    let mut warned = WARNED.lock().unwrap_or_else(PoisonError::into_inner);
    warned.retain(|_, at| now.saturating_duration_since(*at) < WARNING_PAUSE);
    if warned.len() < WARNED_CLIENTS_MAX && !warned.contains_key(&caller.client()) {
        warned.insert(caller.client(), now);
        drop(warned);
        tracing::warn!(
            client = caller.shown(),
            reason = %full,
            "a client sends pages faster than they are decided, and its pages are refused"
        );
    }
}

impl From<OutcomeCountError> for Problem {
    fn from(error: OutcomeCountError) -> Self {
        tracing::error!(%error, "cannot match outcomes to submissions; the request gets 500");
        Self::internal()
    }
}
