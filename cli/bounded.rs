//! Commands that count in bounded memory and disk: the options that say how much, and what the process had in the end.

use std::path::PathBuf;

use clap::Args;
use doppel_overlap::Budget;

use crate::exit::Failure;
use crate::output::bytes;
use crate::size::Size;

/// Memory of the program beside what is counted with: pages that are being read, and the program itself. A fifth of all is left to the
/// allocator, which keeps some of what it was given back.
const ASIDE: u64 = 64 << 20;
/// The least memory.
const MEMORY_MIN: u64 = 96 << 20;

/// How much a command may take.
#[derive(Debug, Clone, Args)]
pub struct BoundsArgs {
    /// Memory to use, such as 512MB or 2GiB; at least 96MiB.
    #[arg(long, value_name = "SIZE", default_value = "512MB")]
    memory: Size,
    /// Room for temporary files. Where it does not suffice, nothing is found and the command says so.
    #[arg(long, value_name = "SIZE", default_value = "16GB")]
    disk: Size,
    /// Where temporary files are [default: TMPDIR, or /tmp].
    #[arg(long, value_name = "DIR")]
    temp_dir: Option<PathBuf>,
}

impl BoundsArgs {
    /// The memory that may be used.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.memory.0
    }

    /// What may be counted with.
    ///
    /// # Errors
    /// When the memory is less than the least.
    pub fn budget(&self) -> Result<Budget, Failure> {
        let memory = self.memory.0;
        if memory < MEMORY_MIN {
            return Err(Failure::Usage("--memory is at least 96MiB".to_owned()));
        }
        let dir = self.temp_dir.clone().unwrap_or_else(std::env::temp_dir);
        Ok(Budget::new(counted(memory), self.disk.0, &dir))
    }
}

/// What is counted with, of so much memory.
fn counted(memory: u64) -> u64 {
    memory - memory / 5 - ASIDE
}

/// What to say where a budget of memory does not suffice: a `--memory` that has room for what was asked for. What is in use may be a
/// share of the budget, which grows with it, or a size of its own, so this is an estimate.
#[must_use]
pub fn more_memory(needed: u64, free: u64, limit: u64) -> String {
    let least = limit.saturating_sub(free).saturating_add(needed);
    let in_proportion = u128::from(needed) * u128::from(limit) / u128::from(free.max(1));
    let wanted = u64::try_from(in_proportion).unwrap_or(u64::MAX).clamp(least, least.saturating_mul(2));
    // The inverse of `counted`, in whole megabytes.
    let memory = wanted.saturating_add(ASIDE).saturating_mul(5).div_ceil(4).div_ceil(1_000_000);
    format!("give more, such as --memory {memory}MB")
}

/// The most memory that this process had, where the system says it.
#[must_use]
pub fn process_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = peak.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes << 10)
}

/// How much that was, beside what was allowed.
#[must_use]
pub fn told(most: u64, allowed: u64) -> String {
    format!("the process had {} of memory at most; {} were allowed", bytes(most), bytes(allowed))
}

#[cfg(test)]
mod tests {
    use super::*;

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
