//! The memory budget for request bodies and the answers to their lines (guarantee G6).
//!
//! Invariant: the shares that are held never add up to more than the budget. The shares of one client also
//! never add up to more than the client's part of the budget.

use std::sync::Arc;

use axum::body::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Number of bytes of one semaphore permit.
const UNIT: usize = 1 << 10;

/// A memory budget for request bodies: the whole budget, or the part of it that one client may use.
#[derive(Debug, Clone)]
pub(crate) struct BodyMemory {
    budget: Arc<Semaphore>,
    /// The whole budget, if this budget is a part.
    whole: Option<Arc<Semaphore>>,
}

/// An amount of memory taken from a budget. Dropping the share returns the memory.
#[derive(Debug)]
pub(crate) struct MemoryShare {
    memory: BodyMemory,
    permit: Option<OwnedSemaphorePermit>,
    /// Equally large permit of the whole budget, if `memory` is a part.
    of_whole: Option<OwnedSemaphorePermit>,
}

fn budget(bytes: usize) -> Arc<Semaphore> {
    Arc::new(Semaphore::new((bytes / UNIT).min(Semaphore::MAX_PERMITS)))
}

impl BodyMemory {
    pub(crate) fn new(bytes: usize) -> Self {
        Self { budget: budget(bytes), whole: None }
    }

    /// Creates a part of at most `bytes` of this budget, which must be the whole budget.
    pub(crate) fn part(&self, bytes: usize) -> Self {
        Self { budget: budget(bytes), whole: Some(Arc::clone(&self.budget)) }
    }

    /// Returns the number of unused bytes.
    pub(crate) fn free(&self) -> usize {
        self.budget.available_permits() * UNIT
    }

    /// Creates an empty share of this budget.
    pub(crate) fn share(&self) -> MemoryShare {
        MemoryShare { memory: self.clone(), permit: None, of_whole: None }
    }
}

impl MemoryShare {
    /// Returns the size of the share in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.permit.as_ref().map_or(0, |permit| permit.num_permits() * UNIT)
    }

    /// Grows the share to at least `bytes`. Returns false, and changes nothing, if the budget has too little
    /// left.
    pub(crate) fn grow_to(&mut self, bytes: usize) -> bool {
        let Ok(more) = u32::try_from(bytes.saturating_sub(self.bytes()).div_ceil(UNIT)) else { return false };
        let take = |of: &Arc<Semaphore>| of.clone().try_acquire_many_owned(more).ok();
        let Some(own) = take(&self.memory.budget) else { return false };
        if let Some(whole) = &self.memory.whole {
            let Some(of_whole) = take(whole) else { return false };
            add(&mut self.of_whole, of_whole);
        }
        add(&mut self.permit, own);
        true
    }

    /// Returns the memory beyond `bytes` to the budget.
    pub(crate) fn shrink_to(&mut self, bytes: usize) {
        for permit in [&mut self.permit, &mut self.of_whole].into_iter().flatten() {
            drop(permit.split(permit.num_permits().saturating_sub(bytes.div_ceil(UNIT))));
        }
    }

    /// Wraps `bytes` so that they hold this share until they are dropped.
    pub(crate) fn hold(self, bytes: impl AsRef<[u8]> + Send + 'static) -> Bytes {
        Bytes::from_owner(BytesWithShare { bytes, _share: self })
    }
}

fn add(to: &mut Option<OwnedSemaphorePermit>, more: OwnedSemaphorePermit) {
    match to {
        Some(permit) => permit.merge(more),
        None => *to = Some(more),
    }
}

struct BytesWithShare<B> {
    bytes: B,
    _share: MemoryShare,
}

impl<B: AsRef<[u8]>> AsRef<[u8]> for BytesWithShare<B> {
    fn as_ref(&self) -> &[u8] {
        self.bytes.as_ref()
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
        assert_eq!((one.bytes(), memory.free()), (2 * UNIT, 0), "a share that does not fit changes nothing");
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

    #[test]
    fn a_part_of_a_budget_is_bounded_by_both() {
        let memory = BodyMemory::new(10 * UNIT);
        let (small, large) = (memory.part(4 * UNIT), memory.part(20 * UNIT));
        let (mut one, mut other) = (small.share(), large.share());
        assert!(one.grow_to(4 * UNIT) && !one.grow_to(5 * UNIT));
        assert!(!other.grow_to(7 * UNIT) && other.grow_to(6 * UNIT));
        assert_eq!((memory.free(), small.free(), large.free()), (0, 0, 14 * UNIT));
        one.shrink_to(UNIT);
        assert_eq!((memory.free(), small.free()), (3 * UNIT, 3 * UNIT));
        drop((one, other));
        assert_eq!((memory.free(), small.free(), large.free()), (10 * UNIT, 4 * UNIT, 20 * UNIT));
    }
}
