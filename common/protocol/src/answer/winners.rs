//! By which rules winners are elected: the answer of `GET /v1/winners`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Rule;

/// The rules and markets in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Winners {
    /// The rules in their order; of two pages the first that tells them apart decides. The last is `url`.
    /// `market` goes before all of them when a question names one.
    pub rules: Vec<Rule>,
    /// The host suffixes of each market that has a name.
    pub markets: BTreeMap<String, Vec<String>>,
}
