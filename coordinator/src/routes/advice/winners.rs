//! `GET /v1/winners`: the rules by which winners are elected, and the markets that clients can name.

use axum::Json;
use axum::extract::State;
use doppel_contract::answer::WinnerRules;

use crate::app::App;

/// Show the rules by which winners are elected, and the markets.
///
/// The rules are fixed when the collection is created. The markets are fixed when the server starts.
#[utoipa::path(get, path = "/v1/winners", operation_id = "get_winner_rules", tag = "advice", responses((status = 200, description = "The rules in their order, and the markets", body = WinnerRules)))]
pub(crate) async fn get(State(app): State<App>) -> Json<WinnerRules> {
    let markets = app
        .markets()
        .iter()
        .map(|(name, market)| (name.to_owned(), market.suffixes().iter().map(ToString::to_string).collect()));
    Json(WinnerRules { rules: app.winners().into(), markets: markets.collect() })
}
