//! `/readyz`: tells a load balancer whether to send requests here, and an operator whether the ranges of a
//! cluster are served and replicated.
//!
//! A coordinator has no data of its own, so by default it is ready if any node of tier 1 answers. If one
//! range has no owner, every coordinator still serves the pages of the other ranges. A load balancer that
//! removed all coordinators would make the outage worse.

use axum::extract::State;
use doppel_contract::answer::{ClusterRange, ClusterStatus};
use doppel_protocol::Tier1Error;
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use crate::app::App;
use crate::contract::refusals;
use crate::problem::Problem;
use crate::request::extract::Query;

/// Ranges of a cluster that must be available.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum RequiredRanges {
    /// No particular range: at least one node of tier 1 answers.
    #[default]
    Any,
    /// Every range has an owner that accepts writes.
    Served,
    /// Every range has an owner that accepts writes, and all of its replicas.
    All,
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ReadyQuery {
    /// What must be available in a cluster. `any`, the default, is meant for load balancers: at least one
    /// node of tier 1 must answer. With `served`, every range must also have an owner that accepts writes.
    /// With `all`, every range must also have all of its replicas.
    #[serde(default)]
    #[param(value_type = Option<RequiredRanges>, inline)]
    ranges: RequiredRanges,
}

/// Check whether the service is ready for requests.
#[utoipa::path(
    get, path = "/readyz", operation_id = "get_readiness", tag = "operations", params(ReadyQuery),
    responses(
        (status = 200, description = "The service is ready", body = str),
        (status = 400, description = "A parameter is invalid"),
        refusals::AsksWhetherWritable,
    ),
)]
pub(crate) async fn readyz(
    State(app): State<App>,
    Query(ReadyQuery { ranges }): Query<ReadyQuery>,
) -> Result<String, Problem> {
    if app.is_draining() {
        return Err(Tier1Error::Stopping.into());
    }
    app.blocking_for_health(move |app| match (app.cluster(), ranges) {
        (None, _) => {
            app.tier1().writable()?;
            Ok("ready\n".to_owned())
        }
        (Some(cluster), RequiredRanges::Any) if cluster.has_answering_node() => Ok("ready\n".to_owned()),
        (Some(_), RequiredRanges::Any) => Err(Problem::not_ready("no node of tier 1 answers")),
        (Some(cluster), required) => {
            let ClusterStatus { ranges, .. } = cluster.status();
            range_problem(&ranges, required).map_or_else(|| Ok(all_served(&ranges)), Err)
        }
    })
    .await
}

/// Explains why the service accepts no pages, or why some ranges of a cluster accept none. `None` if all
/// pages are accepted.
pub(crate) fn not_ready(app: &App) -> Option<Problem> {
    if app.is_draining() {
        return Some(Tier1Error::Stopping.into());
    }
    match app.cluster() {
        None => app.tier1().writable().err().map(Problem::from),
        Some(cluster) => range_problem(&cluster.status().ranges, RequiredRanges::Served),
    }
}

fn range_problem(ranges: &[ClusterRange], required: RequiredRanges) -> Option<Problem> {
    let missing: Vec<String> = ranges.iter().filter_map(|range| missing_of(range, required)).collect();
    (!missing.is_empty()).then(|| Problem::not_ready(missing.join("; ")))
}

/// Describes what a range lacks for the requested readiness.
fn missing_of(range: &ClusterRange, required: RequiredRanges) -> Option<String> {
    let ClusterRange { range, epoch, served, replicas, live_replicas, .. } = range;
    match (epoch, served) {
        (None, _) => Some(format!("range {range} has no owner that answers")),
        (Some(_), false) => Some(format!("range {range} takes no writes")),
        (Some(_), true) if required == RequiredRanges::All && live_replicas < replicas => {
            Some(format!("range {range} has {live_replicas} of {replicas} replicas"))
        }
        _ => None,
    }
}

fn all_served(ranges: &[ClusterRange]) -> String {
    let (live, replicas) =
        ranges.iter().fold((0, 0), |(live, all), range| (live + range.live_replicas, all + range.replicas));
    format!("ready\n{} ranges are served, with {live} of {replicas} replicas\n", ranges.len())
}
