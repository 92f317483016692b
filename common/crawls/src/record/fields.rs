//! The fields that Doppel reads of a record. [`FieldNames`] has the paths that the user gives for them.
//! [`FieldMap`] has the paths of each field in a file, and the reason for each path ([`PathSource`]).

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::naming::RepeatedId;

/// A field that Doppel reads of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Field {
    /// The content as plain text or Markdown.
    Text,
    /// The content as an HTML document. It is read if the record has no text.
    Html,
    /// The id, which names the record in its file.
    Id,
    /// The URL of the page.
    Url,
    /// The date on which the page was fetched.
    Date,
    /// The language tag of the page.
    Language,
    /// Any measure of popularity.
    Popularity,
    /// The URL to which the URL of the page redirects.
    RedirectTo,
    /// Whether the page is gone.
    Dead,
}

impl Field {
    /// All fields, in the order of their declaration.
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

    /// The paths at which the field is looked for if the user does not name it, in order of preference.
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

    /// The name of the field in the page form. `None` for the id, which the page form does not have.
    pub(super) fn in_page_form(self) -> Option<&'static str> {
        match self {
            Self::Id => None,
            Self::Url => Some("url"),
            Self::Date => Some("fetched_at"),
            other => other.candidates().first().copied(),
        }
    }

    /// The command-line option that names the field. `None` if the field is always guessed.
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

/// For each field, how many unusable values were ignored because the field is guessed.
pub type Ignored = BTreeMap<Field, u64>;

/// The word that a user gives instead of a path to switch a field off.
pub const NO_FIELD: &str = "none";

/// Splits the path of a text in several fields, such as `title,body`, into the paths of the fields.
pub(super) fn joined_paths(path: &str) -> impl Iterator<Item = &str> {
    path.split(',').map(str::trim).filter(|part| !part.is_empty())
}

/// The fields that a user names, as paths with dots. Fields without a name are guessed, and fields that are
/// [`NO_FIELD`] are not read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldNames {
    /// The path of the text. If the user names the text or the HTML, the other one is not guessed.
    /// `title,body` joins two fields, unless a field has this whole name. `messages[].content` joins a list.
    pub text: Option<String>,
    /// The path of the HTML document.
    pub html: Option<String>,
    /// The path of the id.
    pub id: Option<String>,
    /// The path of the URL.
    pub url: Option<String>,
    /// The path of the date.
    pub date: Option<String>,
}

impl FieldNames {
    /// The path that the user gives for a field. `None` if the field is guessed or switched off.
    #[must_use]
    pub fn path(&self, field: Field) -> Option<&str> {
        self.setting(field).filter(|path| *path != NO_FIELD)
    }

    /// Whether the user switches a field off.
    #[must_use]
    pub fn is_off(&self, field: Field) -> bool {
        self.setting(field) == Some(NO_FIELD)
    }

    /// The user's setting for a field: a path or [`NO_FIELD`].
    fn setting(&self, field: Field) -> Option<&str> {
        match field {
            Field::Text => self.text.as_deref(),
            Field::Html => self.html.as_deref(),
            Field::Id => self.id.as_deref(),
            Field::Url => self.url.as_deref(),
            Field::Date => self.date.as_deref(),
            Field::Language | Field::Popularity | Field::RedirectTo | Field::Dead => None,
        }
    }

    /// Whether the user sets no field.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The paths at which a field may be, in order of preference.
    pub(super) fn candidates(&self, field: Field) -> Vec<&str> {
        let is_content = matches!(field, Field::Text | Field::Html);
        let names_content = || self.path(Field::Text).is_some() || self.path(Field::Html).is_some();
        match self.path(field) {
            // The comma may separate several fields, or belong to the name of one field.
            Some(path) if field == Field::Text && path.contains(',') => {
                std::iter::once(path).chain(joined_paths(path)).collect()
            }
            Some(path) => vec![path],
            None if self.is_off(field) || is_content && names_content() => Vec::new(),
            None => field.candidates().to_vec(),
        }
    }
}

/// The reason why a field is read at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PathSource {
    /// The user names the path, or the file is in the page form. A wrong value makes a bad record.
    Named,
    /// The path is guessed from the sample. A value that is not a date, language or popularity is ignored.
    Guessed,
    /// The page form has the field at this path. It is read if a record has nothing at the guessed path.
    /// A field that the user names has no fallback.
    Fallback,
}

/// A field that the user names, but for which no sampled record has a value.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Unmet {
    /// The field that the user names.
    pub field: Field,
    /// The path that the user gives.
    pub path: String,
    /// Whether a sampled record has the path, with a null or an empty value.
    pub is_there: bool,
}

/// The paths at which the fields of a file's records are read.
#[derive(Debug, Clone)]
pub struct FieldMap {
    /// In the order of the fields. The paths of one field are in order of preference.
    fields: Vec<(Field, String, PathSource)>,
    is_page_form: bool,
    /// The path that the user gives for a text that is spread over several fields.
    joined: Option<String>,
    /// The guessed id, if a value of it repeats.
    repeated_id: Option<RepeatedId>,
    unmet: Vec<Unmet>,
    /// Paths of the sampled records, in alphabetical order.
    sampled_paths: Vec<String>,
    /// Whether the sample has a record.
    is_of_records: bool,
    /// Another separator that occurs in the only column name of a table.
    other_separator: Option<char>,
}

impl FieldMap {
    /// The map of the page form: a record has a URL and exactly one of text, HTML, redirect and death.
    #[must_use]
    pub fn page_form() -> Self {
        let field = |field: Field| Some((field, field.in_page_form()?.to_owned(), PathSource::Named));
        Self { is_page_form: true, ..Self::new(Field::ALL.into_iter().filter_map(field).collect()) }
    }

    /// The map of a file in any other form.
    pub(super) fn new(fields: Vec<(Field, String, PathSource)>) -> Self {
        Self {
            fields,
            is_page_form: false,
            joined: None,
            repeated_id: None,
            unmet: Vec::new(),
            sampled_paths: Vec::new(),
            is_of_records: false,
            other_separator: None,
        }
    }

    /// Sets the path that the user gives for a text that is spread over several fields.
    pub(super) fn with_joined_text(self, joined: Option<String>) -> Self {
        Self { joined, ..self }
    }

    /// Whether the text is spread over several fields.
    pub(super) fn joins_text(&self) -> bool {
        self.joined.is_some()
    }

    /// Removes the guessed id. `repeated` says which value repeats, if that is why.
    pub(super) fn without_id(mut self, repeated: Option<RepeatedId>) -> Self {
        self.fields.retain(|(field, ..)| *field != Field::Id);
        Self { repeated_id: repeated, ..self }
    }

    /// The guessed id that was removed because a value repeats.
    #[must_use]
    pub fn repeated_id(&self) -> Option<&RepeatedId> {
        self.repeated_id.as_ref()
    }

    /// Sets the result of the sample: the named fields without a value, and the paths of the records.
    pub(super) fn with_sample(self, unmet: Vec<Unmet>, sampled_paths: Vec<String>) -> Self {
        Self { unmet, sampled_paths, is_of_records: true, ..self }
    }

    /// Sets another separator that occurs in the only column name of a table.
    pub(crate) fn with_other_separator(self, other_separator: Option<char>) -> Self {
        Self { other_separator, ..self }
    }

    /// Advises to pass another separator. `None` if the table was probably read with the right separator.
    #[must_use]
    pub fn separator_hint(&self) -> Option<String> {
        let other = match self.other_separator? {
            '\t' => "tab".to_owned(),
            other => format!("'{other}'"),
        };
        Some(format!("pass --separator {other} if that separates the cells"))
    }

    /// Whether the sample had a record. Without a record, the map says nothing about the fields of the file.
    #[must_use]
    pub fn is_of_records(&self) -> bool {
        self.is_of_records
    }

    /// The fields that the user names, but for which no sampled record has a value.
    #[must_use]
    pub fn unmet(&self) -> &[Unmet] {
        &self.unmet
    }

    /// The paths of the sampled records, those whose spelling is most similar to `path` first.
    #[must_use]
    pub fn alike(&self, path: &str) -> Vec<&str> {
        let last = |path: &str| path.rsplit('.').next().unwrap_or_default().to_lowercase();
        let (wanted, wanted_last) = (path.to_lowercase(), last(path));
        let distance = |sampled: &&str| {
            let whole = strsim::damerau_levenshtein(&wanted, &sampled.to_lowercase());
            whole.min(1 + strsim::damerau_levenshtein(&wanted_last, &last(sampled)))
        };
        let mut sampled: Vec<&str> = self.sampled_paths.iter().map(String::as_str).collect();
        sampled.sort_by_cached_key(distance);
        sampled
    }

    /// Whether the file is in the page form.
    #[must_use]
    pub fn is_page_form(&self) -> bool {
        self.is_page_form
    }

    /// The named and guessed fields, without fallbacks. A text in several fields appears once, as a whole.
    pub fn fields(&self) -> impl Iterator<Item = (Field, &str, PathSource)> {
        let mut joined = self.joined.as_deref();
        let fields = self.all().filter(|(.., source)| *source != PathSource::Fallback);
        fields.filter_map(move |(field, path, source)| match field {
            Field::Text if self.joins_text() => joined.take().map(|joined| (field, joined, source)),
            _ => Some((field, path, source)),
        })
    }

    /// All paths, fallbacks included, in the order of [`paths`](Self::paths).
    pub(super) fn all(&self) -> impl Iterator<Item = (Field, &str, PathSource)> {
        self.fields.iter().map(|(field, path, source)| (*field, path.as_str(), *source))
    }

    /// Whether the `other` map has the same fields, sources and repeated id, so that its message is the same.
    #[must_use]
    pub fn says_the_same(&self, other: &Self) -> bool {
        let repeated = |map: &Self| map.repeated_id.as_ref().map(|repeated| repeated.path.clone());
        self.is_page_form == other.is_page_form
            && self.fields().eq(other.fields())
            && repeated(self) == repeated(other)
    }

    /// The paths at which fields are read. A path occurs once for each field that is read there.
    #[must_use]
    pub fn paths(&self) -> Vec<String> {
        self.fields.iter().map(|(_, path, _)| path.clone()).collect()
    }

    /// The path of a field and the source of the path, if the field is named or guessed.
    #[must_use]
    pub fn get(&self, field: Field) -> Option<(&str, PathSource)> {
        self.fields().find(|(of, ..)| *of == field).map(|(_, path, source)| (path, source))
    }
}

/// How many paths the message lists at most if no field has a text.
const SHOWN_PATHS_MAX: usize = 8;

/// Writes the map in words, such as `text from content, URL from metadata.url`.
impl fmt::Display for FieldMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let has_content = self.fields().any(|(field, ..)| matches!(field, Field::Text | Field::Html));
        if !has_content && self.is_of_records {
            f.write_str("no text or HTML found; the first records have ")?;
            for (at, path) in self.alike("text").into_iter().take(SHOWN_PATHS_MAX).enumerate() {
                write!(f, "{}{path}", if at > 0 { ", " } else { "" })?;
            }
            f.write_str(" (--text-field names one)")?;
            if let Some(hint) = self.separator_hint() {
                write!(f, "; {hint}")?;
            }
        }
        for (at, (field, path, source)) in self.fields().enumerate() {
            let separator = if at == 0 && (has_content || !self.is_of_records) { "" } else { ", " };
            let suffix = if source == PathSource::Named && !self.is_page_form { " as named" } else { "" };
            write!(f, "{separator}{field} from {path}{suffix}")?;
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
