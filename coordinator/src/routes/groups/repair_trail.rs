//! `GET /v1/repairs` and `GET /v1/repairs/{id}`: the audit trail of applied repairs.
//!
//! The list contains only counts, so that its entries are small for repairs of any size. A client asks for
//! the URLs of a repair by its id. Such an answer never has more URLs than the answer to the repair itself.

use axum::Json;
use axum::extract::State;
use doppel_contract::answer::{AppliedRepair, AppliedRepairUrls, GroupIdForm, RepairIdForm, Trail};
use doppel_protocol::{InvalidRepairPosition, RepairPosition};
use serde::Deserialize;
use utoipa::IntoParams;

use crate::app::App;
use crate::contract::refusals;
use crate::limits::{LIST, LIST_DEFAULT};
use crate::problem::Problem;
use crate::request::extract::{self, Query, RepairPath, number};

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct TrailQuery {
    /// Return only entries of this group. Entries of a group that was merged into it keep the old id.
    #[param(value_type = Option<GroupIdForm>)]
    group: Option<String>,
    /// Position at which the list continues: `next` of an earlier answer.
    #[param(max_length = 17_408, pattern = "^[0-9A-Fa-f]+(\\.[0-9A-Fa-f]+)*$")]
    before: Option<String>,
    /// Maximum number of entries in the answer, 1 to 1,000. Default: 100.
    #[param(minimum = 1, maximum = 1_000)]
    limit: Option<usize>,
}

/// List applied repairs, and quarantines that began or ended, newest first.
///
/// The list has no dry runs, and no groups that the service recomputed on its own.
#[utoipa::path(
    get, path = "/v1/repairs", operation_id = "list_repairs", tag = "groups", params(TrailQuery),
    responses(
        (status = 200, description = "Some entries, and the position at which the list continues", body = Trail),
        (status = 400, description = "A parameter is invalid"),
        refusals::Reads,
    ),
)]
pub(crate) async fn list(
    State(app): State<App>,
    Query(query): Query<TrailQuery>,
) -> Result<Json<Trail>, Problem> {
    let limit = number("limit", query.limit, LIST_DEFAULT, 1, LIST)?;
    let group = query.group.map(|id| extract::group("group", &id)).transpose()?;
    let shards = app.shard_owners().rows().len();
    let position = |text: String| -> Result<RepairPosition, InvalidRepairPosition> {
        text.parse()
            .ok()
            .filter(|at: &RepairPosition| at.numbers().len() == shards)
            .ok_or(InvalidRepairPosition)
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

/// Show an applied repair with the members before and after it, or a quarantine.
#[utoipa::path(
    get, path = "/v1/repairs/{id}", operation_id = "get_repair", tag = "groups",
    params(("id" = RepairIdForm, Path, description = "Id of the entry")),
    responses(
        (status = 200, description = "The entry with its URLs", body = AppliedRepairUrls),
        (status = 400, description = "The repair id is invalid"),
        (status = 404, description = "The entry does not exist, or retention has deleted it"),
        refusals::Reads,
    ),
)]
pub(crate) async fn get(
    State(app): State<App>,
    RepairPath(id): RepairPath,
) -> Result<Json<AppliedRepairUrls>, Problem> {
    app.blocking(move |app| {
        let details = app.tier1().repair_details(id)?;
        let details = details.ok_or_else(|| Problem::not_found(format!("there is no repair {id}")))?;
        Ok(Json(details.into()))
    })
    .await
}
