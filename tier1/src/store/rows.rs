//! Reading all rows of a kind.

use doppel_model::ShardId;

use super::{Store, StoreError};
use crate::key::{self, Kind};

/// Every row of a kind.
pub(crate) fn each(
    store: &dyn Store,
    shard: ShardId,
    kind: Kind,
    mut row: impl FnMut(&[u8], &[u8]) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let (from, to) = key::all(shard, kind);
    let mut result = Ok(());
    store.range(&from, &to, &mut |key, bytes| {
        result = row(key, bytes);
        result.is_ok()
    })?;
    result
}
