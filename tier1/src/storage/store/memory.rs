//! A store in memory.

use std::collections::BTreeMap;
use std::sync::{PoisonError, RwLock};

use super::{Store, StoreError, Write};

/// An ordered map in memory. Commits are atomic and are lost when the process ends.
#[derive(Debug, Default)]
pub struct Memory {
    rows: RwLock<BTreeMap<Vec<u8>, Vec<u8>>>,
}

impl Store for Memory {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.rows.read().unwrap_or_else(PoisonError::into_inner).get(key).cloned())
    }

    fn range(
        &self,
        from: &[u8],
        to: &[u8],
        each: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), StoreError> {
        let rows = self.rows.read().unwrap_or_else(PoisonError::into_inner);
        for (key, value) in rows.range(from.to_vec()..to.to_vec()) {
            if !each(key, value) {
                break;
            }
        }
        Ok(())
    }

    fn commit(&self, writes: Vec<Write>) -> Result<(), StoreError> {
        let mut rows = self.rows.write().unwrap_or_else(PoisonError::into_inner);
        for (key, value) in writes {
            match value {
                Some(value) => rows.insert(key, value),
                None => rows.remove(&key),
            };
        }
        Ok(())
    }
}
