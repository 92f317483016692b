//! Options of commands that work in bounded memory and disk space, and the memory that the process used.

use std::path::PathBuf;

use clap::Args;
use doppel_overlap::Budget;

use crate::exit::Failure;
use crate::memory::counted;
use crate::output::bytes;
use crate::size::ByteSize;

/// Minimum of `--memory` in bytes.
const MEMORY_MIN: u64 = 96 << 20;

/// Options that limit memory and temporary files.
#[derive(Debug, Clone, Args)]
pub struct BoundsArgs {
    /// Memory to use, such as 512MB or 2GiB; at least 96MiB.
    #[arg(long, value_name = "SIZE", default_value = "512MB")]
    memory: ByteSize,
    /// Room for temporary files. If it is not enough, the command fails without a result.
    #[arg(long, value_name = "SIZE", default_value = "16GB")]
    disk: ByteSize,
    /// Where temporary files are [default: TMPDIR, or /tmp].
    #[arg(long, value_name = "DIR")]
    temp_dir: Option<PathBuf>,
}

impl BoundsArgs {
    /// Bytes of memory that the command may use.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.memory.0
    }

    /// Creates the budget of the command.
    ///
    /// # Errors
    /// [`Failure::Usage`] if `--memory` is less than 96 MiB.
    pub fn budget(&self) -> Result<Budget, Failure> {
        let memory = self.memory.0;
        if memory < MEMORY_MIN {
            return Err(Failure::Usage("--memory is at least 96MiB".to_owned()));
        }
        let dir = self.temp_dir.clone().unwrap_or_else(std::env::temp_dir);
        Ok(Budget::new(counted(memory), self.disk.0, &dir))
    }
}

/// Peak of the memory of this process in bytes. `None` if the system does not report it.
#[must_use]
pub fn process_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = peak.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes << 10)
}

/// Describes the peak of the memory, next to the memory that was allowed. Both are in bytes.
#[must_use]
pub fn describe_memory(most: u64, allowed: u64) -> String {
    format!("the process had {} of memory at most; {} were allowed", bytes(most), bytes(allowed))
}
