//! The rules by which winners are elected: the answer of `GET /v1/winners`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Rule;

/// The rules and markets in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Winners {
    /// The rules in their order: the first rule that distinguishes two pages decides. The last one is `url`. If a query
    /// names a market, `market` takes precedence over all of them.
    pub rules: Vec<Rule>,
    /// The host suffixes of each market that has a name.
    pub markets: BTreeMap<String, Vec<String>>,
}
