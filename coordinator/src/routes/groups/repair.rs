//! `POST /v1/groups/{id}/repair` and `POST /v1/repair`: recompute groups by exact comparison.
//!
//! A repair holds all signatures of a group in memory and compares them all, so the service limits the number
//! of concurrent repairs. An answer lists a bounded number of URLs.

use axum::Json;
use axum::extract::State;
use doppel_contract::answer::{GroupIdForm, RepairResult, RepairResults};
use doppel_model::{GroupId, PageUrl};
use doppel_protocol::{RepairReport, limit_urls};
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use crate::access::Caller;
use crate::app::App;
use crate::contract::refusals;
use crate::limits::{LONG_CALL_TIME, NAME_BYTES, REPAIR_GROUPS};
use crate::problem::Problem;
use crate::request::extract::{self, GroupPath, JsonBody, Query};
use crate::routes::groups::no_group;

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct RepairQuery {
    /// Whether to only report what the repair would do.
    #[serde(default)]
    dry_run: bool,
    /// Name of the person who asks for the repair, for the repair trail: at most 100 bytes without control
    /// characters. Default: `anonymous`. If the server has tokens, the trail uses the name of the token, and
    /// this parameter is an error.
    #[param(min_length = 1, max_length = 100, pattern = "^[^\\x00-\\x1f\\x7f-\\x9f]+$")]
    by: Option<String>,
}

/// Converts the report on a repair to its answer, with at most `room` URLs of its sets. Subtracts the number
/// of listed URLs from `room`.
fn listed(report: RepairReport, room: &mut usize) -> RepairResult {
    let most = *room;
    let (members, sets) = (report.before.len(), report.components.len());
    let count = |components: &[Vec<PageUrl>]| components.iter().map(Vec::len).sum::<usize>();
    let components = limit_urls(&report.components, most);
    *room -= count(&components);
    let truncated = most - *room < count(&report.components) || members > most;
    RepairResult {
        group: report.group.to_string(),
        before: urls(report.before, most),
        components: components.into_iter().map(|component| urls(component, most)).collect(),
        applied: report.applied,
        truncated,
        total_members: truncated.then_some(members),
        total_components: truncated.then_some(sets),
    }
}

fn urls(pages: Vec<PageUrl>, most: usize) -> Vec<String> {
    pages.into_iter().take(most).map(String::from).collect()
}

/// Recompute the members of a group by exact comparison.
#[utoipa::path(
    post, path = "/v1/groups/{id}/repair", operation_id = "repair_group", tag = "groups",
    params(("id" = GroupIdForm, Path, description = "Id of the group"), RepairQuery),
    responses(
        (status = 200, description = "The members before the repair, and their sets after it", body = RepairResult),
        (status = 400, description = "The group id or a parameter is invalid"),
        (status = 404, description = "The group does not exist"),
        refusals::Writes,
    ),
)]
pub(crate) async fn repair(
    State(app): State<App>,
    caller: Caller,
    GroupPath(id): GroupPath,
    Query(RepairQuery { dry_run, by }): Query<RepairQuery>,
) -> Result<Json<RepairResult>, Problem> {
    let by = name(&caller, by)?;
    let permit = app.enter_repair().await?;
    app.blocking_within(LONG_CALL_TIME, move |app| {
        let _permit = permit;
        let mut room = app.limits().repair_urls;
        recompute(app, id, dry_run, &by, &mut room)?.map(Json).ok_or_else(|| no_group(id))
    })
    .await
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(examples(json!({"groups": ["g12-0"], "dry_run": true, "by": "alice"})))]
pub(crate) struct RepairRequest {
    /// Ids of the groups, at most 100.
    #[schema(value_type = Vec<GroupIdForm>, max_items = 100)]
    groups: Vec<String>,
    /// Whether to only report what the repair would do.
    #[serde(default)]
    dry_run: bool,
    /// Name of the person who asks for the repair, for the repair trail: at most 100 bytes without control
    /// characters. Default: `anonymous`. If the server has tokens, the trail uses the name of the token, and
    /// this parameter is an error.
    #[schema(min_length = 1, max_length = 100, pattern = "^[^\\x00-\\x1f\\x7f-\\x9f]+$")]
    by: Option<String>,
}

/// Recompute the members of several groups by exact comparison.
#[utoipa::path(
    post, path = "/v1/repair", operation_id = "repair_groups", tag = "groups", request_body = RepairRequest,
    responses(
        (status = 200, description = "The members before the repair, and their sets after it", body = RepairResults),
        (status = 400, description = "There are too many groups, or a group id is invalid"),
        refusals::Writes,
    ),
)]
pub(crate) async fn repair_many(
    State(app): State<App>,
    caller: Caller,
    JsonBody(RepairRequest { groups, dry_run, by }, _share): JsonBody<RepairRequest>,
) -> Result<Json<RepairResults>, Problem> {
    if groups.len() > REPAIR_GROUPS {
        let detail = format!(
            "{} groups are more than the limit of {REPAIR_GROUPS}; repair them in parts",
            groups.len()
        );
        return Err(Problem::field("groups", detail));
    }
    let groups: Vec<GroupId> =
        groups.iter().map(|id| extract::group("groups", id)).collect::<Result<_, _>>()?;
    let by = name(&caller, by)?;
    let permit = app.enter_repair().await?;
    app.blocking_within(LONG_CALL_TIME, move |app| {
        let _permit = permit;
        let mut room = app.limits().repair_urls;
        let mut answer = RepairResults::default();
        for group in groups {
            match recompute(app, group, dry_run, &by, &mut room)? {
                Some(repair) => answer.repairs.push(repair),
                None => answer.unknown.push(group.to_string()),
            }
        }
        Ok(Json(answer))
    })
    .await
}

fn recompute(
    app: &App,
    group: GroupId,
    dry_run: bool,
    by: &str,
    room: &mut usize,
) -> Result<Option<RepairResult>, Problem> {
    let report = app.tier1().repair(group, dry_run, by)?;
    if let Some(report) = &report {
        tracing::info!(%group, by, applied = report.applied, components = report.components.len(), "repair");
    }
    Ok(report.map(|report| listed(report, room)))
}

/// Returns the name under which the repair is recorded: the name of the client's token, or else the name in
/// the request.
fn name(caller: &Caller, by: Option<String>) -> Result<String, Problem> {
    if let Some(token) = caller.name() {
        return match by {
            None => Ok(token.to_string()),
            Some(_) => Err(Problem::field("by", "the repair trail uses the name of the token; leave out by")),
        };
    }
    let by = by.unwrap_or_else(|| "anonymous".to_owned());
    if by.is_empty() || by.len() > NAME_BYTES || by.chars().any(char::is_control) {
        return Err(Problem::field(
            "by",
            format!("must be 1 to {NAME_BYTES} bytes without control characters"),
        ));
    }
    Ok(by)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(sets: &[usize]) -> RepairReport {
        let set = |(number, &size): (usize, &usize)| -> Vec<PageUrl> {
            (0..size).map(|n| PageUrl::parse(&format!("http://{number}/{n}")).unwrap()).collect()
        };
        let components: Vec<_> = sets.iter().enumerate().map(set).collect();
        let group = "g1-0".parse().unwrap();
        RepairReport { group, before: components.concat(), components, applied: false }
    }

    #[test]
    fn sets_that_leave_the_group_are_listed_before_the_set_of_the_winner() {
        for (sets, room, kept, left) in [
            (&[4, 1, 2][..], 9, &[4, 1, 2][..], 2),
            (&[4, 1, 2], 7, &[4, 1, 2], 0),
            (&[4, 1, 2], 6, &[3, 1, 2], 0),
            (&[40, 1, 2], 6, &[3, 1, 2], 0),
            (&[4, 1, 20, 3], 6, &[1, 1, 4], 0),
            (&[300, 400], 100, &[10, 90], 0),
            (&[1, 9], 4, &[1, 3], 0),
            (&[5], 2, &[2], 0),
            (&[5, 1], 0, &[], 0),
        ] {
            let mut rest = room;
            let repair = listed(report(sets), &mut rest);
            let sizes: Vec<_> = repair.components.iter().map(Vec::len).collect();
            assert_eq!((sizes.as_slice(), rest), (kept, left), "{sets:?} in {room}");
            let (all, is_cut) = (sets.iter().sum::<usize>(), sets != kept);
            assert_eq!(repair.before.len(), all.min(room));
            assert_eq!(repair.truncated, is_cut, "{sets:?} in {room}");
            assert_eq!(repair.total_members, is_cut.then_some(all));
            assert_eq!(repair.total_components, is_cut.then_some(sets.len()));
        }
    }

    #[test]
    fn a_member_in_no_set_does_not_mark_the_answer_as_truncated() {
        // The missing member was purged between two reads.
        let mut short = report(&[2, 1]);
        short.components.pop();
        let repair = listed(short, &mut 3);
        assert_eq!((repair.before.len(), repair.components.len(), repair.truncated), (3, 1, false));
    }
}
