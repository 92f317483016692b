//! Crawls on disk as a stream of dated pages, with a progress bar and a tally of what was not taken.
//!
//! The order is that of the inputs; a missing date is supplied so that the same inputs give the same
//! dates again.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use doppel_crawls::record::Ignored;
use doppel_crawls::{CrawlClock, Fetched, InputError, Item, Limits, Place, Skip};
use doppel_model::{RawContent, Timestamp};
use serde::Serialize;

use crate::args::InputArgs;
use crate::bad_records::{BadFile, class};
use crate::directory;
use crate::exit::Failure;
use crate::inputs;
use crate::named_fields::NamedFields;
use crate::output::{count, plural, say};
use crate::progress;
use crate::records::{self, FieldsRead, Share};
use crate::unusable::Unusable;

/// What a page is counted as that makes the extractor panic.
pub(crate) const FAILED: &str = "failed inside the extractor";

/// Bad records that are printed one by one; the others are counted.
const BAD_SHOWN: u64 = 20;
/// The share of bad records beyond those that are printed one by one which is an error, unless another share is given.
const BAD_MAX: Share = Share(0.05);

/// What came out of the inputs.
#[derive(Debug, Default, Serialize)]
pub struct Tally {
    /// Pages, redirects and deaths.
    pub records: u64,
    /// Bytes of HTML and text.
    pub bytes: u64,
    /// Sound records that are no pages, by reason.
    pub skipped: BTreeMap<String, u64>,
    /// Records that could not be read, by reason.
    pub bad: BTreeMap<String, u64>,
    /// Which field of the records held what, in files that are not in Doppel's own form.
    pub(crate) fields: Vec<FieldsRead>,
    /// Values of guessed fields that could not be used and were ignored, by field.
    pub ignored: Ignored,
    /// Records whose ids were not remembered, so that later records that repeat these are taken for new versions of them.
    #[serde(skip_serializing_if = "is_zero")]
    pub unremembered_ids: u64,
    /// Crawl files below directories, which are inputs of their own, by a pattern that names them.
    pub crawl_files: BTreeMap<String, u64>,
    /// Inputs that could not be read to their end.
    pub incomplete: Vec<String>,
    /// When reading began: dates may not be far ahead of it.
    #[serde(skip)]
    pub(crate) now: Option<Timestamp>,
    /// What each file or directory had, in their order.
    #[serde(skip)]
    pub(crate) met: Vec<Met>,
    /// The share of bad records that is an error, where one is given.
    #[serde(skip)]
    max_bad: Option<Share>,
    /// Where bad records are written.
    #[serde(skip)]
    bad_file: Option<BadFile>,
}

impl Tally {
    /// How the program ends for what was bad, and for pages that were `refused` after they were read.
    ///
    /// # Errors
    /// When nothing was read, an input is incomplete or too many records were bad, or with `strict` when anything was bad or refused.
    pub fn verdict(&self, strict: bool, refused: u64) -> Result<(), Failure> {
        let bad: u64 = self.bad.values().sum();
        if self.records == 0 {
            let skipped: u64 = self.skipped.values().sum();
            let crawls = self.crawl_files.values().sum();
            let left = [(bad, "bad"), (skipped, "skipped"), (crawls, "to be named as inputs of their own")];
            let left = left.into_iter().filter(|(number, _)| *number > 0);
            let left: Vec<_> = left.map(|(number, what)| format!("{} {what}", count(number))).collect();
            let why =
                if left.is_empty() { "there is nothing in the input".to_owned() } else { left.join(", ") };
            return Err(Failure::BadInput(format!("nothing was read: {why}")));
        }
        if let Some(path) = self.incomplete.first() {
            let more = self.incomplete.len() - 1;
            let others = if more > 0 { format!(" and {more} more") } else { String::new() };
            let text = format!("{path}{others} could not be read to the end; all before that was taken");
            return Err(Failure::BadInput(text));
        }
        if strict && bad + refused > 0 {
            let was = |number, noun, what| {
                let verb = if number == 1 { "was" } else { "were" };
                (number > 0).then(|| format!("{} {verb} {what}", plural(number, noun)))
            };
            let left: Vec<_> =
                [was(bad, "record", "bad"), was(refused, "page", "refused")].into_iter().flatten().collect();
            let text = format!("{}; all others were taken", left.join(" and "));
            return Err(Failure::BadInput(text));
        }
        let all = self.records + bad;
        let allowed = self.max_bad.unwrap_or(BAD_MAX).0 * all as f64;
        if bad as f64 > allowed && (self.max_bad.is_some() || bad > BAD_SHOWN) {
            let share = self.max_bad.unwrap_or(BAD_MAX).0;
            let text = format!(
                "{} of {} records were bad, and at most a share of {share} may be (--max-bad); all others were taken",
                count(bad),
                count(all)
            );
            return Err(Failure::BadInput(text));
        }
        Ok(())
    }

    /// How to read the crawl files that were left out, with the command given; none where there are none.
    pub fn left_out(&self, command: &str) -> Option<String> {
        let files: u64 = self.crawl_files.values().sum();
        let patterns: Vec<&str> = self.crawl_files.keys().map(String::as_str).collect();
        let read = format!("{command} {}", patterns.join(" "));
        (files > 0)
            .then(|| format!("{} in directories not read: `{read}` reads them", plural(files, "crawl file")))
    }

    /// Records that were read could not be used, so they are bad ones.
    pub(crate) fn without(&mut self, unusable: Unusable) {
        for (reason, records, bytes) in unusable.end() {
            self.records -= records;
            self.bytes -= bytes;
            *self.bad.entry(reason).or_default() += records;
        }
    }

    fn bad(&mut self, error: &InputError, tell: bool) {
        match self.bad.values().sum::<u64>() {
            _ if !tell => {}
            ..BAD_SHOWN => say!("doppel: {error}"),
            BAD_SHOWN => say!("doppel: more bad records are only counted"),
            _ => {}
        }
        *self.bad.entry(class(error).to_owned()).or_default() += 1;
        if let Some(file) = self.bad_file.as_ref().filter(|_| tell) {
            file.note(class(error), error);
        }
    }

    /// Crawl files of a directory, which were skipped as files of a strange name.
    fn leave_out(&mut self, files: BTreeMap<String, u64>) {
        let strange = Skip::FileName.to_string();
        let skipped = self.skipped.remove(&strange).unwrap_or(0);
        let others = skipped.saturating_sub(files.values().sum());
        if others > 0 {
            self.skipped.insert(strange, others);
        }
        for (pattern, number) in files {
            *self.crawl_files.entry(pattern).or_default() += number;
        }
    }

    fn incomplete(&mut self, input: &Path) {
        let input = input.display().to_string();
        // An input may be given twice.
        if !self.incomplete.contains(&input) {
            self.incomplete.push(input);
        }
    }
}

/// What a file or directory had.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Met {
    /// Pages, redirects and deaths, with those that could not be used.
    pub(crate) pages: u64,
    /// Records that could not be read.
    pub(crate) bad: u64,
}

/// Where a page is in the inputs.
#[derive(Debug, Clone)]
pub(crate) struct Position {
    /// How many pages come before it.
    pub(crate) before: u64,
    /// The number of the input.
    pub(crate) input: usize,
    /// What is read: the input, or a file that it names.
    pub(crate) path: Arc<Path>,
    /// Where in that.
    pub(crate) place: Place,
}

/// How much is handed over at once: so many pages, or fewer that have so many bytes. One page may be larger.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BatchSize {
    pub(crate) pages: usize,
    pub(crate) bytes: u64,
}

/// Reads every input in order and hands each page, with a date, to `each`.
///
/// # Errors
/// When an input is not there, before anything is read; or what `each` fails with.
pub fn read(
    inputs: &InputArgs,
    mut each: impl FnMut(Fetched) -> anyhow::Result<()>,
) -> anyhow::Result<Tally> {
    read_numbered(inputs, |_, page| each(page))
}

/// The same; `each` is told the number of the input, too.
///
/// # Errors
/// The same.
pub fn read_numbered(
    inputs: &InputArgs,
    mut each: impl FnMut(usize, Fetched) -> anyhow::Result<()>,
) -> anyhow::Result<Tally> {
    read_placed(inputs, |at, page| each(at.input, page))
}

/// The same; `each` is told where the page is.
///
/// # Errors
/// The same.
pub(crate) fn read_placed(
    inputs: &InputArgs,
    each: impl FnMut(Position, Fetched) -> anyhow::Result<()>,
) -> anyhow::Result<Tally> {
    read_all(inputs, ("reading", true), each)
}

/// The same in batches, of which the last may be empty. It is said on the terminal what is being done, and bad records are told of
/// with `tell`.
///
/// # Errors
/// The same.
pub(crate) fn read_batches(
    inputs: &InputArgs,
    (doing, tell): (&'static str, bool),
    size: BatchSize,
    mut each: impl FnMut(Vec<Fetched>) -> anyhow::Result<()>,
) -> anyhow::Result<Tally> {
    let (mut batch, mut bytes) = (Vec::new(), 0);
    let tally = read_all(inputs, (doing, tell), |_, page| {
        bytes += content_bytes(&page);
        batch.push(page);
        if batch.len() >= size.pages || bytes >= size.bytes {
            bytes = 0;
            each(std::mem::take(&mut batch))?;
        }
        Ok(())
    })?;
    each(batch)?;
    Ok(tally)
}

fn read_all(
    inputs: &InputArgs,
    (doing, tell): (&'static str, bool),
    mut each: impl FnMut(Position, Fetched) -> anyhow::Result<()>,
) -> anyhow::Result<Tally> {
    let sources = inputs::sources(&inputs.inputs)?;
    let now = Timestamp::now();
    inputs.records.require_files(&sources)?;
    let tell = inputs.records.tells(tell);
    let options = inputs.records.fields.options(Limits::at(now));
    inputs.records.check_names(&sources, &options, tell)?;
    let mut named = NamedFields::new(&sources.all, &options);
    let bad_file = inputs.records.bad.clone().filter(|_| tell);
    bad_file.as_ref().map_or(Ok(()), |file| file.begin(&sources))?;
    let bar = progress::bytes(sources.all.iter().map(|source| source.bytes).sum(), doing);
    let mut clock = CrawlClock::new();
    let mut tally = Tally { now: Some(now), max_bad: inputs.records.max_bad, bad_file, ..Tally::default() };
    let mut before = 0;
    if sources.beside > 0 {
        tally.skipped.insert("file beside crawl files".to_owned(), sources.beside);
    }
    for (number, source) in sources.all.iter().enumerate() {
        let path = source.path();
        let shared: Arc<Path> = path.into();
        let mut met = Met::default();
        let mut input = match source.open(options.clone()) {
            Ok(input) => input,
            Err(error) => {
                bar.suspend(|| tally.bad(&error, tell));
                tally.incomplete(path);
                tally.met.push(Met { bad: 1, ..met });
                continue;
            }
        };
        clock.begin(input.modified());
        if source.is_pages() {
            bar.inc_length(input.bytes_total());
        }
        while let Some(item) = input.next() {
            match item {
                Item::Page(mut page) => {
                    page.fetched_at = Some(match page.fetched_at {
                        None if page.url.is_record() => clock.date_of_record(),
                        given => clock.date(given),
                    });
                    let at = Position {
                        before: tally.records,
                        input: source.input,
                        path: Arc::clone(&shared),
                        place: input.place(),
                    };
                    tally.records += 1;
                    met.pages += 1;
                    tally.bytes += content_bytes(&page);
                    each(at, page)?;
                }
                Item::Fields(fields) => {
                    for lacks in named.note(number, &fields)? {
                        bar.suspend(|| {
                            if tell {
                                say!("doppel: {}: {lacks}", path.display());
                            }
                        });
                    }
                    if records::note(&mut tally.fields, &fields, path) && tell {
                        bar.suspend(|| say!("doppel: {}: {fields}", path.display()));
                    }
                }
                Item::Skipped(skip) => *tally.skipped.entry(skip.to_string()).or_default() += 1,
                Item::Bad(error) => {
                    met.bad += 1;
                    bar.suspend(|| tally.bad(&error, tell));
                }
            }
            bar.set_position(before + input.bytes_read());
        }
        let unremembered = input.unremembered_ids();
        if unremembered > 0 {
            tally.unremembered_ids += unremembered;
            bar.suspend(|| {
                if tell {
                    say!("doppel: {}: {}", path.display(), unchecked_ids(unremembered));
                }
            });
        }
        for (field, values) in input.ignored() {
            *tally.ignored.entry(field).or_default() += values;
        }
        if input.broke_off() {
            tally.incomplete(path);
        }
        if source.is_pages() {
            tally.leave_out(directory::crawl_files(path));
        }
        before += input.bytes_total();
        tally.met.push(met);
    }
    bar.finish_and_clear();
    Ok(tally)
}

/// The bytes of a page's HTML or text.
pub fn content_bytes(page: &Fetched) -> u64 {
    page.body.raw_content().map_or(0, RawContent::size) as u64
}

fn unchecked_ids(number: u64) -> String {
    let of = plural(number, "record");
    format!("the ids of {of} were not remembered, so what repeats one of these is taken for its new version")
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_verdict_tells_incomplete_from_bad() {
        let mut tally = Tally { records: 1, ..Tally::default() };
        assert!(tally.verdict(true, 0).is_ok());
        let refused = tally.verdict(true, 1).unwrap_err();
        assert_eq!(refused.to_string(), "1 page was refused; all others were taken");
        tally.bad.insert("too large".to_owned(), 2);
        assert!(tally.verdict(false, 1).is_ok());
        let bad = tally.verdict(true, 1).unwrap_err();
        assert_eq!(bad.to_string(), "2 records were bad and 1 page was refused; all others were taken");
        let nothing = Tally { records: 0, bad: tally.bad.clone(), ..Tally::default() };
        let error = nothing.verdict(false, 0).unwrap_err();
        assert_eq!(error.to_string(), "nothing was read: 2 bad");
        tally.incomplete(Path::new("a.warc.gz"));
        tally.incomplete(Path::new("a.warc.gz"));
        let error = tally.verdict(false, 0).unwrap_err();
        assert!(error.to_string().starts_with("a.warc.gz could not be read to the end"), "{error}");
    }
}
