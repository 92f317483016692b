//! `GET /v1/cluster`: the nodes of the cluster, and what is not as it should be.

use axum::Json;
use axum::extract::State;
use doppel_protocol::answer::ClusterStatus;

use crate::app::App;
use crate::problem::Problem;

/// Which nodes are there, what do they have, and what needs attention?
#[utoipa::path(get, path = "/v1/cluster", tag = "operations", responses((status = 200, body = ClusterStatus)))]
pub(crate) async fn cluster(State(app): State<App>) -> Result<Json<ClusterStatus>, Problem> {
    app.blocking(|app| {
        Ok(Json(match app.cluster() {
            Some(cluster) => cluster.status(),
            None => ClusterStatus {
                cluster: None,
                replicated: false,
                nodes: Vec::new(),
                ranges: Vec::new(),
                orders_waiting: app.tier2().waiting().ok().map(|waiting| waiting as u64),
                attention: Vec::new(),
            },
        }))
    })
    .await
}
