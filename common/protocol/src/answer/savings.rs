//! What dropping duplicates saves: the answer of `GET /v1/reports/savings`, and of the same report on files.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What can be dropped of a collection, by what it takes to find it, and which hosts mirror which.
///
/// Shares are of all live pages, and of their bytes. Bytes are those of the text or HTML as it was fetched; a server does not
/// keep them, so there they are null.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Savings {
    /// The policy, with its parameters.
    pub policy: String,
    /// Live pages that were examined.
    pub pages: u64,
    /// Their bytes.
    pub bytes: Option<u64>,
    /// Whether there are more pages, which were not examined.
    pub truncated: bool,
    /// Redirects to a page that is kept, or to a duplicate of one.
    pub redirects: Saving,
    /// What dropping exact copies alone would save: of each content all pages but one. What a copy is, is what the policy says
    /// of equal contents: where it reads the site, copies on two sites are near-duplicates.
    pub copies: Saving,
    /// What near-duplicates save beyond that.
    pub near: Saving,
    /// All of these.
    pub all: Saving,
    /// Exact copies that are kept all the same: they are in groups that are quarantined for the number of their contents, or not decided yet.
    pub held_back: u64,
    /// Pages that are not decided yet.
    pub undecided: u64,
    /// Pages that can be dropped whose kept page is on the same host. Pages of files and records are on no host.
    pub on_one_host: u64,
    /// Pages that can be dropped whose kept page is on another host.
    pub across_hosts: u64,
    /// Which hosts mirror which, the pair with the most pages first.
    pub mirrors: Vec<Mirror>,
    /// Pages on two hosts whose pair is not listed.
    pub mirrors_left_out: u64,
    /// Whether there were so many pairs of hosts that the rarer ones were forgotten: the listed ones have at least so many pages.
    pub mirrors_cut: bool,
    /// How long ago it was made, in milliseconds; absent where it was made for this answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub age_ms: Option<u64>,
}

/// What can be dropped.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, ToSchema)]
pub struct Saving {
    /// Pages.
    pub pages: u64,
    /// Their share of all live pages, 0 to 1.
    pub share: f64,
    /// Bytes of these pages.
    pub bytes: Option<u64>,
    /// Their share of all bytes, 0 to 1.
    pub bytes_share: Option<f64>,
}

/// Pages of one host that can be dropped for pages of another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Mirror {
    /// The host that has the pages which can be dropped.
    pub host: String,
    /// The host that has the pages which are kept.
    pub of: String,
    /// Pages that can be dropped.
    pub pages: u64,
    /// Those of them that have the same content as the page that is kept.
    pub copies: u64,
    /// Those that are near-duplicates of it.
    pub near: u64,
    /// Those that redirect.
    pub redirects: u64,
    /// Bytes of these pages.
    pub bytes: Option<u64>,
}
