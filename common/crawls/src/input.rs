//! One file or directory as a stream of items, whatever its format.

use doppel_model::Timestamp;

use crate::error::{Place, Reason};
use crate::record::{Field, IdRows, Ignored, NamedBy, Records, RepeatedId};
use crate::{Item, columns, delimited, directory, lines, wacz, warc};

/// The pages of one file or directory, in order.
///
/// The iterator ends after an error behind which nothing more can be read; [`broke_off`](Self::broke_off) then
/// returns true.
pub struct Input {
    pub(crate) source: Source,
    /// The first item, where it was read ahead.
    pub(crate) first: Option<Item>,
    pub(crate) modified: Timestamp,
    pub(crate) bytes_total: u64,
}

pub(crate) enum Source {
    Warc(Box<warc::Pages>),
    Wacz(Box<wacz::Wacz>),
    Lines(Box<lines::Lines>),
    Delimited(Box<delimited::Delimited>),
    Columns(Box<columns::Rows>),
    Files(Box<directory::Files>),
}

impl Input {
    /// The modification time of the file or directory, but not later than now; that is what it is for a pipe.
    #[must_use]
    pub fn modified(&self) -> Timestamp {
        self.modified
    }

    /// Has another modification time, of something that was opened as a pipe. It is not later than now.
    #[must_use]
    pub fn modified_at(mut self, modified: Timestamp) -> Self {
        self.modified = self.modified.min(modified);
        self
    }

    /// How many of [`bytes_total`](Self::bytes_total) have been read, for a progress bar.
    #[must_use]
    pub fn bytes_read(&self) -> u64 {
        match &self.source {
            Source::Warc(pages) => pages.bytes_read(),
            Source::Wacz(files) => files.bytes_read(),
            Source::Lines(lines) => lines.bytes_read(),
            Source::Delimited(rows) => rows.bytes_read(),
            Source::Columns(rows) => rows.bytes_read(),
            Source::Files(files) => files.bytes_read(),
        }
    }

    /// Whether reading ended early: there was damage or an I/O failure, and nothing behind it could be read.
    /// Errors after which the reader continued do not count.
    #[must_use]
    pub fn broke_off(&self) -> bool {
        match &self.source {
            Source::Warc(pages) => pages.broke_off(),
            Source::Wacz(files) => files.broke_off(),
            Source::Lines(lines) => lines.broke_off(),
            Source::Delimited(rows) => rows.broke_off(),
            Source::Columns(rows) => rows.broke_off(),
            Source::Files(files) => files.broke_off(),
        }
    }

    /// Where in the file the last item was. The files of a directory are each a whole file.
    #[must_use]
    pub fn place(&self) -> Place {
        match &self.source {
            Source::Warc(pages) => pages.place(),
            Source::Wacz(files) => files.place(),
            Source::Lines(lines) => lines.place(),
            Source::Delimited(rows) => rows.place(),
            Source::Columns(rows) => rows.place(),
            Source::Files(_) => Place::File,
        }
    }

    /// What the last page is called in its own file, such as the id of a record of a WARC.
    #[must_use]
    pub fn record_id(&self) -> Option<&str> {
        match &self.source {
            Source::Warc(pages) => pages.record_id(),
            Source::Wacz(files) => files.current().and_then(warc::Pages::record_id),
            _ => self.records().and_then(Records::own_id),
        }
    }

    /// Distance in pages from the last page back to its original: a revisit of a WARC has the content of an earlier page. `None` if the record
    /// stores the content.
    #[must_use]
    pub fn refers_back(&self) -> Option<u64> {
        match &self.source {
            Source::Warc(pages) => pages.refers_back(),
            Source::Wacz(files) => files.current().and_then(warc::Pages::refers_back),
            _ => None,
        }
    }

    /// Whether a record can have annotations beside it: pages that are files of their own and records of ARC have no place for
    /// them.
    #[must_use]
    pub fn takes_annotations(&self) -> bool {
        match &self.source {
            Source::Warc(pages) => pages.form() == warc::Form::Warc,
            Source::Files(_) => false,
            _ => true,
        }
    }

    /// The records of a file of records, once its first ones were looked at.
    fn records(&self) -> Option<&Records> {
        match &self.source {
            Source::Lines(lines) => lines.records(),
            Source::Delimited(rows) => rows.records(),
            Source::Columns(rows) => rows.records(),
            Source::Warc(_) | Source::Wacz(_) | Source::Files(_) => None,
        }
    }

    /// Values of guessed fields, and dates of WARC and ARC, that could not be used and were ignored so far, by field.
    #[must_use]
    pub fn ignored(&self) -> Ignored {
        let dates = |ignored: u64| (ignored > 0).then_some((Field::Date, ignored)).into_iter().collect();
        match &self.source {
            Source::Warc(pages) => dates(pages.ignored_dates()),
            Source::Wacz(files) => dates(files.ignored_dates()),
            _ => self.records().map(|records| records.ignored().clone()).unwrap_or_default(),
        }
    }

    /// How many unpacked bytes of a WARC or ARC file were skipped so far because they are of no record whose end is known: broken
    /// records up to the next one, and what is between records.
    #[must_use]
    pub fn skipped_bytes(&self) -> u64 {
        match &self.source {
            Source::Warc(pages) => pages.skipped_bytes(),
            Source::Wacz(files) => files.skipped_bytes(),
            _ => 0,
        }
    }

    /// How many pages of a WARC file so far had a body whose encoding ends early, so that only the beginning of the page was
    /// read.
    #[must_use]
    pub fn cut_off_bodies(&self) -> u64 {
        match &self.source {
            Source::Warc(pages) => pages.cut_off(),
            Source::Wacz(files) => files.cut_off(),
            _ => 0,
        }
    }

    /// The line of the first quote of a table that was closed after more than 1,000 lines so far. It may be a stray quote.
    #[must_use]
    pub fn long_quote(&self) -> Option<u64> {
        match &self.source {
            Source::Delimited(rows) => rows.long_quote(),
            _ => None,
        }
    }

    /// How many ids of records were not remembered so far, because there were too many: records that repeat one of these are not
    /// found.
    #[must_use]
    pub fn unremembered_ids(&self) -> u64 {
        self.records().map_or(0, Records::unremembered_ids)
    }

    /// How many texts had lone surrogates so far, for which U+FFFD was read.
    #[must_use]
    pub fn mended_texts(&self) -> u64 {
        self.records().map_or(0, Records::mended_texts)
    }

    /// What names the records that have no URL, where their id is guessed and had to be looked at.
    #[must_use]
    pub fn named_by(&self) -> Option<NamedBy> {
        self.records().and_then(Records::named_by)
    }

    /// The guessed id that is none, where that is known only since the file has begun: its first records have URLs.
    #[must_use]
    pub fn repeated_late(&self) -> Option<&RepeatedId> {
        self.records().and_then(Records::repeated_late)
    }

    /// The stored size in bytes of the file, or of all files of the directory; 0 for a pipe.
    #[must_use]
    pub fn bytes_total(&self) -> u64 {
        self.bytes_total
    }
}

impl Iterator for Input {
    type Item = Item;

    fn next(&mut self) -> Option<Item> {
        self.first.take().or_else(|| self.source.next())
    }
}

impl Source {
    pub(crate) fn next(&mut self) -> Option<Item> {
        match self {
            Self::Warc(pages) => pages.next(),
            Self::Wacz(files) => files.next(),
            Self::Lines(lines) => lines.next(),
            Self::Delimited(rows) => rows.next(),
            Self::Columns(rows) => rows.next(),
            Self::Files(files) => files.next(),
        }
    }

    /// What is read for its ids alone.
    pub(crate) fn into_id_rows(self) -> Result<Box<dyn IdRows>, Reason> {
        match self {
            Self::Lines(lines) => Ok(lines),
            Self::Delimited(rows) => Ok(rows),
            Self::Columns(rows) => Ok(rows),
            Self::Warc(_) | Self::Wacz(_) | Self::Files(_) => Err(Reason::Format),
        }
    }
}
