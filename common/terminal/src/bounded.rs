//! Options that bound the memory and the temporary files of a command, and the peak memory of the process.

use std::path::PathBuf;

use clap::Args;
use doppel_overlap::Budget;

use crate::exit::Failure;
use crate::memory::counted;
use crate::output::bytes;
use crate::size::ByteSize;

/// Least value of `--memory`, in bytes.
const MEMORY_MIN: u64 = 96 << 20;

/// Options that bound the memory and the temporary files of a command.
#[derive(Debug, Clone, Args)]
pub struct BoundsArgs {
    /// Memory to use, such as 512MB or 2GiB; at least 96MiB.
    #[arg(long, value_name = "SIZE", default_value = "512MB")]
    memory: ByteSize,
    /// Room for temporary files. If it does not suffice, the command reports that and finds nothing.
    #[arg(long, value_name = "SIZE", default_value = "16GB")]
    disk: ByteSize,
    /// Directory of temporary files [default: TMPDIR, or /tmp].
    #[arg(long, value_name = "DIR")]
    temp_dir: Option<PathBuf>,
}

impl BoundsArgs {
    /// Memory that the command may use, in bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.memory.0
    }

    /// The budget of memory and disk for counting.
    ///
    /// # Errors
    /// Fails if `--memory` is less than 96 MiB.
    pub fn budget(&self) -> Result<Budget, Failure> {
        let memory = self.memory.0;
        if memory < MEMORY_MIN {
            return Err(Failure::Usage("--memory is at least 96MiB".to_owned()));
        }
        let dir = self.temp_dir.clone().unwrap_or_else(std::env::temp_dir);
        Ok(Budget::new(counted(memory), self.disk.0, &dir))
    }
}

/// Peak memory of this process in bytes, if the system reports it.
#[must_use]
pub fn process_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = peak.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes << 10)
}

/// A sentence that compares the peak memory with the allowed memory.
#[must_use]
pub fn describe_memory(most: u64, allowed: u64) -> String {
    format!("the process had {} of memory at most; {} were allowed", bytes(most), bytes(allowed))
}
