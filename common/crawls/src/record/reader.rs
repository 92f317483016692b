//! The records of one file as pages.

use std::borrow::Cow;
use std::cell::Cell;
use std::path::Path;
use std::sync::Arc;

use doppel_model::{PageUrl, Timestamp};
use doppel_protocol::page::is_language;

use super::date::date;
use super::faults::{no_id, no_text, page_url, wrong, wrong_type};
use super::fields::{Field, FieldMap, Ignored, Source};
use super::ids::Ids;
use super::name::RecordFile;
use super::naming::{Again, Checked, IdChoices, NamedBy, RepeatedId};
use super::places::Places;
use super::row::{Row, Value, id_of};
use super::setup::Setup;
use crate::error::{FieldProblem, Reason, Skip};
use crate::limits::Limits;
use crate::{Fetched, FetchedBody, InputOptions, Item, charset};

/// Makes pages of the records of one file.
pub struct Records {
    map: FieldMap,
    places: Places,
    file: RecordFile,
    limits: Limits,
    /// What the last record is called in its file.
    own_id: Option<String>,
    /// Whether the URL is not to be read.
    url_is_off: bool,
    naming: Naming,
    choices: IdChoices,
    /// The ids so far, at most [`Limits::ids_max`].
    ids: Ids,
    ignored: Ignored,
    /// Texts in which U+FFFD stands for lone surrogates.
    mended_texts: Cell<u64>,
}

/// How ids name records.
enum Naming {
    /// An id that an earlier record has makes a bad record: the field is named, or a collection has chosen it.
    Repeated,
    /// Not known yet: the field is guessed.
    Unchecked { shown: Arc<Path>, again: Again },
    /// Each id is there once, as far as they were remembered.
    Unique { unremembered: u64 },
    /// By no id.
    Rows {
        /// The guessed id that is none, where that is known since a record was to be named.
        late: Option<RepeatedId>,
        /// Whether there is a guessed id that is none.
        is_chosen: bool,
    },
}

impl Records {
    /// Before the first record of a file that is `shown` under this path. Where no record has a URL, it is found out whether the guessed id names them.
    ///
    /// # Errors
    /// When the file cannot be opened once more for that, or the choice not be written down.
    pub(crate) fn new(map: FieldMap, shown: &Arc<Path>, setup: &Setup) -> Result<Self, Reason> {
        let Setup { file, options, again } = setup;
        let mut records = Self::with(map, file.clone(), options);
        let Some((path, Source::Guessed)) = records.map.get(Field::Id) else { return Ok(records) };
        match (options.ids.kept_for(file), again) {
            (Some(NamedBy::Id), _) => {}
            (Some(NamedBy::Row), _) => {
                records.forget_id(Some(RepeatedId { path: path.to_owned(), first: None }));
            }
            // What can be read only once, and has URLs: its ids are not looked at. Without URLs it is copied and opened anew.
            (None, None) if records.map.get(Field::Url).is_some() => records.forget_id(None),
            (None, None) => {}
            (None, Some(again)) => {
                records.naming = Naming::Unchecked { shown: Arc::clone(shown), again: Arc::clone(again) };
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

    /// Before the first record of a file in Doppel's own form, of which only pages are asked.
    pub(crate) fn in_page_form(options: &InputOptions) -> Self {
        Self::with(FieldMap::page_form(), RecordFile::default(), options)
    }

    fn with(map: FieldMap, file: RecordFile, options: &InputOptions) -> Self {
        let InputOptions { limits, ref fields, ref ids, .. } = *options;
        Self {
            places: Places::new(&map),
            map,
            file,
            limits,
            own_id: None,
            url_is_off: fields.is_off(Field::Url),
            naming: Naming::Repeated,
            choices: ids.clone(),
            ids: Ids::new(limits.ids_max),
            ignored: Ignored::new(),
            mended_texts: Cell::new(0),
        }
    }

    /// Whether the guessed id of a map has to be looked at before a record is named, by a file that can be read more than once.
    pub(crate) fn needs_again(map: &FieldMap, file: &RecordFile, options: &InputOptions) -> bool {
        let is_guessed = matches!(map.get(Field::Id), Some((_, Source::Guessed)));
        is_guessed && map.get(Field::Url).is_none() && options.ids.kept_for(file).is_none()
    }

    /// Finds out whether the guessed id names records.
    fn check_ids(&mut self) -> Result<(), Reason> {
        let Naming::Unchecked { shown, again } = &self.naming else { return Ok(()) };
        let Some((path, _)) = self.map.get(Field::Id) else { return Ok(()) };
        let checked = self.choices.choose((shown, &self.file), again, (path, self.limits.ids_max))?;
        match checked {
            Checked::Unique { unremembered } => self.naming = Naming::Unique { unremembered },
            Checked::Repeated(repeated) => {
                self.places.forget_id();
                self.naming = Naming::Rows { late: Some(repeated), is_chosen: true };
            }
        }
        Ok(())
    }

    /// Names records by their rows.
    fn forget_id(&mut self, repeated: Option<RepeatedId>) {
        self.places.forget_id();
        self.naming = Naming::Rows { late: None, is_chosen: repeated.is_some() };
        self.map = self.map.clone().without_id(repeated);
    }

    /// What names the records, where the id is guessed and had to be looked at.
    pub fn named_by(&self) -> Option<NamedBy> {
        match &self.naming {
            Naming::Unique { .. } => Some(NamedBy::Id),
            Naming::Rows { is_chosen: true, .. } => Some(NamedBy::Row),
            Naming::Repeated | Naming::Unchecked { .. } | Naming::Rows { .. } => None,
        }
    }

    /// The guessed id that is none, where that is known only since a record without a URL was met.
    pub fn repeated_late(&self) -> Option<&RepeatedId> {
        if let Naming::Rows { late, .. } = &self.naming { late.as_ref() } else { None }
    }

    /// How many texts had lone surrogates so far.
    pub fn mended_texts(&self) -> u64 {
        self.mended_texts.get()
    }

    /// Takes note of a text that had lone surrogates.
    pub(crate) fn note_mended(&self) {
        self.mended_texts.update(|texts| texts + 1);
    }

    /// Whether a record can be read.
    pub fn reads<'a>(&mut self, row: &mut impl Row<'a>) -> bool {
        self.item(row, 1).is_ok()
    }

    /// Where the fields are.
    pub fn map(&self) -> &FieldMap {
        &self.map
    }

    /// What the last record is called in its file, if it has an id.
    pub fn own_id(&self) -> Option<&str> {
        self.own_id.as_deref()
    }

    /// What was ignored so far.
    pub fn ignored(&self) -> &Ignored {
        &self.ignored
    }

    /// How many ids were not remembered, so that records that repeat them are taken for new versions.
    pub fn unremembered_ids(&self) -> u64 {
        if let Naming::Unique { unremembered } = self.naming { unremembered } else { self.ids.unremembered() }
    }

    /// The page that a record is. `number` counts the records of the file from 1, bad ones too.
    ///
    /// # Errors
    /// When it has no text, or a value that is needed or was named is not what it has to be.
    pub fn item<'a>(&mut self, row: &mut impl Row<'a>, number: u64) -> Result<Item, Reason> {
        let url = self.url(row)?;
        let Some(body) = self.body(row, url.as_ref())? else { return Ok(Item::Skipped(Skip::NoRow)) };
        charset::check(&body)?;
        let fetched_at = self.date(row)?;
        let popularity = self.popularity(row)?;
        let language = self.language(row)?;
        self.own_id = None;
        let url = match url {
            Some(url) => {
                self.own_id = id_of(self.places.take(row, Field::Id).map(|(value, ..)| value));
                url
            }
            // Last, so that the id of a bad record is not taken for one that was read.
            None => self.name(row, number)?,
        };
        Ok(Item::Page(Fetched { url, fetched_at, body, popularity, language }))
    }

    fn url<'a>(&self, row: &mut impl Row<'a>) -> Result<Option<PageUrl>, Reason> {
        let found = match self.places.take(row, Field::Url) {
            Some((Value::Text(url), ..)) if url.is_empty() => None,
            Some((Value::Text(url), path, source)) => Some((page_url(path, &url), source)),
            Some((other, path, source)) => Some((Err(wrong_type(path, &other, "text")), source)),
            None => None,
        };
        match found {
            Some((Ok(url), _)) => Ok(Some(url)),
            // Something else has that name, of which the first records said nothing.
            Some((Err(_), Source::Fallback)) => Ok(None),
            Some((Err(reason), _)) => Err(reason),
            None if self.map.is_page_form() => Err(wrong("url", FieldProblem::Missing)),
            None => Ok(None),
        }
    }

    /// The content, or what else is said of the URL. `None` where no URL is to be read, and the record says something of its URL alone.
    fn body<'a>(&self, row: &mut impl Row<'a>, url: Option<&PageUrl>) -> Result<Option<FetchedBody>, Reason> {
        let mut found: Option<(FetchedBody, &str)> = None;
        // A value of another type, where a text may be that is not named.
        let mut other = None;
        // An empty text or HTML hides nothing else that the record has.
        let mut empty = None;
        for field in [Field::Text, Field::Html, Field::RedirectTo, Field::Dead] {
            let Some((value, path, source)) = self.places.take(row, field) else { continue };
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
                        return Err(wrong(path, FieldProblem::RedirectToItself));
                    }
                    FetchedBody::Redirect(target)
                }
                (Field::Dead, Value::Bool(true)) => FetchedBody::Dead,
                (Field::Dead, Value::Bool(false)) => continue,
                // Something else has that name, of which the first records said nothing.
                (Field::Text | Field::Html, value) if source == Source::Fallback => {
                    other.get_or_insert_with(|| no_text(field, path, &value));
                    continue;
                }
                (..) if source == Source::Fallback => continue,
                (Field::Dead, other) => return Err(wrong_type(path, &other, "true or false")),
                (_, other) => return Err(no_text(field, path, &other)),
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
                    return Err(wrong(path, FieldProblem::SecondBody((*first).to_owned())));
                }
                Some(_) => {}
            }
            if !self.map.is_page_form() {
                break;
            }
        }
        match found.or(empty) {
            Some((FetchedBody::Redirect(_) | FetchedBody::Dead, _)) if self.url_is_off => Ok(None),
            Some((FetchedBody::Redirect(_) | FetchedBody::Dead, _)) if url.is_none() => {
                let path = self.map.get(Field::Url).map_or("url", |(path, _)| path);
                Err(wrong(path, FieldProblem::Missing))
            }
            Some((body, _)) => Ok(Some(body)),
            None if other.is_some() => other.map_or(Ok(None), Err),
            None => {
                let content = self.map.get(Field::Text).or(self.map.get(Field::Html));
                Err(wrong(content.map_or("text", |(path, _)| path), FieldProblem::Missing))
            }
        }
    }

    fn date<'a>(&mut self, row: &mut impl Row<'a>) -> Result<Option<Timestamp>, Reason> {
        let Some((value, path, source)) = self.places.take(row, Field::Date) else { return Ok(None) };
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
        let Some((value, path, source)) = self.places.take(row, Field::Language) else { return Ok(None) };
        let found = match value {
            Value::Text(tag) if is_language(&tag) => Ok(tag.into_owned()),
            _ => Err(wrong(path, FieldProblem::Language)),
        };
        self.or_ignore(Field::Language, source, found)
    }

    fn popularity<'a>(&mut self, row: &mut impl Row<'a>) -> Result<Option<f64>, Reason> {
        let Some((value, path, source)) = self.places.take(row, Field::Popularity) else { return Ok(None) };
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
            (Err(_), Source::Guessed | Source::Fallback) => {
                *self.ignored.entry(field).or_default() += 1;
                Ok(None)
            }
        }
    }

    /// The name of a record without a URL.
    fn name<'a>(&mut self, row: &mut impl Row<'a>, number: u64) -> Result<PageUrl, Reason> {
        self.check_ids()?;
        let (id, path) = match self.places.take(row, Field::Id) {
            Some((Value::Text(id), path, _)) if !id.is_empty() => (id, path),
            Some((Value::Whole(id), path, _)) => (Cow::Owned(id.to_string()), path),
            Some((Value::Text(_), ..)) | None => return Ok(self.file.with_number(number)?),
            Some((_, _, Source::Guessed | Source::Fallback)) => {
                *self.ignored.entry(Field::Id).or_default() += 1;
                return Ok(self.file.with_number(number)?);
            }
            Some((other, path, Source::Named)) => {
                return Err(no_id(path, &other));
            }
        };
        let name = self.file.with_id(&id).map_err(|error| wrong(path, error.into()))?;
        // The ids of a file that was looked at are known to be there once.
        if matches!(self.naming, Naming::Unique { .. }) || self.ids.note(&id) {
            self.own_id = Some(id.into_owned());
            Ok(name)
        } else {
            Err(wrong(path, FieldProblem::RepeatedId(id.chars().take(60).collect())))
        }
    }
}
