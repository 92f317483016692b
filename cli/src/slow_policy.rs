//! Warns of policies with a threshold so low that time grows with the square of the number of pages
//! (docs/reference/policies.md, Candidates).

use doppel_model::pairwise::Policy;

/// Returns a warning if the policy is slow, for users who create a collection with it.
#[must_use]
pub(crate) fn warning(policy: Policy) -> Option<String> {
    let is_slow = policy.bands().is_some_and(|bands| bands.rows == 1);
    is_slow.then(|| {
        format!(
            "{policy}: below a threshold of 0.46 time grows with the square of the number of pages; the threshold of a \
             collection that is kept never changes"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_threshold_counts() {
        let warns = |policy: &str| warning(policy.parse().unwrap()).is_some();
        for slow in ["jaccard:tau=0.45", "content:tau=0.3", "copies:text=0.4"] {
            assert!(warns(slow), "{slow}");
        }
        for quick in ["jaccard", "jaccard:tau=0.46", "content:tau=0.46", "copies", "simhash", "overlap"] {
            assert!(!warns(quick), "{quick}");
        }
    }
}
