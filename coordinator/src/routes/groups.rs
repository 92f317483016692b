//! `GET /v1/groups` lists groups, and `GET /v1/groups/{id}` shows a group with its members.

pub(crate) mod repair;
pub(crate) mod repair_trail;

use axum::Json;
use axum::extract::State;
use doppel_contract::Market;
use doppel_contract::answer::{GroupIdForm, GroupList, GroupOverview, GroupPage, ListedMember, MarketForm};
use doppel_model::{ContentHash, GroupId};
use doppel_protocol::{GroupFilter, GroupPosition, Line, MemberView, Tier1Reads};
use serde::Deserialize;
use utoipa::IntoParams;

use crate::app::App;
use crate::contract::refusals;
use crate::limits::{LIST, LIST_DEFAULT};
use crate::problem::Problem;
use crate::request::extract::{self, GroupPath, Query, market, number};
use crate::response::answer_age::millis;
use doppel_engine::advise::follow;

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ListQuery {
    /// Return only groups that are in quarantine, or in which at least this percentage of the members differ
    /// from the winner; 1 to 100.
    #[param(minimum = 1, maximum = 100)]
    suspicious: Option<u8>,
    /// Return groups after this group id, which an earlier answer gave as `next`.
    #[param(value_type = Option<GroupIdForm>)]
    after: Option<String>,
    /// Maximum number of groups in the answer, 1 to 1,000. Default: 100.
    #[param(minimum = 1, maximum = 1_000)]
    limit: Option<usize>,
}

/// List groups.
#[utoipa::path(
    get, path = "/v1/groups", operation_id = "list_groups", tag = "groups", params(ListQuery),
    responses(
        (status = 200, description = "Some groups, and the position at which the list continues", body = GroupList),
        (status = 400, description = "A parameter is invalid"),
        refusals::Reads,
    ),
)]
pub(crate) async fn list(
    State(app): State<App>,
    Query(query): Query<ListQuery>,
) -> Result<Json<GroupList>, Problem> {
    let limit = number("limit", query.limit, LIST_DEFAULT, 1, LIST)?;
    let filter = match query.suspicious {
        None => GroupFilter::All,
        Some(percent) => GroupFilter::Suspicious { percent: number("suspicious", Some(percent), 1, 1, 100)? },
    };
    let after = query.after.map(|id| extract::group("after", &id)).transpose()?;
    app.blocking(move |app| {
        let groups = app.tier1().groups(filter, after, limit)?;
        let next = if groups.len() < limit { None } else { groups.last().map(|last| last.group.to_string()) };
        Ok(Json(GroupList { groups: groups.into_iter().map(GroupOverview::from).collect(), next }))
    })
    .await
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct GroupQuery {
    /// Position at which the list continues: `next` of an earlier answer.
    #[param(pattern = "^[0-9A-Fa-f]{32}(-[0-9A-Fa-f]{32})?$")]
    after: Option<String>,
    /// Maximum number of members in the answer, 1 to 1,000, not counting redirects. Default: 100.
    #[param(minimum = 1, maximum = 1_000)]
    limit: Option<usize>,
    /// Name of a market, as `GET /v1/winners` lists it, or a host suffix such as `de`. The answer then
    /// prefers winners on hosts of this market.
    #[param(value_type = Option<MarketForm>)]
    market: Option<String>,
}

/// Show a group and its members.
///
/// For a group that was merged into another, the answer has `merged_into` and no members.
#[utoipa::path(
    get, path = "/v1/groups/{id}", operation_id = "get_group", tag = "groups",
    params(("id" = GroupIdForm, Path, description = "Id of the group"), GroupQuery),
    responses(
        (status = 200, description = "The group, and some of its members", body = GroupPage),
        (status = 400, description = "The group id or a parameter is invalid"),
        (status = 404, description = "The group does not exist"),
        refusals::Reads,
    ),
)]
pub(crate) async fn get(
    State(app): State<App>,
    GroupPath(id): GroupPath,
    Query(query): Query<GroupQuery>,
) -> Result<Json<GroupPage>, Problem> {
    let limit = number("limit", query.limit, LIST_DEFAULT, 1, LIST)?;
    let after = query.after.map(|text| text.parse::<GroupPosition>());
    let after = after.transpose().map_err(|error| Problem::field("after", error.to_string()))?;
    let market = market(app.markets(), query.market.as_deref())?;
    app.blocking(move |app| {
        let aged = app.ask(|reads| page_of(app, reads, (id, after, limit), market.as_ref()))?;
        Ok(Json(GroupPage { age_ms: aged.age.map(millis), ..aged.answer }))
    })
    .await
}

/// Returns some members of a group, with advice that is verified now.
fn page_of(
    app: &App,
    reads: &dyn Tier1Reads,
    (id, after, limit): (GroupId, Option<GroupPosition>, usize),
    market: Option<&Market>,
) -> Result<GroupPage, Problem> {
    let Some(view) = reads.group(id, after, limit, true)? else { return Err(no_group(id)) };
    let mut group = GroupOverview::from(view.summary);
    let mut advisor = app.advisor(reads, market);
    let (lines, contents): (Vec<Line>, Vec<Option<ContentHash>>) =
        view.members.into_iter().map(|MemberView { line, content }| (line, content)).unzip();
    let present = advisor.present(lines)?.into_iter().zip(contents);
    let members = present.filter_map(|(line, content)| Some(MemberView { line: line?, content }));
    if market.is_some()
        && group.merged_into.is_none()
        && let Some(winner) = advisor.winner(id)?
    {
        group.winner = Some(winner.url.into());
    }
    if group.merged_into.is_some()
        && let Some(survivor) = follow(reads, id)?
    {
        group.merged_into = Some(survivor.group.to_string());
    }
    let next = view.next.map(|position| position.to_string());
    Ok(GroupPage { group, pages: members.map(ListedMember::from).collect(), next, age_ms: None })
}

/// Builds the problem (404) for an unknown group.
pub(crate) fn no_group(group: GroupId) -> Problem {
    Problem::not_found(format!("there is no group {group}"))
}
