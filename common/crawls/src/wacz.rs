//! Reads WACZ files (<https://specs.webrecorder.net/wacz/1.1.1/>). A WACZ file is a ZIP file with the WARC
//! files of a crawl in `archive/`, and lists of its pages in `pages/`.
//!
//! The reader presents all WARC files as one stream of pages. A page whose record has no date gets the date
//! that `pages/*.jsonl` lists for its URL. Titles in these lists are not used, because the page has its own
//! title. The reader never writes to disk. It only compares the names of files in the archive, so `..` in a
//! name has no effect.

mod directory;
pub(crate) mod page_dates;
mod pages;

use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::vec;

use directory::{CentralDirectory, Entry, UnreadableFile};
use doppel_streams::{FilePart, InputError, InputPosition, Reason};

use crate::format::{self, Format};
use crate::warc::Pages;
use crate::{InputOptions, Item};
use page_dates::PageDates;

/// Reader of the pages of all WARC files in a WACZ file, in the order of the names of these files.
pub(super) struct Wacz {
    path: Arc<Path>,
    file: Arc<File>,
    options: InputOptions,
    dates: Arc<PageDates>,
    /// WARC files still to be read, and unreadable files still to be reported.
    entries: vec::IntoIter<Result<Entry, UnreadableFile>>,
    /// The WARC file that is being read.
    current: Option<Pages>,
    /// Counts of the WARC files before the current one.
    finished_files: ReadCounts,
}

/// Counts that accumulate over the WARC files.
#[derive(Clone, Copy, Default)]
struct ReadCounts {
    bytes_read: u64,
    unpacked: u64,
    skipped_bytes: u64,
    ignored_dates: u64,
    cut_off: u64,
    broke_off: bool,
}

impl ReadCounts {
    fn plus(self, pages: &Pages) -> Self {
        Self {
            bytes_read: self.bytes_read + pages.bytes_read(),
            unpacked: pages.unpacked(),
            skipped_bytes: self.skipped_bytes + pages.skipped_bytes(),
            ignored_dates: self.ignored_dates + pages.ignored_dates(),
            cut_off: self.cut_off + pages.cut_off(),
            broke_off: self.broke_off || pages.broke_off(),
        }
    }
}

impl Wacz {
    /// Opens a WACZ file that is called `path`.
    pub(super) fn new(path: &Arc<Path>, file: File, options: InputOptions) -> Result<Self, Reason> {
        let file = Arc::new(file);
        let CentralDirectory { entries, pages } = CentralDirectory::read(&file)?;
        let (dates, ignored_dates) = pages::dates(&file, &pages, &options.limits);
        let finished_files = ReadCounts { ignored_dates, ..ReadCounts::default() };
        let (path, entries) = (Arc::clone(path), entries.into_iter());
        Ok(Self { path, file, options, dates: Arc::new(dates), entries, current: None, finished_files })
    }

    fn counts(&self) -> ReadCounts {
        self.current.as_ref().map_or(self.finished_files, |pages| self.finished_files.plus(pages))
    }

    /// Number of stored bytes of WARC files read.
    pub(super) fn bytes_read(&self) -> u64 {
        self.counts().bytes_read
    }

    pub(super) fn skipped_bytes(&self) -> u64 {
        self.counts().skipped_bytes
    }

    pub(super) fn ignored_dates(&self) -> u64 {
        self.counts().ignored_dates
    }

    pub(super) fn cut_off(&self) -> u64 {
        self.counts().cut_off
    }

    pub(super) fn broke_off(&self) -> bool {
        self.counts().broke_off
    }

    /// Position of the record that was returned last, in its WACZ file.
    pub(super) fn input_position(&self) -> InputPosition {
        self.current.as_ref().map_or(InputPosition::File, Pages::input_position)
    }

    /// The WARC file that is being read.
    pub(super) fn current(&self) -> Option<&Pages> {
        self.current.as_ref()
    }

    /// Enters the next WARC file. `None` at the end, or an error item if a file cannot be read.
    pub(super) fn next_file(&mut self) -> Option<Result<&mut Pages, Item>> {
        self.finished_files = self.counts();
        self.current = None;
        let opened = match self.entries.next()? {
            Ok(entry) => self.open(&entry).map_err(|reason| UnreadableFile { name: entry.name, reason }),
            Err(unreadable) => Err(unreadable),
        };
        Some(match opened {
            Ok(pages) => Ok(self.current.insert(pages)),
            Err(UnreadableFile { name, reason }) => {
                self.finished_files.broke_off = true;
                let path = Arc::from(self.path.join(name));
                Err(Item::Bad(InputError::new(&path, InputPosition::File, reason)))
            }
        })
    }

    fn open(&self, entry: &Entry) -> Result<Pages, Reason> {
        let part = FilePart::new(&self.file, entry.range.clone(), entry.is_deflated);
        let format = format::detect(Path::new(&entry.name), None, &mut part.open(&self.options.limits)?)?;
        if format != Format::Warc {
            return Err(Reason::Wacz("it is no WARC file".to_owned()));
        }
        let pages = Pages::from_part(&self.path, part, &self.options)?.with_dates(Arc::clone(&self.dates));
        Ok(pages.with_unpacked_before(self.finished_files.unpacked))
    }
}

impl Iterator for Wacz {
    type Item = Item;

    fn next(&mut self) -> Option<Item> {
        loop {
            if let Some(item) = self.current.as_mut().and_then(Iterator::next) {
                return Some(item);
            }
            if let Err(bad) = self.next_file()? {
                return Some(bad);
            }
        }
    }
}
