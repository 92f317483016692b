//! The rules that elect winners: the answer of `GET /v1/winners`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::winner_rule::WinnerRule;

/// The winner rules and the markets in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Winners)]
pub struct WinnerRules {
    /// The rules in order. The first rule that distinguishes two pages decides, and `url` is the last rule.
    /// If a query names a market, the rule `market` comes before all others.
    pub rules: Vec<WinnerRule>,
    /// Host suffixes of each named market.
    pub markets: BTreeMap<String, Vec<String>>,
}
