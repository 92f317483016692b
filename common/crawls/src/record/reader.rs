//! Makes an item of each record of a file: a page, a skipped record, or an error.
//!
//! [`Records`] takes the values of the fields from a [`Row`], checks their types and limits, and names a
//! record that has no URL. A wrong value at a named path makes a bad record. A wrong date, language,
//! popularity or id at a guessed path is ignored and counted. A fallback of a wrong type is ignored.

use std::borrow::Cow;
use std::cell::Cell;
use std::path::Path;
use std::sync::Arc;

use doppel_contract::page::is_language;
use doppel_model::{PageUrl, Timestamp};
use doppel_streams::{FieldProblem, Limits, Reason, SkipReason};

use super::date::date;
use super::faults::{field_error, not_id, not_text, page_url, wrong_type};
use super::field_map::{FieldMap, PathSource};
use super::field_paths::{FieldPaths, FieldValue};
use super::fields::{Field, Ignored};
use super::ids::IdSet;
use super::name::RecordFile;
use super::naming::{IdCheck, IdChoices, NamedBy, OpenIdRows, RepeatedId};
use super::row::{Row, Value, id_of};
use super::setup::Setup;
use crate::{FetchedBody, FetchedPage, InputOptions, Item, charset};

/// Makes items of the records of one file.
pub struct Records {
    map: FieldMap,
    paths: FieldPaths,
    file: RecordFile,
    limits: Limits,
    /// The id of the last record in its file.
    own_id: Option<String>,
    /// Whether the user switches the URL off.
    is_url_off: bool,
    naming: Naming,
    choices: IdChoices,
    /// The ids of the records so far, at most [`Limits::ids_max`].
    ids: IdSet,
    ignored: Ignored,
    /// The number of texts in which U+FFFD replaces lone surrogates.
    mended_texts: Cell<u64>,
}

/// How records without a URL are named.
enum Naming {
    /// By their ids. A record that repeats an id is bad. The user or the collection has decided this.
    StrictIds,
    /// Not decided yet, because the id is guessed and the ids of the file were not checked.
    Unchecked { shown: Arc<Path>, open_ids: OpenIdRows },
    /// By their ids, because no id repeats. The check could not remember `unremembered` of the ids.
    Unique { unremembered: u64 },
    /// By the numbers of their rows.
    Rows {
        /// The guessed id that repeats, if the check was made only after the first record.
        late: Option<RepeatedId>,
        /// Whether the reason is a guessed id that repeats.
        has_repeated_id: bool,
    },
}

impl Records {
    /// Creates the reader for the records of a file that messages show as `shown`. If the map has a guessed
    /// id and no URL, this checks at once whether the id names the records.
    ///
    /// # Errors
    /// If the file cannot be opened again for the check, or the choice cannot be stored.
    pub(crate) fn new(map: FieldMap, shown: &Arc<Path>, setup: &Setup) -> Result<Self, Reason> {
        let Setup { file, options, open_ids } = setup;
        let mut records = Self::with(map, file.clone(), options);
        let Some((path, PathSource::Guessed)) = records.map.get(Field::Id) else { return Ok(records) };
        match (options.ids.stored_for(file), open_ids) {
            (Some(NamedBy::Id), _) => {}
            (Some(NamedBy::Row), _) => {
                records.remove_id(Some(RepeatedId { path: path.to_owned(), first: None }));
            }
            // The ids of a pipe cannot be checked, so a pipe with URLs is read without an id. A pipe without
            // URLs is copied to a file, which is then opened instead.
            (None, None) if records.map.get(Field::Url).is_some() => records.remove_id(None),
            (None, None) => {}
            (None, Some(open_ids)) => {
                records.naming =
                    Naming::Unchecked { shown: Arc::clone(shown), open_ids: Arc::clone(open_ids) };
                if records.map.get(Field::Url).is_none() {
                    records.check_ids()?;
                    if let Naming::Rows { late, .. } = &mut records.naming {
                        let repeated = late.take();
                        records.map = records.map.without_id(repeated);
                    }
                }
            }
        }
        Ok(records)
    }

    /// Creates a reader that only tells whether records can be read in the page form.
    pub(crate) fn in_page_form(options: &InputOptions) -> Self {
        Self::with(FieldMap::page_form(), RecordFile::default(), options)
    }

    fn with(map: FieldMap, file: RecordFile, options: &InputOptions) -> Self {
        let InputOptions { limits, ref fields, ref ids, .. } = *options;
        Self {
            paths: FieldPaths::new(&map),
            map,
            file,
            limits,
            own_id: None,
            is_url_off: fields.is_off(Field::Url),
            naming: Naming::StrictIds,
            choices: ids.clone(),
            ids: IdSet::new(limits.ids_max),
            ignored: Ignored::new(),
            mended_texts: Cell::new(0),
        }
    }

    /// Whether the ids of a file must be checked before its first record is named.
    pub(crate) fn needs_id_check(map: &FieldMap, file: &RecordFile, options: &InputOptions) -> bool {
        let is_guessed = matches!(map.get(Field::Id), Some((_, PathSource::Guessed)));
        is_guessed && map.get(Field::Url).is_none() && options.ids.stored_for(file).is_none()
    }

    /// Checks whether the guessed id names the records, unless that is decided.
    fn check_ids(&mut self) -> Result<(), Reason> {
        let Naming::Unchecked { shown, open_ids } = &self.naming else { return Ok(()) };
        let Some((path, _)) = self.map.get(Field::Id) else { return Ok(()) };
        let checked = self.choices.choose((shown, &self.file), open_ids, (path, self.limits.ids_max))?;
        match checked {
            IdCheck::Unique { unremembered } => self.naming = Naming::Unique { unremembered },
            IdCheck::Repeated(repeated) => {
                self.paths.remove_id();
                self.naming = Naming::Rows { late: Some(repeated), has_repeated_id: true };
            }
        }
        Ok(())
    }

    /// Removes the guessed id, so that records are named by their rows.
    fn remove_id(&mut self, repeated: Option<RepeatedId>) {
        self.paths.remove_id();
        self.naming = Naming::Rows { late: None, has_repeated_id: repeated.is_some() };
        self.map = self.map.clone().without_id(repeated);
    }

    /// The choice of a name for records without a URL. `None` if the reader did not have to choose so far.
    pub fn named_by(&self) -> Option<NamedBy> {
        match &self.naming {
            Naming::Unique { .. } => Some(NamedBy::Id),
            Naming::Rows { has_repeated_id: true, .. } => Some(NamedBy::Row),
            Naming::StrictIds | Naming::Unchecked { .. } | Naming::Rows { .. } => None,
        }
    }

    /// The guessed id that repeats, if the check was made after the first record. The map does not have it.
    pub fn repeated_late(&self) -> Option<&RepeatedId> {
        if let Naming::Rows { late, .. } = &self.naming { late.as_ref() } else { None }
    }

    /// The number of texts with lone surrogates so far.
    pub fn mended_texts(&self) -> u64 {
        self.mended_texts.get()
    }

    /// Counts a text with lone surrogates.
    pub(crate) fn note_mended(&self) {
        self.mended_texts.update(|texts| texts + 1);
    }

    /// Whether a record can be read without an error.
    pub fn reads<'a>(&mut self, row: &mut impl Row<'a>) -> bool {
        self.item(row, 1).is_ok()
    }

    /// The map of the fields that the reader uses.
    pub fn map(&self) -> &FieldMap {
        &self.map
    }

    /// The id of the last record in its file. `None` if the record has no id.
    pub fn own_id(&self) -> Option<&str> {
        self.own_id.as_deref()
    }

    /// For each guessed field, how many values were ignored so far.
    pub fn ignored(&self) -> &Ignored {
        &self.ignored
    }

    /// The number of ids that were not remembered, because there were too many. A record that repeats such an
    /// id looks like a new version of the earlier record.
    pub fn unremembered_ids(&self) -> u64 {
        if let Naming::Unique { unremembered } = self.naming { unremembered } else { self.ids.unremembered() }
    }

    /// Makes an item of a record. `number` counts all records of the file from 1, bad records included.
    ///
    /// # Errors
    /// If the record has no content, or has a wrong value in a field that is required or named.
    pub fn item<'a>(&mut self, row: &mut impl Row<'a>, number: u64) -> Result<Item, Reason> {
        let url = self.url(row)?;
        let Some(body) = self.body(row, url.as_ref())? else { return Ok(Item::Skipped(SkipReason::NoRow)) };
        charset::check(&body)?;
        let fetched_at = self.date(row)?;
        let popularity = self.popularity(row)?;
        let language = self.language(row)?;
        self.own_id = None;
        let url = match url {
            Some(url) => {
                self.own_id = id_of(self.paths.take(row, Field::Id).map(|found| found.value));
                url
            }
            // This is the last step, because the id of a bad record must not be remembered.
            None => self.name(row, number)?,
        };
        Ok(Item::Page(FetchedPage { url, fetched_at, body, popularity, language }))
    }

    fn url<'a>(&self, row: &mut impl Row<'a>) -> Result<Option<PageUrl>, Reason> {
        let found = match self.paths.take(row, Field::Url) {
            Some(FieldValue { value: Value::Text(url), .. }) if url.is_empty() => None,
            Some(FieldValue { value: Value::Text(url), path, source }) => {
                Some((page_url(path, &url), source))
            }
            Some(FieldValue { value, path, source }) => Some((Err(wrong_type(path, &value, "text")), source)),
            None => None,
        };
        match found {
            Some((Ok(url), _)) => Ok(Some(url)),
            // The field is named like a URL but has another meaning, which the sample did not show.
            Some((Err(_), PathSource::Fallback)) => Ok(None),
            Some((Err(reason), _)) => Err(reason),
            None if self.map.is_page_form() => Err(field_error("url", FieldProblem::Missing)),
            None => Ok(None),
        }
    }

    /// The content, redirect or death that a record states. `None` if the record states a redirect or a
    /// death, but the user has switched the URL off, so that it concerns no page.
    fn body<'a>(&self, row: &mut impl Row<'a>, url: Option<&PageUrl>) -> Result<Option<FetchedBody>, Reason> {
        let mut found: Option<(FetchedBody, &str)> = None;
        // The error for a fallback of a wrong type. It counts only if the record has nothing else.
        let mut fallback_error = None;
        // An empty text or HTML document. It counts only if the record has nothing else.
        let mut empty = None;
        for field in [Field::Text, Field::Html, Field::RedirectTo, Field::Dead] {
            let Some(FieldValue { value, path, source }) = self.paths.take(row, field) else { continue };
            let body = match (field, value) {
                (Field::Text, Value::Text(text)) => FetchedBody::Text(text.into_owned()),
                (Field::Text, Value::Broken(text)) => {
                    self.note_mended();
                    FetchedBody::Text(text)
                }
                (Field::Text, Value::Bytes(bytes)) => FetchedBody::Text(charset::decode(&bytes, None)),
                (Field::Html, Value::Text(html)) => FetchedBody::Html {
                    bytes: html.into_owned().into_bytes(),
                    charset: Some("utf-8".to_owned()),
                },
                (Field::Html, Value::Broken(html)) => {
                    self.note_mended();
                    FetchedBody::Html { bytes: html.into_bytes(), charset: Some("utf-8".to_owned()) }
                }
                (Field::Html, Value::Bytes(bytes)) => {
                    FetchedBody::Html { bytes: bytes.into_owned(), charset: None }
                }
                (Field::RedirectTo, Value::Text(target)) if target.is_empty() => continue,
                (Field::RedirectTo, Value::Text(target)) => {
                    let target = page_url(path, &target)?;
                    if Some(&target) == url {
                        return Err(field_error(path, FieldProblem::RedirectToItself));
                    }
                    FetchedBody::Redirect(target)
                }
                (Field::Dead, Value::Bool(true)) => FetchedBody::Dead,
                (Field::Dead, Value::Bool(false)) => continue,
                // The field is named like a content but has another meaning, which the sample did not show.
                (Field::Text | Field::Html, value) if source == PathSource::Fallback => {
                    fallback_error.get_or_insert_with(|| not_text(field, path, &value));
                    continue;
                }
                (..) if source == PathSource::Fallback => continue,
                (Field::Dead, value) => return Err(wrong_type(path, &value, "true or false")),
                (_, value) => return Err(not_text(field, path, &value)),
            };
            if let Some(content) = body.raw_content() {
                self.limits.check_page(content.size())?;
            }
            if !self.map.is_page_form() && body.raw_content().is_some_and(|content| content.size() == 0) {
                empty.get_or_insert((body, path));
                continue;
            }
            match &found {
                None => found = Some((body, path)),
                Some((_, first)) if self.map.is_page_form() => {
                    return Err(field_error(path, FieldProblem::SecondBody((*first).to_owned())));
                }
                Some(_) => {}
            }
            if !self.map.is_page_form() {
                break;
            }
        }
        match found.or(empty) {
            Some((FetchedBody::Redirect(_) | FetchedBody::Dead, _)) if self.is_url_off => Ok(None),
            Some((FetchedBody::Redirect(_) | FetchedBody::Dead, _)) if url.is_none() => {
                let path = self.map.get(Field::Url).map_or("url", |(path, _)| path);
                Err(field_error(path, FieldProblem::Missing))
            }
            Some((body, _)) => Ok(Some(body)),
            None if fallback_error.is_some() => fallback_error.map_or(Ok(None), Err),
            None => {
                let content = self.map.get(Field::Text).or(self.map.get(Field::Html));
                Err(field_error(content.map_or("text", |(path, _)| path), FieldProblem::Missing))
            }
        }
    }

    fn date<'a>(&mut self, row: &mut impl Row<'a>) -> Result<Option<Timestamp>, Reason> {
        let Some(FieldValue { value, path, source }) = self.paths.take(row, Field::Date) else {
            return Ok(None);
        };
        if value.is_empty() {
            return Ok(None);
        }
        let found = match date(&value) {
            Some(date) => self.limits.check_date(date),
            None => Err(field_error(path, FieldProblem::Date)),
        };
        self.fail_if_named(Field::Date, source, found)
    }

    fn language<'a>(&mut self, row: &mut impl Row<'a>) -> Result<Option<String>, Reason> {
        let Some(FieldValue { value, path, source }) = self.paths.take(row, Field::Language) else {
            return Ok(None);
        };
        let found = match value {
            Value::Text(tag) if is_language(&tag) => Ok(tag.into_owned()),
            _ => Err(field_error(path, FieldProblem::Language)),
        };
        self.fail_if_named(Field::Language, source, found)
    }

    fn popularity<'a>(&mut self, row: &mut impl Row<'a>) -> Result<Option<f64>, Reason> {
        let Some(FieldValue { value, path, source }) = self.paths.take(row, Field::Popularity) else {
            return Ok(None);
        };
        let found = match value {
            Value::Whole(number) if number >= 0 => Ok(number as f64),
            Value::Float(number) if number.is_finite() && number >= 0.0 => Ok(number),
            _ => Err(field_error(path, FieldProblem::Popularity)),
        };
        self.fail_if_named(Field::Popularity, source, found)
    }

    /// Returns the error of a wrong value if the user names the field. Otherwise counts and ignores it.
    fn fail_if_named<T>(
        &mut self,
        field: Field,
        source: PathSource,
        found: Result<T, Reason>,
    ) -> Result<Option<T>, Reason> {
        match (found, source) {
            (Ok(value), _) => Ok(Some(value)),
            (Err(reason), PathSource::Named) => Err(reason),
            (Err(_), PathSource::Guessed | PathSource::Fallback) => {
                *self.ignored.entry(field).or_default() += 1;
                Ok(None)
            }
        }
    }

    /// Names a record without a URL by its id, or else by its number.
    fn name<'a>(&mut self, row: &mut impl Row<'a>, number: u64) -> Result<PageUrl, Reason> {
        self.check_ids()?;
        let (id, path) = match self.paths.take(row, Field::Id) {
            Some(FieldValue { value: Value::Text(id), path, .. }) if !id.is_empty() => (id, path),
            Some(FieldValue { value: Value::Whole(id), path, .. }) => (Cow::Owned(id.to_string()), path),
            Some(FieldValue { value: Value::Text(_), .. }) | None => {
                return Ok(self.file.with_number(number)?);
            }
            Some(FieldValue { source: PathSource::Guessed | PathSource::Fallback, .. }) => {
                *self.ignored.entry(Field::Id).or_default() += 1;
                return Ok(self.file.with_number(number)?);
            }
            Some(FieldValue { value, path, source: PathSource::Named }) => {
                return Err(not_id(path, &value));
            }
        };
        let name = self.file.with_id(&id).map_err(|error| field_error(path, error.into()))?;
        // If the ids of the file were checked, none of them repeats.
        if matches!(self.naming, Naming::Unique { .. }) || self.ids.insert(&id) {
            self.own_id = Some(id.into_owned());
            Ok(name)
        } else {
            Err(field_error(path, FieldProblem::RepeatedId(id.chars().take(60).collect())))
        }
    }
}
