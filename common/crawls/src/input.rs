//! [`Input`]: one file, directory or pipe as a stream of items, whatever its format.
//!
//! The module delegates to the reader of each format and never parses anything itself. Methods that report
//! progress or warnings describe the items returned so far. A method that does not apply to a format returns
//! zero or `None`.

use doppel_model::Timestamp;
use doppel_streams::{InputPosition, Reason};

use crate::record::{Field, IdRows, Ignored, NamedBy, Records, RepeatedId};
use crate::{Item, columns, delimited, directory, lines, wacz, warc};

/// The items of one file, directory or pipe, in order.
///
/// The iterator ends after an error behind which it can read nothing more. [`broke_off`](Self::broke_off)
/// then returns true.
pub struct Input {
    pub(crate) source: Source,
    /// The first item, if opening the input has already read it.
    pub(crate) first: Option<Item>,
    pub(crate) modified: Timestamp,
    pub(crate) bytes_total: u64,
}

/// The reader of an input, by kind of format.
pub(crate) enum Source {
    Warc(Box<warc::Pages>),
    Wacz(Box<wacz::Wacz>),
    Lines(Box<lines::Lines>),
    Delimited(Box<delimited::Delimited>),
    Columns(Box<columns::Rows>),
    Files(Box<directory::Files>),
}

impl Input {
    /// Modification time of the file or directory, but at most the current time. For a pipe, the current
    /// time.
    #[must_use]
    pub fn modified(&self) -> Timestamp {
        self.modified
    }

    /// Sets the modification time of an input that was opened as a pipe. The result is not later than the
    /// current time.
    #[must_use]
    pub fn modified_at(mut self, modified: Timestamp) -> Self {
        self.modified = self.modified.min(modified);
        self
    }

    /// Number of stored bytes read so far, out of [`bytes_total`](Self::bytes_total). Suitable for a progress
    /// bar.
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

    /// Whether reading ended early: the reader met damage or an I/O failure and could read nothing behind it.
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

    /// Position of the last item in its file. In a directory the position is always the whole file.
    #[must_use]
    pub fn input_position(&self) -> InputPosition {
        match &self.source {
            Source::Warc(pages) => pages.input_position(),
            Source::Wacz(files) => files.input_position(),
            Source::Lines(lines) => lines.input_position(),
            Source::Delimited(rows) => rows.input_position(),
            Source::Columns(rows) => rows.input_position(),
            Source::Files(_) => InputPosition::File,
        }
    }

    /// Identifier of the last page within its file, such as the id of a WARC record. `None` if the record has
    /// no identifier.
    #[must_use]
    pub fn record_id(&self) -> Option<&str> {
        match &self.source {
            Source::Warc(pages) => pages.record_id(),
            Source::Wacz(files) => files.current().and_then(warc::Pages::record_id),
            _ => self.records().and_then(Records::own_id),
        }
    }

    /// Distance in pages from the last page back to its original, if the last page is a WARC revisit with the
    /// content of an earlier page. `None` if the record stores its own content.
    #[must_use]
    pub fn refers_back(&self) -> Option<u64> {
        match &self.source {
            Source::Warc(pages) => pages.refers_back(),
            Source::Wacz(files) => files.current().and_then(warc::Pages::refers_back),
            _ => None,
        }
    }

    /// Whether a copy of the input can carry annotations in its records. Files of a directory and ARC records
    /// have no room for annotations.
    #[must_use]
    pub fn takes_annotations(&self) -> bool {
        match &self.source {
            Source::Warc(pages) => pages.format() == warc::ArchiveFormat::Warc,
            Source::Files(_) => false,
            _ => true,
        }
    }

    /// The record mapper of a JSON, table or column file. `None` until the reader has inspected the first
    /// records.
    fn records(&self) -> Option<&Records> {
        match &self.source {
            Source::Lines(lines) => lines.records(),
            Source::Delimited(rows) => rows.records(),
            Source::Columns(rows) => rows.records(),
            Source::Warc(_) | Source::Wacz(_) | Source::Files(_) => None,
        }
    }

    /// Number of values that were ignored so far because they were invalid, by field. Counts guessed fields
    /// of records, and dates of WARC and ARC.
    #[must_use]
    pub fn ignored(&self) -> Ignored {
        let dates = |ignored: u64| (ignored > 0).then_some((Field::Date, ignored)).into_iter().collect();
        match &self.source {
            Source::Warc(pages) => dates(pages.ignored_dates()),
            Source::Wacz(files) => dates(files.ignored_dates()),
            _ => self.records().map(|records| records.ignored().clone()).unwrap_or_default(),
        }
    }

    /// Number of unpacked bytes of a WARC or ARC file that were skipped so far because they belong to no
    /// record with a known end. These are broken records up to the next record, and data between records.
    #[must_use]
    pub fn skipped_bytes(&self) -> u64 {
        match &self.source {
            Source::Warc(pages) => pages.skipped_bytes(),
            Source::Wacz(files) => files.skipped_bytes(),
            _ => 0,
        }
    }

    /// Number of pages of a WARC file so far whose encoded body ended early. The reader used the beginning of
    /// each such page.
    #[must_use]
    pub fn cut_off_bodies(&self) -> u64 {
        match &self.source {
            Source::Warc(pages) => pages.cut_off(),
            Source::Wacz(files) => files.cut_off(),
            _ => 0,
        }
    }

    /// Line of the first quoted cell of a table so far that spans more than 1,000 lines. Its opening quote
    /// may be a stray one that a later row happens to close.
    #[must_use]
    pub fn long_quote(&self) -> Option<u64> {
        match &self.source {
            Source::Delimited(rows) => rows.long_quote(),
            _ => None,
        }
    }

    /// Number of record ids so far that were not remembered because the table was full. The reader does not
    /// detect repetitions of these ids.
    #[must_use]
    pub fn unremembered_ids(&self) -> u64 {
        self.records().map_or(0, Records::unremembered_ids)
    }

    /// Number of texts so far in which U+FFFD replaces lone surrogates.
    #[must_use]
    pub fn mended_texts(&self) -> u64 {
        self.records().map_or(0, Records::mended_texts)
    }

    /// Whether ids or row numbers name the records without a URL. `None` unless the id field was guessed and
    /// had to be checked.
    #[must_use]
    pub fn named_by(&self) -> Option<NamedBy> {
        self.records().and_then(Records::named_by)
    }

    /// The guessed id field that turned out to repeat values after reading had begun. The check came late
    /// because the first records have URLs.
    #[must_use]
    pub fn repeated_late(&self) -> Option<&RepeatedId> {
        self.records().and_then(Records::repeated_late)
    }

    /// Stored size of the file in bytes, or of all files of the directory. Zero for a pipe.
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

    /// Converts the reader into one that reads only the ids of records.
    pub(crate) fn into_id_rows(self) -> Result<Box<dyn IdRows>, Reason> {
        match self {
            Self::Lines(lines) => Ok(lines),
            Self::Delimited(rows) => Ok(rows),
            Self::Columns(rows) => Ok(rows),
            Self::Warc(_) | Self::Wacz(_) | Self::Files(_) => Err(Reason::Format),
        }
    }
}
