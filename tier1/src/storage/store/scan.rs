//! Reading all rows of one kind.

use doppel_model::ShardId;

use super::{Store, StoreError};
use crate::rows::key::{self, RowKind};

/// Calls `visit` for every row of a kind in a shard. Stops at the first error.
pub(crate) fn for_each_row(
    store: &dyn Store,
    shard: ShardId,
    kind: RowKind,
    mut visit: impl FnMut(&[u8], &[u8]) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let (from, to) = key::all(shard, kind);
    let mut result = Ok(());
    store.range(&from, &to, &mut |key, bytes| {
        result = visit(key, bytes);
        result.is_ok()
    })?;
    result
}
