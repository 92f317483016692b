//! `GET /v1/reports/load-balance` and `GET /v1/load/history`: the load of partitions and nodes, now and over
//! the last hours.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use doppel_contract::LoadReport;
use doppel_contract::answer::{LoadBalance, LoadHistory, NodeLoad};
use doppel_model::NodeId;
use doppel_partitioning::Plan;
use doppel_protocol::MappingApi;
use serde::Deserialize;
use utoipa::IntoParams;

use crate::app::App;
use crate::contract::refusals;
use crate::problem::Problem;
use crate::request::extract::Query;

/// Report how evenly the load is spread over partitions and nodes.
#[utoipa::path(get, path = "/v1/reports/load-balance", operation_id = "get_load_balance", tag = "reports", responses(
        (status = 200, description = "The load of partitions and nodes", body = LoadBalance),
        refusals::Index,
    ))]
pub(crate) async fn load_balance(State(app): State<App>) -> Result<Json<LoadBalance>, Problem> {
    app.blocking(|app| {
        let load = app.tier2().load()?;
        let mapping = app.mapping();
        let plan = mapping.map(MappingApi::plan).transpose()?;
        let all = plan.as_ref().map_or(0, Plan::nodes);
        let history = app.balance_history().points();
        let table = app.shard_owners();
        Ok(Json(LoadBalance {
            nodes: per_node(&load, all),
            load,
            drained: plan.map_or_else(Vec::new, |plan| plan.drained().to_vec()),
            progress: mapping.map(MappingApi::progress).transpose()?.flatten(),
            variation: variation(history.iter().map(|point| point.node_imbalance)),
            history,
            shard_map_version: table.version(),
            shards: table.rows(),
        }))
    })
    .await
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct HistoryQuery {
    /// Return only points after this time, in milliseconds since 1970.
    since: Option<i64>,
}

/// Report the load of the last six hours.
///
/// Every coordinator records its own history, which begins when the coordinator starts.
#[utoipa::path(get, path = "/v1/load/history", operation_id = "get_load_history", tag = "reports", params(HistoryQuery),
    responses(
        (status = 200, description = "The points of the last six hours", body = LoadHistory),
        (status = 400, description = "A parameter is invalid"),
        refusals::Waits,
    ))]
pub(crate) async fn history(
    State(app): State<App>,
    Query(HistoryQuery { since }): Query<HistoryQuery>,
) -> Result<Response, Problem> {
    // The answer has some megabytes, so a blocking thread serialises it.
    let text = app.blocking(move |app| {
        let history = LoadHistory {
            now_ms: app.arrival_clock().now().millis(),
            points: app.load_recorder().since(since),
        };
        serde_json::to_vec(&history).map_err(|_| Problem::internal())
    });
    Ok(([(header::CONTENT_TYPE, "application/json")], text.await?).into_response())
}

/// Sums the load of the partitions of each node. Each of the `all` nodes of the plan gets a row, even without
/// partitions.
fn per_node(load: &LoadReport, all: u32) -> Vec<NodeLoad> {
    let mut nodes: BTreeMap<NodeId, NodeLoad> =
        (0..all).map(|node| (NodeId(node), NodeLoad::default())).collect();
    for partition in &load.partitions {
        let node = nodes.entry(partition.node).or_default();
        node.partitions += 1;
        node.contents += partition.contents;
        node.pages += partition.pages;
        node.received += partition.received;
        node.comparisons += partition.comparisons;
        node.bytes += partition.bytes;
    }
    nodes.into_iter().map(|(node, load)| NodeLoad { node, ..load }).collect()
}

/// Returns the coefficient of variation: standard deviation divided by mean.
fn variation(values: impl Iterator<Item = f64> + Clone) -> Option<f64> {
    let count = values.clone().count() as f64;
    let mean = values.clone().sum::<f64>() / count;
    let square = values.map(|value| (value - mean).powi(2)).sum::<f64>() / count;
    (count > 0.0 && mean > 0.0).then(|| square.sqrt() / mean)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variation_is_right() {
        assert_eq!(variation([].into_iter()), None);
        assert_eq!(variation([2.0, 2.0].into_iter()), Some(0.0));
        assert_eq!(variation([1.0, 3.0].into_iter()), Some(0.5));
    }
}
