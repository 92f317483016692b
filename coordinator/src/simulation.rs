//! Advice without a server, for the simulation (feature `simulation`).

use doppel_contract::answer::Advice;
use doppel_model::PageUrl;
use doppel_model::pairwise::Policy;
use doppel_protocol::{Tier1Api, Tier1Error, WinnerOrder};

use doppel_engine::advise::Advisor;

/// Returns the advice that `GET /v1/status` gives on a page.
///
/// # Errors
/// If tier 1 cannot be read.
pub fn advise(
    tier1: &dyn Tier1Api,
    policy: Policy,
    winners: WinnerOrder,
    url: &PageUrl,
) -> Result<Advice, Tier1Error> {
    Advisor::new(tier1, policy, winners, None).advise(url)
}
