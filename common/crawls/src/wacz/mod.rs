//! Reads WACZ files (<https://specs.webrecorder.net/wacz/1.1.1/>): a ZIP file with the WARC files of a crawl in `archive/`, and what is
//! known of its pages in `pages/`.
//!
//! A page whose record has no date has the date that `pages/*.jsonl` gives its URL. Titles are not used: the page has its own. Nothing
//! is written to disk, so names of files in the archive are only compared, and `..` in them has no effect.

mod directory;
mod pages;

use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::vec;

use directory::{Directory, Entry, Problem};

use crate::error::{InputError, Place, Reason};
use crate::format::{self, Format};
use crate::page_dates::PageDates;
use crate::part::Part;
use crate::warc::Pages;
use crate::{InputOptions, Item};

/// The pages of all WARC files in a WACZ file, in the order of the names of these.
pub(super) struct Wacz {
    path: Arc<Path>,
    file: Arc<File>,
    options: InputOptions,
    dates: Arc<PageDates>,
    /// WARC files that are to be read, and what else is to be told of.
    entries: vec::IntoIter<Result<Entry, Problem>>,
    current: Option<Pages>,
    /// What was counted in the WARC files before the current one.
    before: Counts,
}

/// What is counted while a WARC file is read.
#[derive(Clone, Copy, Default)]
struct Counts {
    bytes_read: u64,
    unpacked: u64,
    skipped_bytes: u64,
    ignored_dates: u64,
    cut_off: u64,
    broke_off: bool,
}

impl Counts {
    fn with(self, pages: &Pages) -> Self {
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
    /// Those of a file that is called `path`.
    pub(super) fn new(path: &Arc<Path>, file: File, options: InputOptions) -> Result<Self, Reason> {
        let file = Arc::new(file);
        let Directory { entries, pages } = Directory::read(&file)?;
        let (dates, ignored_dates) = pages::dates(&file, &pages, &options.limits);
        let before = Counts { ignored_dates, ..Counts::default() };
        let (path, entries) = (Arc::clone(path), entries.into_iter());
        Ok(Self { path, file, options, dates: Arc::new(dates), entries, current: None, before })
    }

    fn counts(&self) -> Counts {
        self.current.as_ref().map_or(self.before, |pages| self.before.with(pages))
    }

    /// The number of stored bytes of WARC files read.
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

    /// The record that was read last, by its place in the WACZ file.
    pub(super) fn place(&self) -> Place {
        self.current.as_ref().map_or(Place::File, Pages::place)
    }

    /// The WARC file that is being read.
    pub(super) fn current(&self) -> Option<&Pages> {
        self.current.as_ref()
    }

    /// Goes to the next WARC file. `None` at the end, an error item where a file cannot be read.
    pub(super) fn next_file(&mut self) -> Option<Result<&mut Pages, Item>> {
        self.before = self.counts();
        self.current = None;
        let opened = match self.entries.next()? {
            Ok(entry) => self.open(&entry).map_err(|reason| Problem { name: entry.name, reason }),
            Err(problem) => Err(problem),
        };
        Some(match opened {
            Ok(pages) => Ok(self.current.insert(pages)),
            Err(Problem { name, reason }) => {
                self.before.broke_off = true;
                let path = Arc::from(self.path.join(name));
                Err(Item::Bad(InputError::new(&path, Place::File, reason)))
            }
        })
    }

    fn open(&self, entry: &Entry) -> Result<Pages, Reason> {
        let part = Part::new(&self.file, entry.range.clone(), entry.is_deflated);
        let format = format::of(Path::new(&entry.name), None, &mut part.open(&self.options.limits)?)?;
        if format != Format::Warc {
            return Err(Reason::Wacz("it is no WARC file".to_owned()));
        }
        let pages = Pages::of_part(&self.path, part, &self.options)?.with_dates(Arc::clone(&self.dates));
        Ok(pages.behind(self.before.unpacked))
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
