//! The savings report: the pages and bytes that dropping duplicates saves, counted page by page in bounded
//! memory.
//!
//! - A page that can be dropped is a redirect, an exact copy, or a near-duplicate. Among the pages with one
//!   content, all but one count as copies, whichever page they are duplicates of. The number of copies is
//!   therefore what a tool saves that drops exact copies alone.
//! - To count copies, the report sorts the pages of groups by content, in temporary files if they do not fit
//!   in memory. Pages without words all have the same content, but they are not duplicates. The report does
//!   not count them as copies.
//! - Pairs of hosts are counted as the pages arrive. Beyond a limit the report discards the rarer half of the
//!   pairs, and counts their pages as left out.

mod mirrors;
mod wordless;

use std::io;
use std::path::{Path, PathBuf};

use doppel_contract::Status;
use doppel_contract::answer::{RemovableShare, Savings};
use doppel_model::pairwise::Policy;
use doppel_model::{ContentHash, PageUrl};

use crate::limits::{EXPORT_CHUNK_BYTES, EXPORT_RUNS, MIRRORS, MIRRORS_COUNTED};
use crate::sort::Sorter;
use mirrors::{DropReason, MirrorCounter};
use wordless::Wordless;

/// A page to count, with its status.
#[derive(Debug, Clone, Copy)]
pub struct CountedPage<'p> {
    /// URL of the page.
    pub url: &'p PageUrl,
    /// Status that the page has at the moment.
    pub status: Status,
    /// The kept page of which this page is a duplicate.
    pub of: Option<&'p PageUrl>,
    /// Hash of the content. `None` for a redirect.
    pub content: Option<ContentHash>,
    /// Whether the kept page `of` has the same content.
    pub is_copy: bool,
    /// Size of the text or HTML in bytes. `None` if the size is not known.
    pub bytes: Option<u64>,
}

/// Reason why the savings could not be counted.
#[derive(Debug, thiserror::Error)]
pub enum SavingsCountError {
    /// A temporary file of the sort failed.
    #[error("cannot sort pages in {dir}: {source}", dir = dir.display())]
    Files {
        /// Directory of the temporary files.
        dir: PathBuf,
        /// The underlying I/O error.
        source: io::Error,
    },
    /// The caller asked the counting to stop.
    #[error("the counting was stopped")]
    Stopped,
}

impl SavingsCountError {
    fn of(dir: PathBuf, source: io::Error) -> Self {
        if source.kind() == io::ErrorKind::Interrupted { Self::Stopped } else { Self::Files { dir, source } }
    }

    /// Returns true if the disk has no space left for the temporary files.
    #[must_use]
    pub fn is_disk_full(&self) -> bool {
        matches!(self, Self::Files { source, .. } if source.kind() == io::ErrorKind::StorageFull)
    }
}

/// Counters of a savings report in progress.
pub struct SavingsCounter {
    dir: PathBuf,
    policy: Policy,
    wordless: Wordless,
    keeps_redirects: bool,
    all: Amount,
    redirects: Amount,
    undecided: u64,
    mirrors: MirrorCounter,
    /// Pages of groups, to be sorted by content. Pages without words are left out.
    contents: Sorter,
}

/// A number of pages and their total size. `bytes` is `None` if the size of any page is unknown.
#[derive(Debug, Clone, Copy)]
struct Amount {
    pages: u64,
    bytes: Option<u64>,
}

/// Size of a sort record: the content hash, the size of the page, and a flag for a page that can be dropped.
const RECORD_BYTES: usize = 16 + 8 + 1;
/// Size that marks a page of unknown size in a sort record.
const UNKNOWN: u64 = u64::MAX;

/// Counters for the pages with one content.
#[derive(Debug)]
struct ContentCounter {
    content: [u8; 16],
    pages: u64,
    /// Size of the first page that can be dropped. The inner `None` means that the size is unknown.
    first: Option<Option<u64>>,
    /// All further pages that can be dropped.
    others: Amount,
}

/// Savings summed over all contents.
#[derive(Debug)]
struct SavingsSums {
    copies: Amount,
    near: Amount,
    held_back: u64,
}

impl Amount {
    const NONE: Self = Self { pages: 0, bytes: Some(0) };

    fn add(&mut self, bytes: Option<u64>) {
        self.pages += 1;
        self.bytes = self.bytes.zip(bytes).map(|(sum, bytes)| sum + bytes);
    }

    fn plus(self, other: Self) -> Self {
        let bytes = self.bytes.zip(other.bytes).map(|(a, b)| a + b);
        Self { pages: self.pages + other.pages, bytes }
    }

    /// Expresses this amount as a share of `all`.
    fn of(self, all: Self) -> RemovableShare {
        let share = |part: u64, whole: u64| if whole == 0 { 0.0 } else { part as f64 / whole as f64 };
        RemovableShare {
            pages: self.pages,
            share: share(self.pages, all.pages),
            bytes: self.bytes,
            bytes_share: self.bytes.zip(all.bytes).map(|(part, whole)| share(part, whole)),
        }
    }
}

impl SavingsCounter {
    /// Starts a report on pages that are compared by `policy`. Records that do not fit in memory are sorted
    /// in unnamed files in `temp_dir`.
    #[must_use]
    pub fn new(policy: Policy, temp_dir: &Path) -> Self {
        Self::with(policy, temp_dir, EXPORT_CHUNK_BYTES, MIRRORS_COUNTED)
    }

    fn with(policy: Policy, temp_dir: &Path, chunk_bytes: usize, mirrors_max: usize) -> Self {
        Self {
            dir: temp_dir.to_owned(),
            policy,
            wordless: Wordless::under(policy),
            keeps_redirects: false,
            all: Amount::NONE,
            redirects: Amount::NONE,
            undecided: 0,
            mirrors: MirrorCounter::new(mirrors_max),
            contents: Sorter::new(temp_dir, chunk_bytes, EXPORT_RUNS),
        }
    }

    /// Counts redirects as kept, so that they save no pages.
    #[must_use]
    pub fn keeping_redirects(self) -> Self {
        Self { keeps_redirects: true, ..self }
    }

    /// Returns the number of live pages counted so far.
    #[must_use]
    pub fn pages(&self) -> u64 {
        self.all.pages
    }

    /// Counts one page of the collection. Pages that are not live are ignored.
    ///
    /// # Errors
    /// If a temporary file fails.
    pub fn add(&mut self, page: &CountedPage<'_>) -> Result<(), SavingsCountError> {
        if matches!(page.status, Status::Dead | Status::Unknown) {
            return Ok(());
        }
        self.all.add(page.bytes);
        self.undecided += u64::from(page.status == Status::Pending);
        let is_kept_redirect = self.keeps_redirects && page.content.is_none();
        let is_dropped = page.status == Status::Duplicate && !is_kept_redirect;
        if is_dropped {
            let kind = match page.content {
                None => DropReason::Redirect,
                Some(_) if page.is_copy => DropReason::Copy,
                Some(_) => DropReason::Near,
            };
            if let Some(of) = page.of {
                self.mirrors.add(page.url.host(), of.host(), kind, page.bytes);
            }
            if kind == DropReason::Redirect {
                self.redirects.add(page.bytes);
            }
        }
        // No other page shares the content of a unique page, unless that content has no words.
        let Some(content) = page.content.filter(|_| page.status != Status::Unique) else { return Ok(()) };
        // A page without words can still be in a group, if redirects point to it.
        if !is_dropped && self.wordless.has(page.url, content) {
            return Ok(());
        }
        let written = self.contents.push(&content.0, |out| {
            out.extend(content.0);
            out.extend(page.bytes.unwrap_or(UNKNOWN).to_le_bytes());
            out.push(u8::from(is_dropped));
            Ok(())
        });
        written.map_err(|source| SavingsCountError::of(self.dir.clone(), source))
    }

    /// Completes the savings report. `truncated` means that the collection has more pages than were counted.
    ///
    /// # Errors
    /// If a temporary file fails, and [`SavingsCountError::Stopped`] soon after `stops` returns true.
    pub fn finish(self, truncated: bool, stops: &dyn Fn() -> bool) -> Result<Savings, SavingsCountError> {
        self.finish_with(MIRRORS, truncated, stops)
    }

    /// Like [`finish`](Self::finish), but lists at most `mirrors_max` pairs of hosts.
    ///
    /// # Errors
    /// If a temporary file fails, and [`SavingsCountError::Stopped`] soon after `stops` returns true.
    pub fn finish_with(
        self,
        mirrors_max: usize,
        truncated: bool,
        stops: &dyn Fn() -> bool,
    ) -> Result<Savings, SavingsCountError> {
        let Self { dir, policy, all, redirects, undecided, mirrors, contents, .. } = self;
        let mut sums = SavingsSums { copies: Amount::NONE, near: Amount::NONE, held_back: 0 };
        let mut now: Option<ContentCounter> = None;
        let sorted = contents.finish_unless(stops, &mut |record| {
            let (content, bytes, is_dropped) = parse(record)?;
            if let Some(before) = now.take_if(|now| now.content != content) {
                sums.add(&before);
            }
            now.get_or_insert(ContentCounter::new(content)).add(bytes, is_dropped);
            Ok(())
        });
        sorted.map_err(|source| SavingsCountError::of(dir, source))?;
        if let Some(last) = &now {
            sums.add(last);
        }
        let SavingsSums { copies, near, held_back } = sums;
        let found = mirrors.finish(mirrors_max);
        Ok(Savings {
            policy: policy.to_string(),
            pages: all.pages,
            bytes: all.bytes,
            truncated,
            redirects: redirects.of(all),
            copies: copies.of(all),
            near: near.of(all),
            all: redirects.plus(copies).plus(near).of(all),
            held_back,
            undecided,
            on_one_host: found.on_one_host,
            across_hosts: found.across_hosts,
            mirrors: found.mirrors,
            mirrors_left_out: found.left_out,
            mirrors_cut: found.cut,
            age_ms: None,
        })
    }
}

impl ContentCounter {
    fn new(content: [u8; 16]) -> Self {
        Self { content, pages: 0, first: None, others: Amount::NONE }
    }

    fn add(&mut self, bytes: Option<u64>, is_dropped: bool) {
        self.pages += 1;
        match self.first {
            _ if !is_dropped => {}
            None => self.first = Some(bytes),
            Some(_) => self.others.add(bytes),
        }
    }
}

impl SavingsSums {
    /// Adds the pages of one content. If none of them is kept, one page counts as a near-duplicate and the
    /// others count as its copies.
    fn add(&mut self, content: &ContentCounter) {
        let ContentCounter { pages, first, others, .. } = *content;
        self.copies = self.copies.plus(others);
        let kept = pages - others.pages - u64::from(first.is_some());
        if let Some(bytes) = first {
            let one = if kept == 0 { &mut self.near } else { &mut self.copies };
            one.add(bytes);
        }
        self.held_back += kept.saturating_sub(1);
    }
}

fn parse(record: &[u8]) -> io::Result<([u8; 16], Option<u64>, bool)> {
    let parts = record.first_chunk::<RECORD_BYTES>().and_then(|record| {
        let (content, rest) = record.split_first_chunk::<16>()?;
        let (bytes, rest) = rest.split_first_chunk::<8>()?;
        Some((*content, u64::from_le_bytes(*bytes), *rest.first()? != 0))
    });
    let (content, bytes, is_dropped) = parts.ok_or(io::ErrorKind::UnexpectedEof)?;
    Ok((content, Some(bytes).filter(|bytes| *bytes != UNKNOWN), is_dropped))
}

#[cfg(test)]
mod tests;
