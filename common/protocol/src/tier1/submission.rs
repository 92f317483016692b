//! A page version that the coordinator submits to tier 1, and its outcome.

use std::sync::Arc;

use doppel_model::signature::Signature;
use doppel_model::{PageUrl, Timestamp};
use serde::{Deserialize, Serialize};

/// A page version to record.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Submission {
    /// URL of the page.
    pub url: PageUrl,
    /// Time of the fetch. A version whose [place](crate::VersionPlace) precedes that of the recorded version
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
