//! Reads the inputs as a stream of dated pages, with a progress bar. A [`Tally`] counts what was read,
//! skipped and bad.
//!
//! Pages come in the order of the inputs. A page without a date gets a date that depends only on the inputs
//! and their order. Reading the same inputs again therefore gives the same dates.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use doppel_crawls::{CrawlClock, FetchedPage, Input, InputError, InputOptions, InputPosition, Item, Limits};
use doppel_model::{RawContent, Timestamp};
use indicatif::ProgressBar;
use serde::{Deserialize, Serialize};

use crate::arguments::{AtMost, InputArgs};
use crate::ingested::{FileStatistics, IngestedFile, ReadingPlan};
use crate::reading::directory;
use crate::records;
use crate::records::named_fields::NamedFields;
use crate::records::record_names::Origin;
use crate::sources::{self, InputSource};
use crate::tally::{SourceCounts, Tally};
use doppel_terminal::output::{plural, say};
use doppel_terminal::progress;

/// Position of a page in the inputs.
#[derive(Debug, Clone)]
pub struct PagePosition {
    /// Number of pages before this one.
    pub before: u64,
    /// Index of the input, counted from 0.
    pub input: usize,
    /// Path of the file or directory that contains the page: the input, or a file that the input names.
    pub path: Arc<Path>,
    /// Place of the record in the file.
    pub position: InputPosition,
    /// Identifier of the record within its file, if it has one.
    pub id: Option<Box<str>>,
    /// Distance in pages from this one back to its original, the page whose content it has. `None` if its
    /// record stores the content.
    pub refers_back: Option<u64>,
}

impl From<PagePosition> for Origin {
    fn from(at: PagePosition) -> Self {
        let PagePosition { path, position, id, refers_back, .. } = at;
        Self { path, position, id, refers_back }
    }
}

/// An item that reading produces, in the order of the inputs.
pub enum ReadItem {
    /// A page, a redirect, or a death, and its position in the inputs.
    Page(PagePosition, FetchedPage),
    /// The end of a file that a collection may list as read.
    End(FileEnd),
}

/// The end of a file that was read completely.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FileEnd {
    /// Index of the file among all files and directories that are read.
    pub source: usize,
    /// Number of pages before the end of the file.
    pub before: u64,
    /// Entry of the file for the list of the collection.
    pub ingested: IngestedFile,
}

/// Reads every input in order and hands each page, with a date, to `each`.
///
/// # Errors
/// If an input does not exist, which is found before anything is read; or if `each` fails.
pub fn read(
    inputs: &InputArgs,
    mut each: impl FnMut(FetchedPage) -> anyhow::Result<()>,
) -> anyhow::Result<Tally> {
    read_with_positions(inputs, |_, page| each(page))
}

/// Like [`read`], but also passes the position of the page to `each`.
///
/// # Errors
/// The errors of [`read`].
pub fn read_with_positions(
    inputs: &InputArgs,
    each: impl FnMut(PagePosition, FetchedPage) -> anyhow::Result<()>,
) -> anyhow::Result<Tally> {
    let mut each = each;
    read_all(inputs, ("reading", true), None, |read| match read {
        ReadItem::Page(at, page) => each(at, page),
        ReadItem::End(_) => Ok(()),
    })
}

/// Reads every input in order and hands pages and ends of files to `each`. The progress bar shows `doing`. If
/// `tell` is set, messages about the inputs and their bad records are shown. Files that `reading` knows are
/// left out.
///
/// # Errors
/// If an input does not exist, which is found before anything is read; or if `each` fails.
pub fn read_all(
    inputs: &InputArgs,
    (doing, tell): (&'static str, bool),
    reading: Option<&ReadingPlan>,
    mut each: impl FnMut(ReadItem) -> anyhow::Result<()>,
) -> anyhow::Result<Tally> {
    let sources = inputs.sources()?;
    let now = Timestamp::now();
    inputs.records.require_files(sources)?;
    let tell = inputs.records.tells(tell);
    let options = inputs.records.fields.options(Limits::at(now));
    if !options.judges_records {
        inputs.records.check_names(sources, &options, tell)?;
    }
    inputs.records.bad.as_ref().filter(|_| tell).map_or(Ok(()), |file| file.begin(sources))?;
    let known = |(number, source)| {
        reading.and_then(|reading| reading.replayed(number).or_else(|| reading.known(source)))
    };
    let known: Vec<_> = sources.all.iter().enumerate().map(known).collect();
    let unknown = sources.all.iter().zip(&known).filter(|(_, known)| known.is_none());
    let mut tally = Tally::begin(now, &inputs.records);
    if sources.beside > 0 {
        tally.skipped.insert("file beside crawl files".to_owned(), sources.beside);
    }
    tally.crawl_files.clone_from(&sources.unsure);
    let mut reader = Reader {
        options: &options,
        reading,
        tell,
        bar: progress::bytes(unknown.map(|(source, _)| source.bytes).sum(), doing),
        named: NamedFields::new(&sources.all, &options),
        clock: CrawlClock::new(),
        tally,
        pages: 0,
        bytes: 0,
    };
    let mut left = inputs.at_most;
    for (number, (source, known)) in sources.all.iter().zip(known).enumerate() {
        let share = left.map(|left| left.share(sources.all.len() - number));
        if share.is_some_and(|share| share.is_used_up(AtMost::default())) {
            reader.tally.cut_off += (sources.all.len() - number) as u64;
            break;
        }
        if let Some(known) = known {
            if reader.leaves_out(number, known) {
                continue;
            }
            reader.bar.inc_length(source.bytes);
        }
        let before = reader.read();
        reader.read_source(number, source, share, &mut each)?;
        left = left.map(|left| left.less(reader.read().less(before)));
    }
    reader.bar.finish_and_clear();
    Ok(reader.tally)
}

/// Most bytes of a file that are read for each byte of its share. The limit ends the reading of a crawl that
/// contains few pages among much else.
const READ_OF_SHARE: u64 = 4;

/// Reads the files and directories, one after the other.
struct Reader<'r> {
    options: &'r InputOptions,
    reading: Option<&'r ReadingPlan>,
    /// Whether messages about the inputs are shown.
    tell: bool,
    bar: ProgressBar,
    named: NamedFields<'r>,
    clock: CrawlClock,
    tally: Tally,
    /// Number of pages before the next one, including replayed pages.
    pages: u64,
    /// Stored bytes of the files that were read before this one.
    bytes: u64,
}

impl Reader<'_> {
    /// Leaves out a file that an earlier run has read, and counts its records. Returns false, and leaves the
    /// file to be read again, if its pages would get other dates now.
    fn leaves_out(&mut self, number: usize, known: &IngestedFile) -> bool {
        let had = known.had();
        let modified = self.tally.now.map_or(known.modified(), |now| known.modified().min(now));
        let is_replayed = self.reading.is_some_and(|reading| reading.replayed(number).is_some());
        if is_replayed {
            self.clock.pass_replayed(modified, had.latest);
            self.pages += had.pages();
        } else if !self.clock.pass(modified, (had.supplied, had.latest)) {
            return false;
        }
        self.named.read_before(&had.named);
        self.tally.read_before.add(known);
        self.tally.source_counts.push(SourceCounts::from(had));
        true
    }

    /// Reads one file or directory, and adds its counts to the tally.
    fn read_source(
        &mut self,
        number: usize,
        source: &InputSource,
        share: Option<AtMost>,
        each: &mut impl FnMut(ReadItem) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let path = source.path();
        let version = self.reading.and_then(|_| source.version());
        let mut met = SourceCounts::default();
        self.named.begin_file();
        let mut input = match source.open(self.options.clone()) {
            Ok(input) => input,
            Err(error) => {
                self.bad(&error);
                self.tally.incomplete(path);
                self.tally.source_counts.push(SourceCounts { bad: 1, ..met });
                return Ok(());
            }
        };
        self.clock.begin(input.modified());
        if source.is_pages() {
            self.bar.inc_length(input.bytes_total());
        }
        let skipped = self.tally.all_skipped();
        let may_pass = self.read_items((number, source, share), &mut input, &mut met, each)?;
        let unremembered = input.unremembered_ids();
        if unremembered > 0 {
            self.tally.unremembered_ids += unremembered;
            self.say(path, &unchecked_ids(unremembered));
        }
        self.tally.skipped_bytes += input.skipped_bytes();
        self.tally.cut_off_bodies += input.cut_off_bodies();
        self.tally.mended_texts += input.mended_texts();
        if let Some(line) = input.long_quote() {
            self.say(path, &format_args!("the quote that opens in line {line} closes more than 1,000 lines later; check whether it is stray"));
        }
        if let Some(repeated) = input.repeated_late() {
            self.say(path, &format_args!("{repeated}, so a record without a URL is named by its row"));
        }
        let is_file = matches!(source.kind, sources::SourceKind::File(..) | sources::SourceKind::Object(_));
        let has_items = met != SourceCounts::default() || self.tally.all_skipped() > skipped;
        if is_file && !has_items && !input.broke_off() {
            self.tally.empty_files += 1;
        }
        for (field, values) in input.ignored() {
            *self.tally.ignored.entry(field).or_default() += values;
        }
        if input.broke_off() {
            self.tally.incomplete(path);
        } else if let Some(reading) = self.reading.filter(|_| !may_pass) {
            let had = FileStatistics {
                records: met.pages,
                bad: met.bad,
                unusable: 0,
                latest: self.clock.latest_of_input(),
                supplied: self.clock.supplied_first(),
                named: self.named.of_file(),
                named_by: input.named_by(),
            };
            if let Some(ingested) = reading.ended(source, version, had) {
                each(ReadItem::End(FileEnd { source: number, before: self.pages, ingested }))?;
            }
        }
        if source.is_pages() {
            self.tally.leave_out(directory::crawl_files(path));
        }
        self.bytes += input.bytes_total();
        self.tally.source_counts.push(met);
        Ok(())
    }

    /// Reads the items of a source. Returns whether a bad record may become sound later, such as one with a
    /// date in the future. Such a file must not be listed as read.
    fn read_items(
        &mut self,
        (number, source, share): (usize, &InputSource, Option<AtMost>),
        input: &mut Input,
        met: &mut SourceCounts,
        each: &mut impl FnMut(ReadItem) -> anyhow::Result<()>,
    ) -> anyhow::Result<bool> {
        let path = source.path();
        let shared: Arc<Path> = path.into();
        let mut may_pass = false;
        let before = self.read();
        while let Some(item) = input.next() {
            // Skipped and bad records do not use up the share, so a second limit bounds the bytes of the file
            // that are read. A source counts as cut off even if only such records follow.
            let read = self.read().less(before);
            if share.is_some_and(|share| {
                share.is_used_up(read) || input.bytes_read() > READ_OF_SHARE * share.bytes
            }) {
                self.tally.cut_off += 1;
                break;
            }
            match item {
                Item::Page(mut page) => {
                    page.fetched_at = Some(match page.fetched_at {
                        None if page.url.is_record() => self.clock.date_of_record(),
                        given => self.clock.date(given),
                    });
                    let at = PagePosition {
                        before: self.pages,
                        input: source.input,
                        path: Arc::clone(&shared),
                        position: input.input_position(),
                        id: input.record_id().map(Into::into),
                        refers_back: input.refers_back(),
                    };
                    self.pages += 1;
                    self.tally.records += 1;
                    met.pages += 1;
                    self.tally.bytes += content_bytes(&page);
                    each(ReadItem::Page(at, page))?;
                }
                Item::Fields(fields) => {
                    for lacks in self.named.note(number, &fields)? {
                        self.say(path, &lacks);
                    }
                    if records::note(&mut self.tally.fields, &fields, path) {
                        self.say(path, &fields);
                    }
                }
                Item::Skipped(skip) => {
                    self.tally.skipped_records += u64::from(skip.is_of_record());
                    *self.tally.skipped.entry(skip.to_string()).or_default() += 1;
                }
                Item::Bad(error) => {
                    met.bad += 1;
                    may_pass |= error.reason.may_pass();
                    self.bad(&error);
                }
            }
            self.bar.set_position(self.bytes + input.bytes_read());
        }
        Ok(may_pass)
    }

    /// Records and bytes that were read so far.
    fn read(&self) -> AtMost {
        AtMost { records: self.tally.records, bytes: self.tally.bytes }
    }

    /// Counts a bad record, and shows it if messages are shown.
    fn bad(&mut self, error: &InputError) {
        let Self { tally, tell, bar, .. } = self;
        bar.suspend(|| tally.bad(error, *tell));
    }

    fn say(&self, path: &Path, what: &dyn fmt::Display) {
        if self.tell {
            self.bar.suspend(|| say!("doppel: {}: {what}", path.display()));
        }
    }
}

/// Size in bytes of the HTML or text of a page. Zero for a redirect or a death.
pub fn content_bytes(page: &FetchedPage) -> u64 {
    page.body.raw_content().map_or(0, RawContent::size) as u64
}

fn unchecked_ids(number: u64) -> String {
    let of = plural(number, "record");
    format!("the ids of {of} were not remembered, so a later record with such an id counts as a new version")
}
