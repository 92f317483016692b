//! What the calls of a handler may be refused for, as sets to name among its responses.

use std::collections::BTreeMap;

use utoipa::IntoResponses;
use utoipa::openapi::extensions::Extensions;
use utoipa::openapi::{RefOr, Response};

use super::PROBLEMS;
use crate::problem_kind::Kind;

macro_rules! sets {
    ($($(#[$says:meta])* $set:ident: $($kind:ident)+;)+) => {$(
        $(#[$says])*
        #[derive(Debug)]
        pub(crate) struct $set;

        impl IntoResponses for $set {
            fn responses() -> BTreeMap<String, RefOr<Response>> {
                by_status(&[$(Kind::$kind),+])
            }
        }
    )+};
}

sets! {
    /// Of a call that only waits.
    Waits: Timeout;
    /// Refusals of a scrape: each client has a share of the scrapes.
    Scrapes: ClientLimit Busy Timeout;
    /// Of reads in tier 1.
    Reads: Damaged Timeout RangeUnavailable Stopping;
    /// The same where the answer is sorted on disk.
    Sorts: Damaged Timeout RangeUnavailable Stopping DiskFull;
    /// Of writes in tier 1, which read as well.
    Writes: Damaged Timeout ReadOnly RangeUnavailable Stopping DiskFull;
    /// Of the question whether tier 1 takes writes.
    AsksWhetherWritable: Timeout ReadOnly RangeUnavailable Stopping DiskFull;
    /// Of questions to tier 2.
    Index: Timeout IndexUnavailable Stopping;
    /// Of reads in tier 1 with questions to tier 2.
    ReadsAndIndex: Damaged Timeout RangeUnavailable IndexUnavailable Stopping;
    /// Of what has both tiers do something.
    WritesAndIndex: Damaged Timeout ReadOnly RangeUnavailable IndexUnavailable Stopping DiskFull;
    /// Of changes of the mapping.
    Rebalances: Rebalancing Storage Timeout IndexUnavailable Stopping;
    /// Of the end of one.
    Cancels: NothingToCancel Storage Timeout IndexUnavailable Stopping;
    /// Of orders to a node of tier 1.
    Orders: Timeout RangeUnavailable;
}

fn by_status(kinds: &[Kind]) -> BTreeMap<String, RefOr<Response>> {
    let mut types: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for kind in kinds {
        types.entry(kind.status().as_str().to_owned()).or_default().push(kind.urn());
    }
    let response = |types: Vec<String>| {
        let mut response = Response::new("");
        response.extensions = Some(Extensions::from_iter([(PROBLEMS, types)]));
        response
    };
    types.into_iter().map(|(status, types)| (status, response(types).into())).collect()
}
