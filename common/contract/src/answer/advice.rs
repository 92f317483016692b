//! Advice about pages: the answers of `/v1/status` and `/v1/probe`.

use doppel_model::PageUrl;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{GroupIdForm, MainContentAnswer, SimilarityForm, TimeForm};
use crate::status::{Status, UnresolvedReason};
use crate::winner_rule::WinnerRule;

/// What Doppel advises about a page.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(examples(
    json!({
        "url": "https://mirror.example.org/hours", "status": "duplicate", "group": "g12-0",
        "winner": "https://example.org/hours", "duplicate_of": "https://example.org/hours", "similarity": 0.8701,
        "fetched_at": "2026-01-31T08:00:00Z", "rule": "day_first_seen", "reason": null,
    }),
    json!({
        "url": "https://example.org/never-seen", "status": "unknown", "group": null, "winner": null, "duplicate_of": null,
        "similarity": null, "fetched_at": null, "rule": null, "reason": null,
    }),
))]
pub struct Advice {
    /// URL of the page, as in the request. Empty for a probe without a URL.
    #[schema(value_type = String)]
    pub url: String,
    /// Status of the page.
    pub status: Status,
    /// Group of the page, such as `g12-0`; null if the page is in no group.
    #[schema(value_type = Option<GroupIdForm>)]
    pub group: Option<String>,
    /// Winner of the group; null if the page is in no group.
    #[schema(value_type = Option<String>)]
    pub winner: Option<PageUrl>,
    /// The kept page that this page duplicates: the winner, or a secondary page of the group. Null if the
    /// page is not a duplicate.
    #[schema(value_type = Option<String>)]
    pub duplicate_of: Option<PageUrl>,
    /// Similarity between the page and `duplicate_of`, by the measure of the policy. Null for redirects.
    #[schema(value_type = Option<SimilarityForm>)]
    pub similarity: Option<f64>,
    /// Time of the newest fetch of the page (RFC 3339).
    #[schema(value_type = Option<TimeForm>)]
    pub fetched_at: Option<String>,
    /// The rule of the winner order that puts `duplicate_of` before this page. Without `duplicate_of`, the
    /// rule that puts the winner before this page.
    pub rule: Option<WinnerRule>,
    /// Why the redirect is unresolved. `unknown_target`: a page of the redirect chain is not on record.
    /// `dead_target`: a page of the chain is dead; after retention drops its record (`--keep-dead`), the
    /// reason becomes `unknown_target`. `loop` and `too_many_hops`: the chain has no end, or is too long to
    /// follow.
    pub reason: Option<UnresolvedReason>,
    /// Target of the redirect; absent for other pages.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub redirect_to: Option<PageUrl>,
    /// A limitation of the answer, in words; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Greatest possible age of the answer in milliseconds, at most 5,000. Present only if a replica answered
    /// in place of an owner that does not respond. Normally absent: owners answer with the current state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub age_ms: Option<u64>,
}

impl Advice {
    /// Creates the advice for a page that is not on record.
    #[must_use]
    pub fn unknown(url: String) -> Self {
        Self {
            url,
            status: Status::Unknown,
            group: None,
            winner: None,
            duplicate_of: None,
            similarity: None,
            fetched_at: None,
            rule: None,
            reason: None,
            redirect_to: None,
            note: None,
            age_ms: None,
        }
    }
}

/// Advice about a page that is not stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = Probed)]
pub struct ProbeAnswer {
    /// The advice that the page would get if it were stored.
    #[serde(flatten)]
    pub advice: Advice,
    /// How the main content of an HTML page was found. Present only under a policy that compares the main
    /// content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub main_content: Option<MainContentAnswer>,
}

/// Advice about many pages.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct StatusAnswers {
    /// One answer for each URL, in the order of the request.
    pub pages: Vec<StatusAnswer>,
}

/// The answer to one URL of a request for many.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum StatusAnswer {
    /// Advice about the page.
    Advice(Box<Advice>),
    /// The text is not a valid page URL.
    Bad {
        /// The text, as in the request.
        url: String,
        /// Why the text is not a valid page URL.
        error: String,
    },
}
