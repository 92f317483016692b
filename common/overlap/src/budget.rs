//! Limits of the memory and the disk space that the crate uses.
//!
//! Code that needs much memory claims the memory from the budget. Dropping the [`MemoryClaim`] returns the
//! memory to the budget. Small allocations, such as the lists of results, are not claimed.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use crate::OverlapError;

/// A limit of memory and of disk space. A budget and its clones share one limit.
#[derive(Debug, Clone)]
pub struct Budget(Rc<BudgetLimits>);

#[derive(Debug)]
struct BudgetLimits {
    memory: Gauge,
    disk: Gauge,
    dir: PathBuf,
}

#[derive(Debug)]
struct Gauge {
    limit: u64,
    used: Cell<u64>,
    peak: Cell<u64>,
}

impl Gauge {
    fn new(limit: u64) -> Self {
        Self { limit, used: Cell::new(0), peak: Cell::new(0) }
    }

    fn free(&self) -> u64 {
        self.limit.saturating_sub(self.used.get())
    }

    fn take(&self, bytes: u64) -> bool {
        let used = self.used.get().saturating_add(bytes);
        let fits = used <= self.limit;
        if fits {
            self.used.set(used);
            self.peak.set(self.peak.get().max(used));
        }
        fits
    }

    fn give(&self, bytes: u64) {
        self.used.set(self.used.get().saturating_sub(bytes));
    }
}

/// Peaks of claimed memory and of disk space since the previous call of [`Budget::peaks`], or since the
/// budget was created. The two peaks can occur at different times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BudgetPeaks {
    /// Peak of claimed memory in bytes.
    pub memory_bytes: u64,
    /// Peak of the total size of all temporary files, in bytes.
    pub disk_bytes: u64,
}

impl Budget {
    /// Creates a budget of `memory` bytes of memory and `disk` bytes of temporary files in `dir`.
    #[must_use]
    pub fn new(memory: u64, disk: u64, dir: &Path) -> Self {
        Self(Rc::new(BudgetLimits {
            memory: Gauge::new(memory),
            disk: Gauge::new(disk),
            dir: dir.to_owned(),
        }))
    }

    /// Bytes of memory that are not claimed.
    pub(crate) fn free(&self) -> u64 {
        self.0.memory.free()
    }

    /// The directory in which the crate creates temporary files.
    pub(crate) fn dir(&self) -> &Path {
        &self.0.dir
    }

    /// Claims `bytes` bytes of memory until the claim is dropped. If fewer bytes are free, the error names
    /// the purpose `what`.
    pub(crate) fn claim(&self, bytes: u64, what: &'static str) -> Result<MemoryClaim, OverlapError> {
        let mut claim = MemoryClaim { budget: self.clone(), bytes: 0 };
        claim.grow(bytes, what)?;
        Ok(claim)
    }

    /// Reserves `bytes` bytes of disk space until [`give_disk`](Self::give_disk) returns them. Fails if
    /// temporary files would exceed the limit.
    pub(crate) fn take_disk(&self, bytes: u64) -> Result<(), OverlapError> {
        match self.0.disk.take(bytes) {
            true => Ok(()),
            false => Err(OverlapError::Disk { dir: self.0.dir.clone(), limit: self.0.disk.limit }),
        }
    }

    pub(crate) fn give_disk(&self, bytes: u64) {
        self.0.disk.give(bytes);
    }

    /// Returns the peaks of claimed memory and of disk space since the previous call of this function, or
    /// since the budget was created.
    #[must_use]
    pub fn peaks(&self) -> BudgetPeaks {
        let peak = |gauge: &Gauge| gauge.peak.replace(gauge.used.get());
        BudgetPeaks { memory_bytes: peak(&self.0.memory), disk_bytes: peak(&self.0.disk) }
    }
}

/// Memory claimed from a budget. Dropping this value returns the memory to the budget.
#[derive(Debug)]
pub struct MemoryClaim {
    budget: Budget,
    bytes: u64,
}

impl MemoryClaim {
    /// Claims `bytes` more bytes of memory. `what` names the purpose in the error.
    pub(crate) fn grow(&mut self, bytes: u64, what: &'static str) -> Result<(), OverlapError> {
        let memory = &self.budget.0.memory;
        if !memory.take(bytes) {
            let (free, limit) = (memory.free(), memory.limit);
            return Err(OverlapError::Memory { what, needed: bytes, free, limit });
        }
        self.bytes += bytes;
        Ok(())
    }

    /// Returns memory to the budget, so that this claim holds at most `to` bytes.
    pub(crate) fn shrink(&mut self, to: u64) {
        let surplus = self.bytes.saturating_sub(to);
        self.budget.0.memory.give(surplus);
        self.bytes -= surplus;
    }
}

impl Drop for MemoryClaim {
    fn drop(&mut self) {
        self.shrink(0);
    }
}
