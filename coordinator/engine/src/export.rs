//! The export: one line for every live page, sorted by URL, in bounded memory.

use std::io::{self, Write};
use std::path::Path;

use doppel_protocol::answer::ExportLine;
use doppel_protocol::{Line, SCAN_LINES_MAX, Scan, Tier1Api, Tier1Error};

use crate::advise::Advisor;
use crate::limits::{EXPORT_CHUNK_BYTES, EXPORT_RUNS};
use crate::market::MarketWinners;
use crate::sort::Sorter;

/// What an export has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportSummary {
    /// Lines written.
    pub pages: u64,
    /// Where the change feed goes on: every change after the export began comes after it.
    pub cursor: String,
}

/// Why there is no export, or only a part of it.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// Tier 1 could not be read.
    #[error(transparent)]
    Tier1Error(#[from] Tier1Error),
    /// The temporary files failed.
    #[error("cannot sort the export in {dir}: {source}", dir = dir.display())]
    Spill {
        /// Where they are.
        dir: std::path::PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The output failed.
    #[error("cannot write the export")]
    Write(#[source] io::Error),
}

/// Every live page, collected and ready to be written in order.
pub struct Collected {
    sorter: Sorter,
    summary: ExportSummary,
}

/// Writes every live page of a collection at rest as a JSON line with `url`, `status`, `group`, `winner`, `duplicate_of` and
/// `similarity`, in byte order of the URLs, as they are for a market if there is one. What does not fit in memory is sorted in
/// the system's directory of temporary files.
///
/// # Errors
/// When tier 1 cannot be read, the temporary files or `out` cannot be written.
pub fn write_export(
    tier1: &dyn Tier1Api,
    mut market: Option<&mut MarketWinners<'_>>,
    out: &mut dyn Write,
) -> Result<ExportSummary, ExportError> {
    let mut as_at_rest = |lines: Vec<Line>| match &mut market {
        Some(market) => lines.into_iter().map(|line| market.apply(line)).collect(),
        None => Ok(lines),
    };
    Collected::from(tier1, &std::env::temp_dir(), &mut as_at_rest)?.write(out)
}

/// What is exported of some pages.
type Shown<'s> = dyn FnMut(Vec<Line>) -> Result<Vec<Line>, Tier1Error> + 's;

impl Collected {
    /// Reads all pages while the collection changes: each is told as the advisor would.
    pub fn present(
        tier1: &dyn Tier1Api,
        advisor: &mut Advisor<'_>,
        temp_dir: &Path,
    ) -> Result<Self, ExportError> {
        Self::from(tier1, temp_dir, &mut |lines| Ok(advisor.present(lines)?.into_iter().flatten().collect()))
    }

    /// Reads all pages; what does not fit in memory is sorted in files in `temp_dir`, which have no names.
    fn from(tier1: &dyn Tier1Api, temp_dir: &Path, shown: &mut Shown<'_>) -> Result<Self, ExportError> {
        let spill = |source| ExportError::Spill { dir: temp_dir.to_owned(), source };
        let mut sorter = Sorter::new(temp_dir, EXPORT_CHUNK_BYTES, EXPORT_RUNS);
        let mut pages = 0;
        // What changes during the scan comes after this in the feed.
        let cursor = tier1.cursor()?;
        let mut scan = Scan::new(tier1).peekable();
        while scan.peek().is_some() {
            let lines = scan.by_ref().take(SCAN_LINES_MAX).collect::<Result<Vec<Line>, Tier1Error>>()?;
            for line in shown(lines)? {
                pages += 1;
                let written = sorter.push(line.url.as_str().as_bytes(), |out| {
                    serde_json::to_writer(&mut *out, &ExportLine::from(&line))?;
                    out.push(b'\n');
                    Ok(())
                });
                written.map_err(spill)?;
            }
        }
        Ok(Self { sorter, summary: ExportSummary { pages, cursor } })
    }

    /// The place in the change feed from which a consumer of the export goes on.
    pub fn cursor(&self) -> &str {
        &self.summary.cursor
    }

    /// Writes the sorted lines.
    ///
    /// # Errors
    /// When the lines cannot be read back or written.
    pub fn write(self, out: &mut dyn Write) -> Result<ExportSummary, ExportError> {
        self.sorter.finish(&mut |line| out.write_all(line)).map_err(ExportError::Write)?;
        out.flush().map_err(ExportError::Write)?;
        Ok(self.summary)
    }
}
