//! A page version that the coordinator submits to tier 1, and its outcome.

use std::fmt;
use std::sync::Arc;

use doppel_model::signature::Signature;
use doppel_model::{PageUrl, Timestamp};
use serde::{Deserialize, Serialize};

/// A page version to record.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Submission {
    /// URL of the page.
    pub url: PageUrl,
    /// Time of the fetch. A version whose [place](super::VersionPlace) precedes that of the recorded version
    /// is stale.
    pub fetched_at: Timestamp,
    /// Popularity of the page; larger is better. The popularity of a page comes from its newest version that
    /// has one.
    pub popularity: Option<f64>,
    /// Language of the content.
    pub language: Option<Box<str>>,
    /// Target of `<link rel=canonical>`. It is only recorded.
    pub canonical: Option<PageUrl>,
    /// Result of the fetch.
    pub body: Body,
}

/// Result of a fetch.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Body {
    /// The fetch returned a content.
    Content(Arc<Signature>),
    /// The fetch returned a redirect, by HTTP or in the content.
    Redirect(PageUrl),
    /// The page no longer exists.
    Dead,
}

/// What the service did with a version of a page. The outcome is on disk before the service returns it.
///
/// `unchanged`: the version has the content on record, so only its date and popularity count. `confirmed`:
/// the page was decided at once. `pending`: the version is recorded, and the page waits for comparison.
/// `stale`: a better version of the page is on record or in the same request, so this version does not
/// represent the page. Its date and popularity still count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// At most dates changed.
    Unchanged,
    /// The page was decided at once, because it is dead, has no tokens, or is still a near-duplicate of its
    /// group's representative. A page without a group is compared with its own last content.
    Confirmed,
    /// The page was accepted and waits for comparison.
    Pending,
    /// A newer version is on record. Versions of the same date also have an order.
    Stale,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}
