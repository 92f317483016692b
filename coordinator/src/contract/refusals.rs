//! Named sets of the problems with which the calls of a handler can fail. A handler lists such a set among
//! its responses.

use std::collections::BTreeMap;

use utoipa::IntoResponses;
use utoipa::openapi::extensions::Extensions;
use utoipa::openapi::{RefOr, Response};

use super::PROBLEMS;
use crate::problem::kind::ProblemKind;

macro_rules! sets {
    ($($(#[$says:meta])* $set:ident: $($kind:ident)+;)+) => {$(
        $(#[$says])*
        #[derive(Debug)]
        pub(crate) struct $set;

        impl IntoResponses for $set {
            fn responses() -> BTreeMap<String, RefOr<Response>> {
                by_status(&[$(ProblemKind::$kind),+])
            }
        }
    )+};
}

sets! {
    /// Problems of a call that reads no records.
    Waits: Timeout;
    /// Problems of a scrape. Each client has a share of the scrapes.
    Scrapes: ClientLimit Busy Timeout;
    /// Problems of reads from tier 1.
    Reads: Damaged Timeout RangeUnavailable Stopping;
    /// Problems of reads from tier 1 whose answer is sorted on disk.
    Sorts: Damaged Timeout RangeUnavailable Stopping DiskFull;
    /// Problems of writes to tier 1, which also read records.
    Writes: Damaged Timeout ReadOnly RangeUnavailable Stopping DiskFull;
    /// Problems of the check whether tier 1 accepts writes.
    AsksWhetherWritable: Timeout ReadOnly RangeUnavailable Stopping DiskFull;
    /// Problems of reads from tier 2.
    Index: Timeout IndexUnavailable Stopping;
    /// Problems of reads from both tiers.
    ReadsAndIndex: Damaged Timeout RangeUnavailable IndexUnavailable Stopping;
    /// Problems of changes in both tiers.
    WritesAndIndex: Damaged Timeout ReadOnly RangeUnavailable IndexUnavailable Stopping DiskFull;
    /// Problems of starting a change of the partition map.
    Rebalances: Rebalancing Storage Timeout IndexUnavailable Stopping;
    /// Problems of cancelling a change of the partition map.
    Cancels: NothingToCancel Storage Timeout IndexUnavailable Stopping;
    /// Problems of commands to a node of tier 1.
    Orders: Timeout RangeUnavailable;
}

fn by_status(kinds: &[ProblemKind]) -> BTreeMap<String, RefOr<Response>> {
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
