//! Submissions to tier 1, each with its outcome.
//!
//! Invariant: every outcome is given with the page it belongs to, or none is given.

use doppel_protocol::{Outcome, Submission, Tier1Error};

use crate::app::App;
use crate::problem::Problem;

/// Why there are no outcomes.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SubmitError {
    /// None was recorded.
    #[error(transparent)]
    Tier1Error(#[from] Tier1Error),
    /// Tier 1 gave too many or too few. All submissions were recorded, and may be sent again.
    #[error("tier 1 gave {outcomes} outcomes for {submissions} submissions")]
    Unpaired {
        /// Submissions.
        submissions: usize,
        /// Outcomes.
        outcomes: usize,
    },
}

/// Records submissions in tier 1, and gives each key back beside the outcome of its submission; blocks.
///
/// # Errors
/// When tier 1 refuses, and nothing was recorded; or when it has not one outcome for each submission.
pub(crate) fn submit<K>(
    app: &App,
    submissions: Vec<(K, Submission)>,
) -> Result<Vec<(K, Outcome)>, SubmitError> {
    let (keys, submissions): (Vec<K>, Vec<Submission>) = submissions.into_iter().unzip();
    let span = tracing::debug_span!("submit", pages = submissions.len());
    let outcomes = span.in_scope(|| app.tier1().submit(submissions))?;
    if outcomes.len() != keys.len() {
        return Err(SubmitError::Unpaired { submissions: keys.len(), outcomes: outcomes.len() });
    }
    app.metrics().recorded(&outcomes);
    Ok(keys.into_iter().zip(outcomes).collect())
}

impl From<SubmitError> for Problem {
    fn from(error: SubmitError) -> Self {
        match error {
            SubmitError::Tier1Error(refused) => refused.into(),
            SubmitError::Unpaired { .. } => {
                tracing::error!(%error, "outcomes do not fit the submissions");
                Self::internal()
            }
        }
    }
}
