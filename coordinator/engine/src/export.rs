//! The export of a collection: one JSON line for every live page, sorted by URL, in bounded memory.

use std::io::{self, Write};
use std::path::Path;

use doppel_contract::answer::ExportLine;
use doppel_protocol::{Line, PageScan, SCAN_LINES_MAX, Tier1Api, Tier1Error};

use crate::advise::Advisor;
use crate::limits::{EXPORT_CHUNK_BYTES, EXPORT_RUNS};
use crate::market::MarketWinners;
use crate::sort::Sorter;

/// Size of an export and its position in the change feed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportSummary {
    /// Number of lines written, one for each live page.
    pub pages: u64,
    /// Cursor of the change feed from before the export. Every later change follows this cursor.
    pub cursor: String,
}

/// Reason why an export failed or is incomplete.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// A read from tier 1 failed.
    #[error(transparent)]
    Tier1Error(#[from] Tier1Error),
    /// A temporary file of the sort failed.
    #[error("cannot sort the export in {dir}: {source}", dir = dir.display())]
    Spill {
        /// Directory of the temporary files.
        dir: std::path::PathBuf,
        /// The underlying I/O error.
        source: io::Error,
    },
    /// Writing to the output failed.
    #[error("cannot write the export")]
    Write(#[source] io::Error),
}

/// The lines of all live pages, collected and ready to be sorted and written.
pub struct PendingExport {
    sorter: Sorter,
    summary: ExportSummary,
}

/// Writes every live page of a collection at rest as a JSON line, in byte order of the URLs.
///
/// A line has the fields `url`, `status`, `group`, `winner`, `duplicate_of` and `similarity`. With a
/// `market`, the lines name the winners for that market. Lines that do not fit in memory are sorted in the
/// system's directory for temporary files.
///
/// # Errors
/// If tier 1 cannot be read, or if the temporary files or `out` cannot be written.
pub fn write_export(
    tier1: &dyn Tier1Api,
    mut market: Option<&mut MarketWinners<'_>>,
    out: &mut dyn Write,
) -> Result<ExportSummary, ExportError> {
    let mut as_at_rest = |lines: Vec<Line>| match &mut market {
        Some(market) => lines.into_iter().map(|line| market.apply(line)).collect(),
        None => Ok(lines),
    };
    PendingExport::collect(tier1, &std::env::temp_dir(), &mut as_at_rest)?.write(out)
}

/// Converts recorded lines to the lines that the export writes. The result may leave lines out.
type LineUpdate<'s> = dyn FnMut(Vec<Line>) -> Result<Vec<Line>, Tier1Error> + 's;

impl PendingExport {
    /// Reads all pages of a collection that may be changing. `advisor` brings every line up to date, and
    /// pages that are no longer live are left out.
    ///
    /// # Errors
    /// If tier 1 cannot be read or a temporary file in `temp_dir` fails.
    pub fn of_changing_collection(
        tier1: &dyn Tier1Api,
        advisor: &mut Advisor<'_>,
        temp_dir: &Path,
    ) -> Result<Self, ExportError> {
        Self::collect(tier1, temp_dir, &mut |lines| {
            Ok(advisor.present(lines)?.into_iter().flatten().collect())
        })
    }

    /// Reads all pages. Lines that do not fit in memory are sorted in unnamed files in `temp_dir`.
    fn collect(
        tier1: &dyn Tier1Api,
        temp_dir: &Path,
        update: &mut LineUpdate<'_>,
    ) -> Result<Self, ExportError> {
        let spill = |source| ExportError::Spill { dir: temp_dir.to_owned(), source };
        let mut sorter = Sorter::new(temp_dir, EXPORT_CHUNK_BYTES, EXPORT_RUNS);
        let mut pages = 0;
        // The cursor is read first, so that the feed after it contains every change made during the scan.
        let cursor = tier1.cursor()?;
        let mut scan = PageScan::new(tier1).peekable();
        while scan.peek().is_some() {
            let lines = scan.by_ref().take(SCAN_LINES_MAX).collect::<Result<Vec<Line>, Tier1Error>>()?;
            for line in update(lines)? {
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

    /// Returns the cursor of the change feed at which a consumer of the export continues.
    pub fn cursor(&self) -> &str {
        &self.summary.cursor
    }

    /// Writes all lines to `out` in byte order of the URLs.
    ///
    /// # Errors
    /// If the lines cannot be read back or written.
    pub fn write(self, out: &mut dyn Write) -> Result<ExportSummary, ExportError> {
        self.sorter.finish(&mut |line| out.write_all(line)).map_err(ExportError::Write)?;
        out.flush().map_err(ExportError::Write)?;
        Ok(self.summary)
    }
}
