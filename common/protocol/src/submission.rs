//! A page version as the coordinator submits it to tier 1, and what becomes of it.

use std::fmt;
use std::sync::Arc;

use doppel_model::signature::Signature;
use doppel_model::{PageUrl, Timestamp};
use serde::{Deserialize, Serialize};

/// A page version to record.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Submission {
    /// The page.
    pub url: PageUrl,
    /// The time of the fetch. A version whose [place](super::VersionPlace) is before that of the recorded one is stale.
    pub fetched_at: Timestamp,
    /// The popularity; larger is better. A page has that of its newest version with a popularity.
    pub popularity: Option<f64>,
    /// The language of the content.
    pub language: Option<Box<str>>,
    /// The target of `<link rel=canonical>`. It is only recorded.
    pub canonical: Option<PageUrl>,
    /// The result of the fetch.
    pub body: Body,
}

/// The result of a fetch.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Body {
    /// A content.
    Content(Arc<Signature>),
    /// A redirect, by HTTP or in the content.
    Redirect(PageUrl),
    /// The page is gone.
    Dead,
}

/// What the service did with a version of a page. The outcome is on disk when it is answered.
///
/// `unchanged`: the version has the content on record; its date and popularity count. `confirmed`: the page was decided at once. `pending`: the
/// version is recorded, and the page is still to be compared. `stale`: a better version of the page is on record or in the same request, so
/// this version does not stand for the page; its date and popularity count all the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Nothing but dates changed.
    Unchanged,
    /// Decided at once. The page is still a near-duplicate of its group's representative, or, for a page without a
    /// group, of its own last content; or it is dead, or has no tokens.
    Confirmed,
    /// Accepted, and still to be compared.
    Pending,
    /// A newer version is on record, or one of the same date that comes later in the order of versions.
    Stale,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}
