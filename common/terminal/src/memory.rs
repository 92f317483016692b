//! Memory budgets: how much of the memory of a process a computation may use, and how much memory a process
//! needs for a given computation.

/// Memory, in bytes, that no budget includes: the program itself, and pages that are being read. A budget
/// also excludes a fifth of all memory of the process, because the allocator keeps some of the freed memory.
const ASIDE: u64 = 64 << 20;

/// Budget, in bytes, of a process that may use `memory` bytes. The subtraction overflows if `memory` is less
/// than 80 MiB.
pub fn counted(memory: u64) -> u64 {
    memory - memory / 5 - ASIDE
}

/// Advice if a computation needs `needed` bytes, but only `free` bytes are left of its budget of `limit`
/// bytes. The advice names a value of `--memory` that should be enough. This is an estimate: the memory in
/// use may be a share of the budget, which grows with it, or may have a fixed size.
pub fn more_memory(needed: u64, free: u64, limit: u64) -> String {
    let least = limit.saturating_sub(free).saturating_add(needed);
    let in_proportion = u128::from(needed) * u128::from(limit) / u128::from(free.max(1));
    let wanted = u64::try_from(in_proportion).unwrap_or(u64::MAX).clamp(least, least.saturating_mul(2));
    // Inverts [`counted`], in whole megabytes.
    let memory = wanted.saturating_add(ASIDE).saturating_mul(5).div_ceil(4).div_ceil(1_000_000);
    format!("give more, such as --memory {memory}MB")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::size::ByteSize;

    #[test]
    fn the_memory_that_is_named_has_room() {
        for wanted in [20_000_000, 35_000_000, 1_234_567_890] {
            // Both budgets need the same `--memory`. The first is unused. The second is half in use, and
            // lacks half as much.
            let said = more_memory(wanted, 13, 13);
            assert_eq!(said, more_memory(wanted / 2, 5, 10));
            let ByteSize(memory) = said.split_whitespace().last().unwrap().parse().unwrap();
            assert!(counted(memory) >= wanted && counted(memory - 1_000_000) < wanted, "{said}");
        }
    }
}
