//! Crawls on disk as a stream of dated pages, with a progress bar and a tally of what was not taken.
//!
//! The order is that of the inputs; a missing date is supplied so that the same inputs give the same
//! dates again.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Context;
use doppel_common::input::{self, CrawlClock, Fetched, FetchedBody, InputError, Item, Limits, Reason};
use doppel_common::model::Timestamp;
use serde::Serialize;

use crate::args::InputArgs;
use crate::exit::Failure;
use crate::output::plural;
use crate::progress;

/// Bad records that are printed one by one; the others are counted.
const BAD_SHOWN: u64 = 20;

/// What came out of the inputs.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Tally {
    /// Pages, redirects and deaths.
    pub(crate) records: u64,
    /// Bytes of HTML and text.
    pub(crate) bytes: u64,
    /// Sound records that are no pages, by reason.
    pub(crate) skipped: BTreeMap<String, u64>,
    /// Records that could not be read, by reason.
    pub(crate) bad: BTreeMap<String, u64>,
    /// Inputs that could not be read to their end.
    pub(crate) incomplete: Vec<String>,
}

impl Tally {
    /// How the program ends for what was bad, and for pages that were `refused` after they were read.
    ///
    /// # Errors
    /// When an input is incomplete, or with `strict` when anything was bad or refused.
    pub(crate) fn verdict(&self, strict: bool, refused: u64) -> Result<(), Failure> {
        let bad: u64 = self.bad.values().sum();
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
        Ok(())
    }

    fn bad(&mut self, error: &InputError) {
        let shown: u64 = self.bad.values().sum();
        if shown < BAD_SHOWN {
            eprintln!("doppel: {error}");
        } else if shown == BAD_SHOWN {
            eprintln!("doppel: more bad records are only counted");
        }
        *self.bad.entry(class(error).to_owned()).or_default() += 1;
    }

    fn incomplete(&mut self, input: &Path) {
        let input = input.display().to_string();
        // An input may be given twice.
        if !self.incomplete.contains(&input) {
            self.incomplete.push(input);
        }
    }
}

/// Reads every input in order and hands each page, with a date, to `each`.
///
/// # Errors
/// When an input is not there, before anything is read; or what `each` fails with.
pub(crate) fn read(
    inputs: &InputArgs,
    mut each: impl FnMut(Fetched) -> anyhow::Result<()>,
) -> anyhow::Result<Tally> {
    read_numbered(inputs, |_, page| each(page))
}

/// The same; `each` is told the number of the input, too.
///
/// # Errors
/// The same.
pub(crate) fn read_numbered(
    inputs: &InputArgs,
    mut each: impl FnMut(usize, Fetched) -> anyhow::Result<()>,
) -> anyhow::Result<Tally> {
    let mut total = 0;
    for path in &inputs.inputs {
        let metadata = std::fs::metadata(path).with_context(|| format!("cannot read {}", path.display()))?;
        total += if metadata.is_file() { metadata.len() } else { 0 };
    }
    let bar = progress::bytes(total, "reading");
    let limits = Limits::at(now());
    let mut clock = CrawlClock::new();
    let mut tally = Tally::default();
    let mut before = 0;
    for (number, path) in inputs.inputs.iter().enumerate() {
        let mut input = match input::open(path, limits) {
            Ok(input) => input,
            Err(error) => {
                bar.suspend(|| tally.bad(&error));
                tally.incomplete(path);
                continue;
            }
        };
        clock.begin(input.modified());
        if path.is_dir() {
            bar.inc_length(input.bytes_total());
        }
        while let Some(item) = input.next() {
            match item {
                Item::Page(mut page) => {
                    page.fetched_at = Some(clock.date(page.fetched_at));
                    tally.records += 1;
                    tally.bytes += content_bytes(&page);
                    each(number, page)?;
                }
                Item::Skipped(skip) => *tally.skipped.entry(skip.to_string()).or_default() += 1,
                Item::Bad(error) => bar.suspend(|| tally.bad(&error)),
            }
            bar.set_position(before + input.bytes_read());
        }
        if input.broke_off() {
            tally.incomplete(path);
        }
        before += input.bytes_total();
    }
    bar.finish_and_clear();
    Ok(tally)
}

/// The present moment.
pub(crate) fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// The bytes of a page's HTML or text.
pub(crate) fn content_bytes(page: &Fetched) -> u64 {
    match &page.body {
        FetchedBody::Html { bytes, .. } => bytes.len() as u64,
        FetchedBody::Text(text) => text.len() as u64,
        FetchedBody::Redirect(_) | FetchedBody::Dead => 0,
    }
}

/// The kind of an error, to count by.
fn class(error: &InputError) -> &'static str {
    match error.reason {
        Reason::Io(_) => "unreadable",
        Reason::FileKind | Reason::Format | Reason::JsonArray => "unknown format",
        Reason::Truncated => "truncated",
        Reason::Corrupt(_) => "corrupt compressed data",
        Reason::Expansion { .. } => "unpacks to implausibly much",
        Reason::Head(_) | Reason::Length => "broken WARC record",
        Reason::TooLarge { .. } => "too large",
        Reason::Url(_) => "no page URL",
        Reason::Date(_) | Reason::Ahead(_) => "bad date",
        Reason::Http(_) | Reason::Encoding(_) => "broken HTTP response",
        Reason::Item(_) => "JSON line that is no page",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_verdict_tells_incomplete_from_bad() {
        let mut tally = Tally::default();
        assert!(tally.verdict(true, 0).is_ok());
        let refused = tally.verdict(true, 1).unwrap_err();
        assert_eq!(refused.to_string(), "1 page was refused; all others were taken");
        tally.bad.insert("too large".to_owned(), 2);
        assert!(tally.verdict(false, 1).is_ok());
        let bad = tally.verdict(true, 1).unwrap_err();
        assert_eq!(bad.to_string(), "2 records were bad and 1 page was refused; all others were taken");
        tally.incomplete(Path::new("a.warc.gz"));
        tally.incomplete(Path::new("a.warc.gz"));
        let error = tally.verdict(false, 0).unwrap_err();
        assert!(error.to_string().starts_with("a.warc.gz could not be read to the end"), "{error}");
    }
}
