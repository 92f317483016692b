//! `GET /v1/winners`: by which rules winners are elected, and for which markets one can ask.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use doppel_protocol::Rule;
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::App;

/// The rules and markets in force.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Winners {
    /// The rules in their order; of two pages the first that tells them apart decides. The last is `url`.
    /// `market` goes before all of them when a question names one.
    rules: Vec<Rule>,
    /// The host suffixes of each market that has a name.
    markets: BTreeMap<String, Vec<String>>,
}

/// By which rules does a page win?
///
/// The rules are fixed when the collection is created; the markets are those that the server was started with.
#[utoipa::path(get, path = "/v1/winners", tag = "advice", responses((status = 200, body = Winners)))]
pub(crate) async fn get(State(app): State<App>) -> Json<Winners> {
    let markets = app
        .markets()
        .iter()
        .map(|(name, market)| (name.to_owned(), market.suffixes().iter().map(ToString::to_string).collect()));
    Json(Winners { rules: app.winners().into(), markets: markets.collect() })
}
