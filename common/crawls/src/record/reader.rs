//! The records of one file as pages.

use std::collections::{BTreeMap, HashSet};

use doppel_model::{PageId, PageUrl, Timestamp};
use doppel_protocol::page::is_language;

use super::date::date;
use super::fields::{Field, FieldMap, Source};
use super::name::RecordFile;
use super::row::{Row, Value};
use crate::error::{FieldError, FieldProblem, Reason, Skip};
use crate::limits::Limits;
use crate::{Fetched, FetchedBody, InputOptions, Item, charset};

/// Values of guessed fields that could not be used and were ignored, by field.
pub type Ignored = BTreeMap<Field, u64>;

/// Makes pages of the records of one file.
#[derive(Debug)]
pub struct Records {
    map: FieldMap,
    file: RecordFile,
    limits: Limits,
    each_row: bool,
    /// The names of the records with an id so far, at most [`Limits::ids_max`].
    ids: HashSet<PageId>,
    ignored: Ignored,
}

impl Records {
    /// Before the first record of a file.
    pub fn new(map: FieldMap, file: RecordFile, options: &InputOptions) -> Self {
        let InputOptions { limits, each_row, .. } = *options;
        Self { map, file, limits, each_row, ids: HashSet::new(), ignored: Ignored::new() }
    }

    /// Where the fields are.
    pub fn map(&self) -> &FieldMap {
        &self.map
    }

    /// What was ignored so far.
    pub fn ignored(&self) -> &Ignored {
        &self.ignored
    }

    /// The page that a record is. `number` counts the records of the file from 1, bad ones too.
    ///
    /// # Errors
    /// When it has no text, or a value that is needed or was named is not what it has to be.
    pub fn item<'a>(&mut self, row: &mut impl Row<'a>, number: u64) -> Result<Item, Reason> {
        let url = if self.each_row { None } else { self.url(row)? };
        let Some(body) = self.body(row, url.as_ref())? else { return Ok(Item::Skipped(Skip::NoRow)) };
        let fetched_at = self.date(row)?;
        let popularity = self.popularity(row)?;
        let language = self.language(row)?;
        let url = match url {
            Some(url) => url,
            // Last, so that the id of a bad record is not taken for one that was read.
            None => self.name(row, number)?,
        };
        Ok(Item::Page(Fetched { url, fetched_at, body, popularity, language }))
    }

    /// Takes the value of a field; an empty one is none.
    fn take<'a>(&self, row: &mut impl Row<'a>, field: Field) -> Option<(Value<'a>, &str, Source)> {
        let (path, source) = self.map.get(field)?;
        let value = row.take(path)?;
        Some((value, path, source))
    }

    /// Takes the value of a field that is text.
    fn text<'a>(&self, row: &mut impl Row<'a>, field: Field) -> Result<Option<(String, &str)>, Reason> {
        match self.take(row, field) {
            Some((Value::Text(text), path, _)) if !text.is_empty() => Ok(Some((text.into_owned(), path))),
            Some((Value::Text(_), ..)) | None => Ok(None),
            Some((other, path, _)) => Err(wrong_type(path, &other, "text")),
        }
    }

    fn url<'a>(&self, row: &mut impl Row<'a>) -> Result<Option<PageUrl>, Reason> {
        match self.text(row, Field::Url)? {
            Some((url, _)) => Ok(Some(PageUrl::parse(&url)?)),
            None if self.map.is_page_form() => Err(wrong("url", FieldProblem::Missing)),
            None => Ok(None),
        }
    }

    /// The content, or what else is said of the URL. `None` where each row is a page, and this one says something of its URL alone.
    fn body<'a>(&self, row: &mut impl Row<'a>, url: Option<&PageUrl>) -> Result<Option<FetchedBody>, Reason> {
        let mut found: Option<(FetchedBody, &str)> = None;
        for field in [Field::Text, Field::Html, Field::RedirectTo, Field::Dead] {
            let Some((value, path, _)) = self.take(row, field) else { continue };
            let body = match (field, value) {
                (Field::Text, Value::Text(text)) => FetchedBody::Text(text.into_owned()),
                (Field::Text, Value::Bytes(bytes)) => FetchedBody::Text(charset::decode(&bytes, None)),
                (Field::Html, Value::Text(html)) => FetchedBody::Html {
                    bytes: html.into_owned().into_bytes(),
                    charset: Some("utf-8".to_owned()),
                },
                (Field::Html, Value::Bytes(bytes)) => {
                    FetchedBody::Html { bytes: bytes.into_owned(), charset: None }
                }
                (Field::RedirectTo, Value::Text(target)) if target.is_empty() => continue,
                (Field::RedirectTo, Value::Text(target)) => {
                    let target = PageUrl::parse(&target)?;
                    if Some(&target) == url {
                        return Err(wrong(path, FieldProblem::RedirectToItself));
                    }
                    FetchedBody::Redirect(target)
                }
                (Field::Dead, Value::Bool(true)) => FetchedBody::Dead,
                (Field::Dead, Value::Bool(false)) => continue,
                (Field::Dead, other) => return Err(wrong_type(path, &other, "true or false")),
                (_, other) => return Err(wrong_type(path, &other, "text")),
            };
            if let Some(content) = body.raw_content() {
                self.limits.check_page(content.size())?;
            }
            match &found {
                None => found = Some((body, path)),
                Some((_, first)) if self.map.is_page_form() => {
                    return Err(wrong(path, FieldProblem::SecondBody((*first).to_owned())));
                }
                Some(_) => {}
            }
            if !self.map.is_page_form() {
                break;
            }
        }
        match found {
            Some((FetchedBody::Redirect(_) | FetchedBody::Dead, _)) if self.each_row => Ok(None),
            Some((FetchedBody::Redirect(_) | FetchedBody::Dead, _)) if url.is_none() => {
                let path = self.map.get(Field::Url).map_or("url", |(path, _)| path);
                Err(wrong(path, FieldProblem::Missing))
            }
            Some((body, _)) => Ok(Some(body)),
            None => {
                let content = self.map.get(Field::Text).or(self.map.get(Field::Html));
                Err(wrong(content.map_or("text", |(path, _)| path), FieldProblem::Missing))
            }
        }
    }

    fn date<'a>(&mut self, row: &mut impl Row<'a>) -> Result<Option<Timestamp>, Reason> {
        let Some((value, path, source)) = self.take(row, Field::Date) else { return Ok(None) };
        if value.is_empty() {
            return Ok(None);
        }
        let found = match date(&value) {
            Some(date) => self.limits.check_date(date),
            None => Err(wrong(path, FieldProblem::Date)),
        };
        self.or_ignore(Field::Date, source, found)
    }

    fn language<'a>(&mut self, row: &mut impl Row<'a>) -> Result<Option<String>, Reason> {
        let Some((value, path, source)) = self.take(row, Field::Language) else { return Ok(None) };
        let found = match value {
            Value::Text(tag) if is_language(&tag) => Ok(tag.into_owned()),
            _ => Err(wrong(path, FieldProblem::Language)),
        };
        self.or_ignore(Field::Language, source, found)
    }

    fn popularity<'a>(&mut self, row: &mut impl Row<'a>) -> Result<Option<f64>, Reason> {
        let Some((value, path, source)) = self.take(row, Field::Popularity) else { return Ok(None) };
        let found = match value {
            Value::Whole(number) if number >= 0 => Ok(number as f64),
            Value::Float(number) if number.is_finite() && number >= 0.0 => Ok(number),
            _ => Err(wrong(path, FieldProblem::Popularity)),
        };
        self.or_ignore(Field::Popularity, source, found)
    }

    /// A value that a named field must have, and a guessed one may have.
    fn or_ignore<T>(
        &mut self,
        field: Field,
        source: Source,
        found: Result<T, Reason>,
    ) -> Result<Option<T>, Reason> {
        match (found, source) {
            (Ok(value), _) => Ok(Some(value)),
            (Err(reason), Source::Named) => Err(reason),
            (Err(_), Source::Guessed) => {
                *self.ignored.entry(field).or_default() += 1;
                Ok(None)
            }
        }
    }

    /// The name of a record without a URL.
    fn name<'a>(&mut self, row: &mut impl Row<'a>, number: u64) -> Result<PageUrl, Reason> {
        let (id, path) = match self.take(row, Field::Id) {
            Some((Value::Text(id), path, _)) if !id.is_empty() => (id.into_owned(), path),
            Some((Value::Whole(id), path, _)) => (id.to_string(), path),
            Some((Value::Text(_), ..)) | None => return Ok(self.file.with_number(number)?),
            Some((other, path, _)) => return Err(wrong_type(path, &other, "text or a whole number")),
        };
        let name = self.file.with_id(&id)?;
        let page = name.id();
        if self.ids.contains(&page) {
            return Err(wrong(path, FieldProblem::RepeatedId(id.chars().take(60).collect())));
        }
        if self.ids.len() < self.limits.ids_max {
            self.ids.insert(page);
        }
        Ok(name)
    }
}

fn wrong(path: &str, problem: FieldProblem) -> Reason {
    Reason::Field(FieldError { path: path.to_owned(), problem })
}

fn wrong_type(path: &str, value: &Value<'_>, has_to_be: &'static str) -> Reason {
    wrong(path, FieldProblem::Type { is: value.kind(), has_to_be })
}
