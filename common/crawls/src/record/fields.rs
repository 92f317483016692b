//! Which field of a record holds what.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::naming::RepeatedId;

/// What a field of a record can hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Field {
    /// Plain text or Markdown.
    Text,
    /// An HTML document, read where there is no text.
    Html,
    /// What names the record in its file.
    Id,
    /// Its URL.
    Url,
    /// When it was fetched.
    Date,
    /// A language tag.
    Language,
    /// Any measure of popularity.
    Popularity,
    /// The URL that the record's URL redirects to.
    RedirectTo,
    /// Whether the record's URL is gone.
    Dead,
}

impl Field {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Text,
        Self::Html,
        Self::Id,
        Self::Url,
        Self::Date,
        Self::Language,
        Self::Popularity,
        Self::RedirectTo,
        Self::Dead,
    ];

    /// Where it is looked for unless it is named, the first choice first.
    pub(super) fn candidates(self) -> &'static [&'static str] {
        match self {
            Self::Text => &["text", "content", "raw_content"],
            Self::Html => &["html"],
            Self::Id => &["id"],
            Self::Url => &["url", "source", "metadata.url", "meta.url"],
            Self::Date => &[
                "fetched_at",
                "timestamp",
                "date",
                "crawl_date",
                "date_download",
                "metadata.timestamp",
                "metadata.date",
                "meta.timestamp",
                "meta.date",
            ],
            Self::Language => &["language", "metadata.language", "meta.language"],
            Self::Popularity => &["popularity"],
            Self::RedirectTo => &["redirect_to"],
            Self::Dead => &["dead"],
        }
    }

    /// Its name in Doppel's own form of a page; an id has none.
    pub(super) fn in_page_form(self) -> Option<&'static str> {
        match self {
            Self::Id => None,
            Self::Url => Some("url"),
            Self::Date => Some("fetched_at"),
            other => other.candidates().first().copied(),
        }
    }

    /// The option that names it on the command line; none where it is always guessed.
    #[must_use]
    pub fn option(self) -> Option<&'static str> {
        match self {
            Self::Text => Some("--text-field"),
            Self::Html => Some("--html-field"),
            Self::Id => Some("--id-field"),
            Self::Url => Some("--url-field"),
            Self::Date => Some("--date-field"),
            Self::Language | Self::Popularity | Self::RedirectTo | Self::Dead => None,
        }
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Text => "text",
            Self::Html => "HTML",
            Self::Id => "id",
            Self::Url => "URL",
            Self::Date => "date",
            Self::Language => "language",
            Self::Popularity => "popularity",
            Self::RedirectTo => "redirect",
            Self::Dead => "death",
        })
    }
}

/// Values of guessed fields that could not be used and were ignored, by field.
pub type Ignored = BTreeMap<Field, u64>;

/// What a user says in the place of a path, for a field that is not to be read although it could be guessed.
pub const NO_FIELD: &str = "none";

/// The parts of a text that is in several fields: `title,body`.
pub(super) fn parts(path: &str) -> impl Iterator<Item = &str> {
    path.split(',').map(str::trim).filter(|part| !part.is_empty())
}

/// The fields that a user names, as paths with dots; those that are not named are guessed, and those that are [`NO_FIELD`] are not read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldNames {
    /// Where the text is. Where this or `html` is named, the other is not guessed. `title,body` joins several fields, unless a field has this
    /// name as a whole; `messages[].content` joins the texts in a list.
    pub text: Option<String>,
    /// Where the HTML is.
    pub html: Option<String>,
    /// Where the id is.
    pub id: Option<String>,
    /// Where the URL is.
    pub url: Option<String>,
    /// Where the date is.
    pub date: Option<String>,
}

impl FieldNames {
    /// The path of a field that is named.
    #[must_use]
    pub fn path(&self, field: Field) -> Option<&str> {
        self.said(field).filter(|path| *path != NO_FIELD)
    }

    /// Whether a field is not to be read.
    #[must_use]
    pub fn is_off(&self, field: Field) -> bool {
        self.said(field) == Some(NO_FIELD)
    }

    /// What is said of a field.
    fn said(&self, field: Field) -> Option<&str> {
        match field {
            Field::Text => self.text.as_deref(),
            Field::Html => self.html.as_deref(),
            Field::Id => self.id.as_deref(),
            Field::Url => self.url.as_deref(),
            Field::Date => self.date.as_deref(),
            Field::Language | Field::Popularity | Field::RedirectTo | Field::Dead => None,
        }
    }

    /// Whether none is named.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The paths at which a field may be.
    pub(super) fn candidates(&self, field: Field) -> Vec<&str> {
        let is_content = matches!(field, Field::Text | Field::Html);
        let names_content = || self.path(Field::Text).is_some() || self.path(Field::Html).is_some();
        match self.path(field) {
            // A field may have a name with a comma.
            Some(path) if field == Field::Text && path.contains(',') => {
                std::iter::once(path).chain(parts(path)).collect()
            }
            Some(path) => vec![path],
            None if self.is_off(field) || is_content && names_content() => Vec::new(),
            None => field.candidates().to_vec(),
        }
    }
}

/// Why a field is taken to be where it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// The user names it, or the file is in Doppel's own form: a wrong value makes a bad record.
    Named,
    /// It is guessed from the first records: a value that is no date, language or popularity is ignored.
    Guessed,
    /// It is where Doppel's own form has it, and is read so where a record has nothing at the place that was guessed. A field that is named is read
    /// nowhere else.
    Fallback,
}

/// Of the fields that are named, one for which the first records have nothing.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Unmet {
    /// The field.
    pub field: Field,
    /// The path that was named.
    pub path: String,
    /// Whether a record has the path, with a null or nothing in it.
    pub is_there: bool,
}

/// Where each field of a file's records is.
#[derive(Debug, Clone)]
pub struct FieldMap {
    /// In the order of the fields; of one field, the first choice first.
    fields: Vec<(Field, String, Source)>,
    is_page_form: bool,
    /// What the user calls the text, where it is in several fields.
    joined: Option<String>,
    /// The guessed id, where a value repeats.
    repeated_id: Option<RepeatedId>,
    unmet: Vec<Unmet>,
    /// Paths that the first records have, in alphabetical order.
    seen: Vec<String>,
    /// Whether there was a first record.
    is_of_records: bool,
    /// Of a table whose row of names is a single cell, another separator that the cell has in it.
    other_separator: Option<char>,
}

impl FieldMap {
    /// Doppel's own form of a page, as in `POST /v1/pages`: a record has a URL and exactly one of text, HTML, redirect and
    /// death.
    #[must_use]
    pub fn page_form() -> Self {
        let field = |field: Field| Some((field, field.in_page_form()?.to_owned(), Source::Named));
        Self { is_page_form: true, ..Self::new(Field::ALL.into_iter().filter_map(field).collect()) }
    }

    /// Any other form.
    pub(super) fn new(fields: Vec<(Field, String, Source)>) -> Self {
        Self {
            fields,
            is_page_form: false,
            joined: None,
            repeated_id: None,
            unmet: Vec::new(),
            seen: Vec::new(),
            is_of_records: false,
            other_separator: None,
        }
    }

    /// The same with a text that is in several fields, and what the user calls it.
    pub(super) fn joining(self, joined: Option<String>) -> Self {
        Self { joined, ..self }
    }

    /// Whether a text is in several fields.
    pub(super) fn joins_text(&self) -> bool {
        self.joined.is_some()
    }

    /// The same without the guessed id, which is none.
    pub(super) fn without_id(mut self, repeated: Option<RepeatedId>) -> Self {
        self.fields.retain(|(field, ..)| *field != Field::Id);
        Self { repeated_id: repeated, ..self }
    }

    /// The guessed id, where a value repeats, so that it is none.
    #[must_use]
    pub fn repeated_id(&self) -> Option<&RepeatedId> {
        self.repeated_id.as_ref()
    }

    /// The same with what the first records have and do not have.
    pub(super) fn with_seen(self, unmet: Vec<Unmet>, seen: Vec<String>) -> Self {
        Self { unmet, seen, is_of_records: true, ..self }
    }

    /// Adds which other separator is in the single column name of a table.
    pub(crate) fn with_other_separator(self, other_separator: Option<char>) -> Self {
        Self { other_separator, ..self }
    }

    /// Which option to give if a table was read with the wrong separator: `pass --separator ';' ...`.
    #[must_use]
    pub fn separator_hint(&self) -> Option<String> {
        let other = match self.other_separator? {
            '\t' => "tab".to_owned(),
            other => format!("'{other}'"),
        };
        Some(format!("pass --separator {other} if that separates the cells"))
    }

    /// Whether the file has a record; where it has none, it says nothing of what fields there are.
    #[must_use]
    pub fn is_of_records(&self) -> bool {
        self.is_of_records
    }

    /// Of the fields that are named, those for which the first records have nothing.
    #[must_use]
    pub fn unmet(&self) -> &[Unmet] {
        &self.unmet
    }

    /// The paths that the first records have, those first that are spelt most like `path`.
    #[must_use]
    pub fn alike(&self, path: &str) -> Vec<&str> {
        let last = |path: &str| path.rsplit('.').next().unwrap_or_default().to_lowercase();
        let wanted = (path.to_lowercase(), last(path));
        let distance = |seen: &&str| {
            let whole = strsim::damerau_levenshtein(&wanted.0, &seen.to_lowercase());
            whole.min(1 + strsim::damerau_levenshtein(&wanted.1, &last(seen)))
        };
        let mut seen: Vec<&str> = self.seen.iter().map(String::as_str).collect();
        seen.sort_by_cached_key(distance);
        seen
    }

    /// Whether it is Doppel's own form of a page.
    #[must_use]
    pub fn is_page_form(&self) -> bool {
        self.is_page_form
    }

    /// The fields that are named or guessed, each with its path and why it is that.
    pub fn fields(&self) -> impl Iterator<Item = (Field, &str, Source)> {
        let mut joined = self.joined.as_deref();
        let fields = self.all().filter(|(.., source)| *source != Source::Fallback);
        fields.filter_map(move |(field, path, source)| match field {
            // Of a text that is in several fields they are told together.
            Field::Text if self.joins_text() => joined.take().map(|joined| (field, joined, source)),
            _ => Some((field, path, source)),
        })
    }

    /// The same with those that are read where a record has nothing there, behind the first choice.
    pub(super) fn all(&self) -> impl Iterator<Item = (Field, &str, Source)> {
        self.fields.iter().map(|(field, path, source)| (*field, path.as_str(), *source))
    }

    /// Whether the records of another file are read alike, as far as it is said.
    #[must_use]
    pub fn says_the_same(&self, other: &Self) -> bool {
        let repeated = |map: &Self| map.repeated_id.as_ref().map(|repeated| repeated.path.clone());
        self.is_page_form == other.is_page_form
            && self.fields().eq(other.fields())
            && repeated(self) == repeated(other)
    }

    /// The paths that are read, each as often as there are fields that are read there.
    #[must_use]
    pub fn paths(&self) -> Vec<String> {
        self.fields.iter().map(|(_, path, _)| path.clone()).collect()
    }

    /// Where a field that is named or guessed is.
    #[must_use]
    pub fn get(&self, field: Field) -> Option<(&str, Source)> {
        self.fields().find(|(of, ..)| *of == field).map(|(_, path, source)| (path, source))
    }
}

/// How many fields are told where none has a text.
const SEEN_TOLD: usize = 8;

/// In words: `text from content, URL from metadata.url`.
impl fmt::Display for FieldMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let has_content = self.fields().any(|(field, ..)| matches!(field, Field::Text | Field::Html));
        if !has_content && self.is_of_records {
            f.write_str("no text or HTML found; the first records have ")?;
            for (at, seen) in self.alike("text").into_iter().take(SEEN_TOLD).enumerate() {
                write!(f, "{}{seen}", if at > 0 { ", " } else { "" })?;
            }
            f.write_str(" (--text-field names one)")?;
            if let Some(hint) = self.separator_hint() {
                write!(f, "; {hint}")?;
            }
        }
        for (at, (field, path, source)) in self.fields().enumerate() {
            let separator = if at == 0 && (has_content || !self.is_of_records) { "" } else { ", " };
            let told = if source == Source::Named && !self.is_page_form { " as named" } else { "" };
            write!(f, "{separator}{field} from {path}{told}")?;
        }
        let name = if self.get(Field::Id).is_some() { "id" } else { "row" };
        match (self.get(Field::Url), &self.repeated_id) {
            (Some(_), None) => Ok(()),
            (Some(_), Some(repeated)) => {
                write!(f, "; {repeated}, so a record without a URL is named by its {name}")
            }
            (None, None) => write!(f, "; no URL, so a record is named by its {name}"),
            (None, Some(repeated)) => {
                write!(f, "; no URL, and {repeated}, so a record is named by its {name}")
            }
        }
    }
}
