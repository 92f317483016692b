//! Commands that count in bounded memory and disk: the options that say how much, and what the process had in the end.

use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;
use doppel_overlap::Budget;

use crate::exit::Failure;
use crate::output::bytes;

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
        Ok(Budget::new(memory - memory / 5 - ASIDE, self.disk.0, &dir))
    }
}

/// A number of bytes with a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Size(u64);

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let unit = match &*text[digits.len()..].to_ascii_lowercase() {
            "" | "b" => Some(1),
            "kb" => Some(1_000),
            "mb" => Some(1_000_000),
            "gb" => Some(1_000_000_000),
            "kib" => Some(1 << 10),
            "mib" => Some(1 << 20),
            "gib" => Some(1 << 30),
            _ => None,
        };
        let digits = digits.trim_end();
        // `parse` takes a sign, too.
        let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
        let size = digits.parse::<u64>().ok().filter(|_| is_number).zip(unit);
        let size = size.and_then(|(number, unit)| number.checked_mul(unit));
        size.map(Self).ok_or_else(|| "a size such as 512MB, 2GiB or a number of bytes is expected".to_owned())
    }
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
    fn sizes_have_units() {
        let size = |text: &str| text.parse::<Size>().ok().map(|size| size.0);
        assert_eq!(size("512MB"), Some(512_000_000));
        assert_eq!((size("2GiB"), size("64 kib"), size("7")), (Some(2 << 30), Some(64 << 10), Some(7)));
        assert_eq!(size("+512MB"), None);
        assert_eq!((size(""), size("MB"), size("5XB"), size("99999999999GB")), (None, None, None, None));
    }
}
