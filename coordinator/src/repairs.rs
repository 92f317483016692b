//! `GET /v1/repairs` and `GET /v1/repairs/{id}`: the trail of repairs that were applied.
//!
//! The list has counts alone, so that its pieces are small whatever was repaired; the URLs of one repair are
//! asked for by its id, and there are never more than a repair's own answer has.

use axum::Json;
use axum::extract::State;
use doppel_protocol::{NoRepairPosition, RepairEntry, RepairPosition};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::app::App;
use crate::extract::{self, Query, RepairPath, number};
use crate::limits::{LIST, LIST_DEFAULT};
use crate::problem::Problem;

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct TrailQuery {
    /// Only repairs of this group. Those of a group that was merged into it stay under the old id.
    group: Option<String>,
    /// What an earlier answer gave as `next`.
    before: Option<String>,
    /// The most repairs of the answer, 1 to 1,000.
    limit: Option<usize>,
}

/// A repair that was applied.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AppliedRepair {
    /// Names it.
    id: String,
    /// When, RFC 3339.
    at: String,
    /// Who asked for it, as they said.
    by: String,
    /// The group, under the id that it had then.
    group: String,
    /// Members before.
    members: u64,
    /// Sets that they fell into, one when nothing was wrong; where `truncated` those that were written down.
    sets: u64,
    /// Whether not all URLs were written down, because there were more than 10,000.
    truncated: bool,
}

impl From<RepairEntry> for AppliedRepair {
    fn from(entry: RepairEntry) -> Self {
        let RepairEntry { id, at, by, group, members, sets, truncated } = entry;
        let (id, at, group) = (id.to_string(), at.to_string(), group.to_string());
        Self { id, at, by, group, members, sets, truncated }
    }
}

/// A piece of the trail.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Trail {
    /// Newest first.
    repairs: Vec<AppliedRepair>,
    /// What to pass as `before` to go on; none at the end. A search for the repairs of one group may stop in
    /// between with few of them or none.
    next: Option<String>,
}

/// List the repairs that were applied, newest first.
///
/// A dry run is not among them, nor what the service recomputes by itself.
#[utoipa::path(
    get, path = "/v1/repairs", tag = "groups", params(TrailQuery),
    responses(
        (status = 200, body = Trail),
        (status = 400, description = "A parameter is wrong", body = Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn list(
    State(app): State<App>,
    Query(query): Query<TrailQuery>,
) -> Result<Json<Trail>, Problem> {
    let limit = number("limit", query.limit, LIST_DEFAULT, 1, LIST)?;
    let group = query.group.map(|id| extract::group("group", &id)).transpose()?;
    let shards = app.shard_map().rows().len();
    let position = |text: String| -> Result<RepairPosition, NoRepairPosition> {
        text.parse().ok().filter(|at: &RepairPosition| at.numbers().len() == shards).ok_or(NoRepairPosition)
    };
    let before = query.before.map(position).transpose();
    let before = before.map_err(|error| Problem::field("before", error.to_string()))?;
    app.blocking(move |app| {
        let trail = app.tier1().repairs(group, before.as_ref(), limit)?;
        let next = trail.next.map(|next| next.to_string());
        Ok(Json(Trail { repairs: trail.repairs.into_iter().map(AppliedRepair::from).collect(), next }))
    })
    .await
}

/// A repair that was applied, with its URLs.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AppliedRepairUrls {
    #[serde(flatten)]
    repair: AppliedRepair,
    /// Members before, at most 10,000.
    before: Vec<String>,
    /// The sets they fell into, the winner's first, with at most 10,000 URLs. The winner's set gives way to
    /// the others. A set is empty when all its pages are forgotten.
    components: Vec<Vec<String>>,
    /// Pages whose URLs are not listed any more: they were purged, or were dead and are on record no more.
    forgotten: u64,
}

/// Show a repair that was applied, before and after.
#[utoipa::path(
    get, path = "/v1/repairs/{id}", tag = "groups",
    params(("id" = String, Path, description = "Id of a repair such as r7-0")),
    responses(
        (status = 200, body = AppliedRepairUrls),
        (status = 400, description = "Not the id of a repair", body = Problem, content_type = "application/problem+json"),
        (status = 404, description = "No such repair, or it was dropped after its time", body = Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn get(
    State(app): State<App>,
    RepairPath(id): RepairPath,
) -> Result<Json<AppliedRepairUrls>, Problem> {
    app.blocking(move |app| {
        let details = app.tier1().repair_details(id)?;
        let details = details.ok_or_else(|| Problem::not_found(format!("there is no repair {id}")))?;
        let urls = |pages: Vec<_>| pages.into_iter().map(String::from).collect();
        Ok(Json(AppliedRepairUrls {
            repair: details.entry.into(),
            before: urls(details.before),
            components: details.components.into_iter().map(urls).collect(),
            forgotten: details.forgotten,
        }))
    })
    .await
}
