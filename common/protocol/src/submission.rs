//! A page version as the coordinator submits it to tier 1, and what becomes of it.

use std::fmt;
use std::sync::Arc;

use doppel_model::signature::Signature;
use doppel_model::{PageUrl, Timestamp};
use serde::{Deserialize, Serialize};

/// A page version to record.
#[derive(Debug, Clone)]
pub struct Submission {
    /// The page.
    pub url: PageUrl,
    /// When it was fetched. A version older than the one on record is stale.
    pub fetched_at: Timestamp,
    /// Larger is better; none leaves what is known.
    pub popularity: Option<f64>,
    /// Language of the content.
    pub language: Option<Box<str>>,
    /// `<link rel=canonical>`, recorded only.
    pub canonical: Option<PageUrl>,
    /// What was fetched.
    pub body: Body,
}

/// What was fetched.
#[derive(Debug, Clone)]
pub enum Body {
    /// A content.
    Content(Arc<Signature>),
    /// A redirect, by HTTP or in content.
    Redirect(PageUrl),
    /// Gone.
    Dead,
}

/// What became of a submission, durably.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Nothing but dates changed.
    Unchanged,
    /// Settled at once: still a near-duplicate of its group's representative (a page on its own: of
    /// its last content), or dead, or without tokens.
    Confirmed,
    /// Accepted; to be compared.
    Pending,
    /// A newer version is on record.
    Stale,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}
