//! Reads pages from JSON lines: one object a line, of any schema. Lines in Doppel's own form, that of `POST /v1/pages`, are
//! read as the server reads them, but that unknown fields mean nothing.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;

use doppel_protocol::page::PageItem;
use serde::de::IgnoredAny;

use super::error::{InputError, Place, Reason};
use super::format::BYTE_ORDER_MARK;
use super::raw_lines::RawLines;
use super::record::{Guess, Ignored, JsonRow, RecordFile, Records, SAMPLE_BYTES, SAMPLE_RECORDS};
use super::stream::Stream;
use super::{Fetched, InputOptions, Item, charset};

/// The pages of a file of JSON lines. Blank lines are ignored, but count for the numbers of the others.
pub(super) struct Lines {
    path: Arc<Path>,
    lines: RawLines,
    file: RecordFile,
    options: InputOptions,
    reading: Option<Reading>,
    /// The first lines, which were read ahead, with their numbers.
    sample: VecDeque<(u64, Result<Vec<u8>, Reason>)>,
    /// The number of the last line that was handed over.
    number: u64,
    /// That line, where it was read ahead.
    ahead: Option<Vec<u8>>,
}

/// How lines become pages, once the first were looked at.
struct Reading {
    records: Records,
    paths: Vec<String>,
    /// Whether a line is read as the server reads it.
    as_page: bool,
}

impl Lines {
    pub(super) fn new(path: &Arc<Path>, stream: Stream, file: RecordFile, options: InputOptions) -> Self {
        Self {
            path: Arc::clone(path),
            lines: RawLines::new(stream, options.limits),
            file,
            options,
            reading: None,
            sample: VecDeque::new(),
            number: 0,
            ahead: None,
        }
    }

    /// The line of the last item as it is in the file, with its line feed.
    pub(super) fn original(&self) -> &[u8] {
        self.ahead.as_deref().unwrap_or(self.lines.last())
    }

    pub(super) fn broke_off(&self) -> bool {
        self.lines.broke_off()
    }

    /// The line of the last item.
    pub(super) fn place(&self) -> Place {
        Place::Line(self.number)
    }

    pub(super) fn bytes_read(&self) -> u64 {
        self.lines.bytes_read()
    }

    pub(super) fn ignored(&self) -> Ignored {
        self.reading.as_ref().map(|reading| reading.records.ignored().clone()).unwrap_or_default()
    }

    pub(super) fn unremembered_ids(&self) -> u64 {
        self.reading.as_ref().map_or(0, |reading| reading.records.unremembered_ids())
    }

    /// Reads the first lines, to see which field holds what.
    fn look(&mut self) -> Reading {
        let mut guess = Guess::new(&self.options);
        let paths = guess.paths();
        let (mut records, mut bytes) = (0, 0);
        while records < SAMPLE_RECORDS && bytes < SAMPLE_BYTES {
            let Some((number, line)) = self.lines.next(is_object) else { break };
            let line = line.map(<[u8]>::to_owned);
            if let Ok(line) = &line {
                bytes += line.len();
                let json = json(line);
                if json.is_empty() {
                    continue;
                }
                records += 1;
                // A bad line says nothing of the others.
                if let Ok(mut row) = JsonRow::parse(json, &paths, true) {
                    guess.note(&mut row, || PageItem::parse_in_file(json, self.options.limits.now).is_ok());
                }
            }
            self.sample.push_back((number, line));
        }
        let map = guess.finish();
        let as_page = map.is_page_form() && !self.options.each_row;
        let paths = map.paths();
        Reading { records: Records::new(map, self.file.clone(), &self.options), paths, as_page }
    }
}

impl Reading {
    fn item(&mut self, json: &[u8], number: u64, options: &InputOptions) -> Result<Item, Reason> {
        if self.as_page {
            let page = Fetched::from(PageItem::parse_in_file(json, options.limits.now)?);
            charset::check(&page.body)?;
            return Ok(Item::Page(page));
        }
        let mut row = JsonRow::parse(json, &self.paths, false)?;
        self.records.item(&mut row, number)
    }
}

impl Iterator for Lines {
    type Item = Item;

    fn next(&mut self) -> Option<Item> {
        if self.reading.is_none() {
            let reading = self.look();
            let map = reading.records.map().clone();
            let reading_as_page = reading.as_page;
            self.reading = Some(reading);
            if !reading_as_page {
                return Some(Item::Fields(Arc::new(map)));
            }
        }
        let reading = self.reading.as_mut()?;
        loop {
            self.ahead = None;
            let (number, line) = match self.sample.pop_front() {
                Some((number, Ok(line))) => (number, Ok(self.ahead.insert(line).as_slice())),
                Some((number, Err(reason))) => (number, Err(reason)),
                None => self.lines.next(is_object)?,
            };
            self.number = number;
            let error = match line {
                Ok(line) if json(line).is_empty() => continue,
                Ok(line) => match reading.item(json(line), number, &self.options) {
                    Ok(item) => return Some(item),
                    Err(reason) => {
                        let line = line.strip_suffix(b"\n").unwrap_or(line);
                        let line = Some(line.strip_suffix(b"\r").unwrap_or(line).to_owned());
                        InputError { line, ..InputError::new(&self.path, Place::Line(number), reason) }
                    }
                },
                Err(reason) => InputError::new(&self.path, Place::Line(number), reason),
            };
            return Some(Item::Bad(error));
        }
    }
}

/// The JSON of a line, which is empty where the line is blank.
fn json(line: &[u8]) -> &[u8] {
    let json = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line).trim_ascii_end();
    if json.trim_ascii().is_empty() { b"" } else { json }
}

/// Whether it is a JSON object from the beginning to the end.
fn is_object(line: &[u8]) -> bool {
    let json = json(line);
    json.trim_ascii_start().starts_with(b"{") && serde_json::from_slice::<IgnoredAny>(json).is_ok()
}
