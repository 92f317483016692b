//! Reads pages from JSON lines: one object a line, of any schema. Lines in Doppel's own form, that of `POST /v1/pages`, are
//! read as the server reads them, but that unknown fields mean nothing.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;

use doppel_protocol::page::PageItem;

use super::error::{InputError, Place, Reason};
use super::format::BYTE_ORDER_MARK;
use super::raw_lines::RawLines;
use super::record::{
    Guess, IdRows, JsonRow, Mended, Records, Row, SAMPLE_BYTES, SAMPLE_RECORDS, Setup, id_of,
};
use super::stream::Stream;
use super::{Fetched, InputOptions, Item, charset};

/// The pages of a file of JSON lines. Blank lines are ignored, but count for the numbers of the others.
pub(super) struct Lines {
    path: Arc<Path>,
    lines: RawLines,
    setup: Setup,
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
    pub(super) fn new(path: &Arc<Path>, stream: Stream, setup: Setup) -> Self {
        Self {
            path: Arc::clone(path),
            lines: RawLines::new(stream, setup.options.limits),
            setup,
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

    /// The records, once the first lines were looked at.
    pub(super) fn records(&self) -> Option<&Records> {
        self.reading.as_ref().map(|reading| &reading.records)
    }

    /// Reads the first lines, to see which field holds what.
    fn look(&mut self) -> Result<Reading, Reason> {
        let options = &self.setup.options;
        let mut guess = Guess::new(options);
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
                with_row(json, &paths, true, |mut row| {
                    guess.note(&mut row, || page(json, options).is_ok());
                    Ok(())
                })
                .unwrap_or_default();
            }
            self.sample.push_back((number, line));
        }
        let map = guess.finish();
        let as_page = map.is_page_form();
        let records = Records::new(map, &self.path, &self.setup)?;
        let paths = records.map().paths();
        Ok(Reading { records, paths, as_page })
    }
}

/// Reads the row that a line of JSON is, mended where strict JSON refuses it.
fn with_row<T>(
    json: &[u8],
    paths: &[String],
    with_names: bool,
    read: impl FnOnce(JsonRow<'_, '_>) -> Result<T, Reason>,
) -> Result<T, Reason> {
    match JsonRow::parse(json, paths, with_names) {
        Ok(row) => read(row),
        Err(error) => match Mended::of(json) {
            Some(mended) => read(mended.row(paths, with_names)?),
            None => Err(error.into()),
        },
    }
}

/// Reads a line as the server does, mended where strict JSON refuses it. Returns whether its content had lone surrogates, too.
fn page(json: &[u8], options: &InputOptions) -> Result<(Fetched, bool), Reason> {
    let read = |json: &[u8]| Ok(Fetched::from(PageItem::parse_in_file(json, options.limits.now)?));
    read(json).map(|page| (page, false)).or_else(|error| {
        let Some(mended) = Mended::of(json) else { return Err(error) };
        let page = read(mended.json())?;
        let Some(without) = mended.without_surrogates() else { return Ok((page, false)) };
        let without = read(without)?;
        let is_named_alike =
            page.url == without.url && (page.body.has_content() || page.body == without.body);
        if is_named_alike { Ok((page.clone(), page.body != without.body)) } else { Err(error) }
    })
}

impl Reading {
    fn item(&mut self, json: &[u8], number: u64, options: &InputOptions) -> Result<Item, Reason> {
        if self.as_page {
            let (page, is_mended) = page(json, options)?;
            charset::check(&page.body)?;
            if is_mended {
                self.records.note_mended();
            }
            return Ok(Item::Page(page));
        }
        let Self { records, paths, .. } = self;
        with_row(json, paths, false, |mut row| records.item(&mut row, number))
    }
}

impl Iterator for Lines {
    type Item = Item;

    fn next(&mut self) -> Option<Item> {
        if self.reading.is_none() {
            let reading = match self.look() {
                Ok(reading) => reading,
                Err(reason) => {
                    self.lines.break_off();
                    self.sample.clear();
                    return Some(Item::Bad(InputError::new(&self.path, Place::File, reason)));
                }
            };
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
                Ok(line) => match reading.item(json(line), number, &self.setup.options) {
                    Ok(item) => return Some(item),
                    Err(reason) => {
                        let line = line.strip_suffix(b"\n").unwrap_or(line);
                        let line = Some(line.strip_suffix(b"\r").unwrap_or(line).into());
                        InputError { line, ..InputError::new(&self.path, Place::Line(number), reason) }
                    }
                },
                Err(reason) => InputError::new(&self.path, Place::Line(number), reason),
            };
            return Some(Item::Bad(error));
        }
    }
}

impl IdRows for Lines {
    fn next_id(&mut self, path: &[String]) -> Option<(u64, Option<String>)> {
        loop {
            let (number, line) = self.lines.next(is_object)?;
            let Some(json) = line.ok().map(json).filter(|json| !json.is_empty()) else { continue };
            let id = with_row(json, path, false, |mut row| {
                Ok(id_of(path.first().and_then(|path| row.take(path))))
            });
            return Some((number, id.ok().flatten()));
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
    json.trim_ascii_start().starts_with(b"{") && with_row(json, &[], false, |_| Ok(())).is_ok()
}
