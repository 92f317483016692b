//! Advice about pages: the answers of `/v1/status` and `/v1/probe`.

use doppel_model::PageUrl;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{GroupIdForm, MainContent, SimilarityForm, TimeForm};
use crate::{PageView, Rule, Status, Unresolved};

/// What Doppel says about a page.
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
    /// The page, as asked for; empty for a probe without one.
    #[schema(value_type = String)]
    pub url: String,
    /// Its status.
    pub status: Status,
    /// The group it is in, if any, such as `g12-0`.
    #[schema(value_type = Option<GroupIdForm>)]
    pub group: Option<String>,
    /// That group's winner.
    #[schema(value_type = Option<String>)]
    pub winner: Option<PageUrl>,
    /// The kept page that it is a duplicate of: the winner, or a secondary page of the group.
    #[schema(value_type = Option<String>)]
    pub duplicate_of: Option<PageUrl>,
    /// How similar it is to that page, by the policy's measure; none for redirects.
    #[schema(value_type = Option<SimilarityForm>)]
    pub similarity: Option<f64>,
    /// The time of the newest fetch, RFC 3339.
    #[schema(value_type = Option<TimeForm>)]
    pub fetched_at: Option<String>,
    /// The rule of the winner order by which the page that it is a duplicate of, or else the winner, stands before this
    /// page.
    pub rule: Option<Rule>,
    /// Why a redirect is unresolved. `unknown_target`: a page of the chain is not on record. `dead_target`: a page of the chain is dead;
    /// once its record is dropped (`--keep-dead`), the reason is `unknown_target`. `loop`, `too_many_hops`: the chain comes to no end.
    pub reason: Option<Unresolved>,
    /// Where a redirect leads; absent for other pages.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub redirect_to: Option<PageUrl>,
    /// What limits the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Where a range has no owner that answers, a replica does: the answer is true of a moment no longer ago than so many
    /// milliseconds, at most 5,000. Absent as a rule: then it is of the owners.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub age_ms: Option<u64>,
}

impl Advice {
    /// The advice for a page that is not on record.
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

    /// The advice by the record alone. The caller has to verify it before it answers `duplicate`.
    #[must_use]
    pub fn on_record(view: &PageView) -> Self {
        Self {
            status: view.line.status,
            group: view.line.group.map(|group| group.to_string()),
            winner: view.line.winner.clone(),
            fetched_at: Some(view.fetched_at.to_string()),
            reason: view.unresolved,
            redirect_to: view.redirect_to.clone(),
            ..Self::unknown(view.rank.url.to_string())
        }
    }
}

/// Advice about a page that is not stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Probed {
    /// What it would be.
    #[serde(flatten)]
    pub advice: Advice,
    /// Under a policy that compares the main content, of HTML: what of it is compared, and what is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub main_content: Option<MainContent>,
}

/// Advice about many pages.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct StatusAnswers {
    /// One answer per URL, in order.
    pub pages: Vec<StatusAnswer>,
}

/// The answer to one URL of many.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum StatusAnswer {
    /// A page.
    Advice(Box<Advice>),
    /// Not a page URL.
    Bad {
        /// As given.
        url: String,
        /// Why it is none.
        error: String,
    },
}
