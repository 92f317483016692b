//! How much of a process's memory is left to count with, and how much a process needs for it.

/// Memory of the program beside what is counted with: pages that are being read, and the program itself. A fifth of all is left to the
/// allocator, which keeps some of what it was given back.
const ASIDE: u64 = 64 << 20;

/// What is counted with, of so much memory.
pub fn counted(memory: u64) -> u64 {
    memory - memory / 5 - ASIDE
}

/// What to say where a budget of memory does not suffice: a `--memory` that has room for what was asked for. What is in use may be a
/// share of the budget, which grows with it, or a size of its own, so this is an estimate.
pub fn more_memory(needed: u64, free: u64, limit: u64) -> String {
    let least = limit.saturating_sub(free).saturating_add(needed);
    let in_proportion = u128::from(needed) * u128::from(limit) / u128::from(free.max(1));
    let wanted = u64::try_from(in_proportion).unwrap_or(u64::MAX).clamp(least, least.saturating_mul(2));
    // The inverse of `counted`, in whole megabytes.
    let memory = wanted.saturating_add(ASIDE).saturating_mul(5).div_ceil(4).div_ceil(1_000_000);
    format!("give more, such as --memory {memory}MB")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::size::Size;

    #[test]
    fn the_memory_that_is_named_has_room() {
        for wanted in [20_000_000, 35_000_000, 1_234_567_890] {
            // Nothing else in use, and as much again as is needed, in proportion.
            let said = more_memory(wanted, 13, 13);
            assert_eq!(said, more_memory(wanted / 2, 5, 10));
            let Size(memory) = said.split_whitespace().last().unwrap().parse().unwrap();
            assert!(counted(memory) >= wanted && counted(memory - 1_000_000) < wanted, "{said}");
        }
    }
}
