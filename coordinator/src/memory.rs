//! The memory that request bodies and the answers to their lines may take, all together (G6).
//!
//! Invariant: the shares that are held never add up to more than the budget.

use std::sync::Arc;

use axum::body::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Bytes of one permit.
const UNIT: usize = 1 << 10;

/// The whole budget.
#[derive(Debug, Clone)]
pub(crate) struct BodyMemory(Arc<Semaphore>);

/// A part of the budget; dropping it gives it back.
#[derive(Debug)]
pub(crate) struct Share {
    memory: BodyMemory,
    permit: Option<OwnedSemaphorePermit>,
}

impl BodyMemory {
    pub(crate) fn new(bytes: usize) -> Self {
        Self(Arc::new(Semaphore::new((bytes / UNIT).min(Semaphore::MAX_PERMITS))))
    }

    /// Bytes not in use.
    pub(crate) fn free(&self) -> usize {
        self.0.available_permits() * UNIT
    }

    /// An empty share.
    pub(crate) fn share(&self) -> Share {
        Share { memory: self.clone(), permit: None }
    }
}

impl Share {
    /// Its size.
    pub(crate) fn bytes(&self) -> usize {
        self.permit.as_ref().map_or(0, |permit| permit.num_permits() * UNIT)
    }

    /// Makes it at least so large, unless too little of the budget is left; tells whether it is.
    pub(crate) fn grow_to(&mut self, bytes: usize) -> bool {
        let more = u32::try_from(bytes.saturating_sub(self.bytes()).div_ceil(UNIT));
        let Some(more) = more.ok().and_then(|more| self.memory.0.clone().try_acquire_many_owned(more).ok())
        else {
            return false;
        };
        match &mut self.permit {
            Some(permit) => permit.merge(more),
            None => self.permit = Some(more),
        }
        true
    }

    /// Gives back what is beyond `bytes`.
    pub(crate) fn shrink_to(&mut self, bytes: usize) {
        if let Some(permit) = &mut self.permit {
            drop(permit.split(permit.num_permits().saturating_sub(bytes.div_ceil(UNIT))));
        }
    }

    /// `bytes`, which hold this share until they are dropped.
    pub(crate) fn hold(self, bytes: Vec<u8>) -> Bytes {
        Bytes::from_owner(Sharing { bytes, _share: self })
    }
}

struct Sharing {
    bytes: Vec<u8>,
    _share: Share,
}

impl AsRef<[u8]> for Sharing {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_grow_and_shrink_within_the_budget() {
        let memory = BodyMemory::new(10 * UNIT + 1);
        let (mut one, mut other) = (memory.share(), memory.share());
        assert!(one.grow_to(UNIT + 1) && one.grow_to(1) && other.grow_to(0));
        assert_eq!((one.bytes(), other.bytes(), memory.free()), (2 * UNIT, 0, 8 * UNIT));
        assert!(other.grow_to(8 * UNIT) && !one.grow_to(2 * UNIT + 1));
        assert_eq!((one.bytes(), memory.free()), (2 * UNIT, 0), "a share too large changes nothing");
        other.shrink_to(3 * UNIT - 1);
        other.shrink_to(9 * UNIT);
        assert_eq!((other.bytes(), memory.free()), (3 * UNIT, 5 * UNIT));
        let held = one.hold(vec![7]);
        let part = held.slice(..);
        drop(held);
        assert_eq!((memory.free(), &part[..]), (5 * UNIT, &[7][..]));
        drop(part);
        other.shrink_to(0);
        assert_eq!(memory.free(), 10 * UNIT);
    }
}
