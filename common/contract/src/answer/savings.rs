//! What removing duplicates saves: the answer of `GET /v1/reports/savings`, and the same report about files.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// How much of a collection can be removed, by kind of duplicate, and which hosts mirror each other.
///
/// Shares relate to all live pages, or to their bytes. Bytes count the text or HTML as it was fetched. They
/// are null in the report of a server, because a server does not store them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Savings {
    /// Policy of the collection with its parameters.
    pub policy: String,
    /// Number of live pages that were examined.
    pub pages: u64,
    /// Size of the examined pages in bytes.
    pub bytes: Option<u64>,
    /// Whether some pages were not examined, because there are too many.
    pub truncated: bool,
    /// Redirects to a kept page or to a duplicate of a kept page.
    pub redirects: RemovableShare,
    /// Saving from removing only exact copies: for each content, every page but one. If the policy compares
    /// the site of a page, equal contents on two sites count as near-duplicates.
    pub copies: RemovableShare,
    /// Additional saving from removing near-duplicates.
    pub near: RemovableShare,
    /// Saving from redirects, copies and near-duplicates together.
    pub all: RemovableShare,
    /// Number of exact copies that are kept for now, because their group is quarantined or they are not
    /// decided yet. A group is quarantined if it has too many distinct contents.
    pub held_back: u64,
    /// Number of pages that are not decided yet.
    pub undecided: u64,
    /// Number of removable pages whose kept page is on the same host. Pages of files and records have no
    /// host.
    pub on_one_host: u64,
    /// Number of removable pages whose kept page is on another host.
    pub across_hosts: u64,
    /// Which hosts mirror which, in descending order of pages.
    pub mirrors: Vec<HostMirror>,
    /// Number of removable pages on pairs of hosts that are not listed.
    pub mirrors_left_out: u64,
    /// Whether rarer pairs of hosts were dropped, because there were too many pairs. The numbers of the
    /// listed pairs are then lower bounds.
    pub mirrors_cut: bool,
    /// Age of the report in milliseconds; absent if the report was computed for this answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub age_ms: Option<u64>,
}

/// How much can be removed.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, ToSchema)]
#[schema(as = Saving)]
pub struct RemovableShare {
    /// Number of removable pages.
    pub pages: u64,
    /// Share of the removable pages in all live pages, from 0 to 1.
    pub share: f64,
    /// Size of the removable pages in bytes.
    pub bytes: Option<u64>,
    /// Share of the removable bytes in all bytes, from 0 to 1.
    pub bytes_share: Option<f64>,
}

/// Pages of one host that can be removed because another host has kept pages for them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Mirror)]
pub struct HostMirror {
    /// The host of the pages that can be removed.
    pub host: String,
    /// The host of the kept pages.
    pub of: String,
    /// Number of removable pages.
    pub pages: u64,
    /// Number of removable pages that have the same content as their kept page.
    pub copies: u64,
    /// Number of removable pages that are near-duplicates of their kept page.
    pub near: u64,
    /// Number of removable pages that are redirects.
    pub redirects: u64,
    /// Size of the removable pages in bytes.
    pub bytes: Option<u64>,
}
