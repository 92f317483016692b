//! Reads pages from JSON lines: one object per line, of any schema.
//!
//! The reader inspects the first lines to find which field holds what. Lines in the *page form*, the JSON
//! form of `POST /v1/pages`, are parsed as the server parses them, except that unknown fields are ignored.
//! Lines of another schema become pages through [`Records`]. Invalid JSON of known kinds is mended.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;

use doppel_contract::page::PageItem;
use doppel_streams::{InputError, InputPosition, RawLines, Reason, Stream};

use super::format::BYTE_ORDER_MARK;
use super::record::{
    Guess, IdRows, JsonRow, MendedLine, Records, Row, SAMPLE_BYTES, SAMPLE_RECORDS, Setup, id_of,
};
use super::{FetchedPage, InputOptions, Item, charset};

/// Reader of the pages of a JSON lines file. Blank lines are ignored, but count for the numbers of the other
/// lines.
pub(super) struct Lines {
    path: Arc<Path>,
    lines: RawLines,
    setup: Setup,
    parser: Option<LineParser>,
    /// The sampled first lines that were not returned yet, with their numbers.
    sample: VecDeque<(u64, Result<Vec<u8>, Reason>)>,
    /// Number of the last line that was returned.
    number: u64,
    /// The last line that was returned, if it came from the sample.
    sampled_line: Option<Vec<u8>>,
}

/// Turns lines into pages. Created after the first lines were inspected.
struct LineParser {
    records: Records,
    paths: Vec<String>,
    /// Whether the lines are in the page form.
    is_page_form: bool,
}

impl Lines {
    pub(super) fn new(path: &Arc<Path>, stream: Stream, setup: Setup) -> Self {
        Self {
            path: Arc::clone(path),
            lines: RawLines::new(stream, setup.options.limits),
            setup,
            parser: None,
            sample: VecDeque::new(),
            number: 0,
            sampled_line: None,
        }
    }

    /// The line of the last item as it is in the file, with its line feed.
    pub(super) fn original(&self) -> &[u8] {
        self.sampled_line.as_deref().unwrap_or(self.lines.last_line())
    }

    pub(super) fn broke_off(&self) -> bool {
        self.lines.broke_off()
    }

    /// Position of the last item: its line.
    pub(super) fn input_position(&self) -> InputPosition {
        InputPosition::Line(self.number)
    }

    pub(super) fn bytes_read(&self) -> u64 {
        self.lines.bytes_read()
    }

    /// The record mapper. `None` before the first lines were inspected.
    pub(super) fn records(&self) -> Option<&Records> {
        self.parser.as_ref().map(|parser| &parser.records)
    }

    /// Samples the first lines and creates the parser for their schema.
    fn read_sample(&mut self) -> Result<LineParser, Reason> {
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
                // A bad line gives no evidence about the other lines.
                with_row(json, &paths, true, |mut row| {
                    guess.note(&mut row, || parse_page(json, options).is_ok());
                    Ok(())
                })
                .unwrap_or_default();
            }
            self.sample.push_back((number, line));
        }
        let map = guess.finish();
        let is_page_form = map.is_page_form();
        let records = Records::new(map, &self.path, &self.setup)?;
        let paths = records.map().paths();
        Ok(LineParser { records, paths, is_page_form })
    }
}

/// Parses a line of JSON as a row and passes the row to `read`. Mends the line if strict JSON refuses it.
fn with_row<T>(
    json: &[u8],
    paths: &[String],
    with_names: bool,
    read: impl FnOnce(JsonRow<'_, '_>) -> Result<T, Reason>,
) -> Result<T, Reason> {
    match JsonRow::parse(json, paths, with_names) {
        Ok(row) => read(row),
        Err(error) => match MendedLine::of(json) {
            Some(mended) => read(mended.row(paths, with_names)?),
            None => Err(error.into()),
        },
    }
}

/// Parses a line as the server does, and mends it if strict JSON refuses it. Returns the page, and whether
/// its content had lone surrogates.
fn parse_page(json: &[u8], options: &InputOptions) -> Result<(FetchedPage, bool), Reason> {
    let read = |json: &[u8]| Ok(FetchedPage::from(PageItem::parse_in_file(json, options.limits.now)?));
    read(json).map(|page| (page, false)).or_else(|error| {
        let Some(mended) = MendedLine::of(json) else { return Err(error) };
        let page = read(mended.json())?;
        let Some(without) = mended.without_surrogates() else { return Ok((page, false)) };
        let without = read(without)?;
        let is_named_alike =
            page.url == without.url && (page.body.has_content() || page.body == without.body);
        if is_named_alike { Ok((page.clone(), page.body != without.body)) } else { Err(error) }
    })
}

impl LineParser {
    fn item(&mut self, json: &[u8], number: u64, options: &InputOptions) -> Result<Item, Reason> {
        if self.is_page_form {
            let (page, is_mended) = parse_page(json, options)?;
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
        if self.parser.is_none() {
            let parser = match self.read_sample() {
                Ok(parser) => parser,
                Err(reason) => {
                    self.lines.break_off();
                    self.sample.clear();
                    return Some(Item::Bad(InputError::new(&self.path, InputPosition::File, reason)));
                }
            };
            let map = parser.records.map().clone();
            let is_page_form = parser.is_page_form;
            self.parser = Some(parser);
            if !is_page_form {
                return Some(Item::Fields(Arc::new(map)));
            }
        }
        let parser = self.parser.as_mut()?;
        loop {
            self.sampled_line = None;
            let (number, line) = match self.sample.pop_front() {
                Some((number, Ok(line))) => (number, Ok(self.sampled_line.insert(line).as_slice())),
                Some((number, Err(reason))) => (number, Err(reason)),
                None => self.lines.next(is_object)?,
            };
            self.number = number;
            let error = match line {
                Ok(line) if json(line).is_empty() => continue,
                Ok(line) => match parser.item(json(line), number, &self.setup.options) {
                    Ok(item) => return Some(item),
                    Err(reason) => {
                        let line = line.strip_suffix(b"\n").unwrap_or(line);
                        let line = Some(line.strip_suffix(b"\r").unwrap_or(line).into());
                        InputError {
                            line,
                            ..InputError::new(&self.path, InputPosition::Line(number), reason)
                        }
                    }
                },
                Err(reason) => InputError::new(&self.path, InputPosition::Line(number), reason),
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

/// The JSON of a line, without byte order mark and trailing blanks. Empty for a blank line.
fn json(line: &[u8]) -> &[u8] {
    let json = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line).trim_ascii_end();
    if json.trim_ascii().is_empty() { b"" } else { json }
}

/// Whether a line is one complete JSON object.
fn is_object(line: &[u8]) -> bool {
    let json = json(line);
    json.trim_ascii_start().starts_with(b"{") && with_row(json, &[], false, |_| Ok(())).is_ok()
}
