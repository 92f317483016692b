//! The paths of the fields in the records of a file, which the user names or the reader guesses.
//!
//! A [`FieldMap`] is complete before the first record of a file becomes a page. Its text form is the message
//! that shows the user how a file is read.

use std::fmt;

use serde::Serialize;

use super::fields::Field;
use super::naming::RepeatedId;

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

/// A path at which a field is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MappedField<'m> {
    /// The field that is read.
    pub field: Field,
    /// The path in the record.
    pub path: &'m str,
    /// The reason why the field is read at this path.
    pub source: PathSource,
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
    pub fn fields(&self) -> impl Iterator<Item = MappedField<'_>> {
        let mut joined = self.joined.as_deref();
        let fields = self.all().filter(|at| at.source != PathSource::Fallback);
        fields.filter_map(move |at| match at.field {
            Field::Text if self.joins_text() => {
                joined.take().map(|joined| MappedField { path: joined, ..at })
            }
            _ => Some(at),
        })
    }

    /// All paths, fallbacks included, in the order of [`paths`](Self::paths).
    pub(super) fn all(&self) -> impl Iterator<Item = MappedField<'_>> {
        self.fields.iter().map(|(field, path, source)| MappedField { field: *field, path, source: *source })
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
        self.fields().find(|at| at.field == field).map(|at| (at.path, at.source))
    }
}

/// How many paths the message lists at most if no field has a text.
const SHOWN_PATHS_MAX: usize = 8;

/// Writes the map in words, such as `text from content, URL from metadata.url`.
impl fmt::Display for FieldMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let has_content = self.fields().any(|at| matches!(at.field, Field::Text | Field::Html));
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
        for (at, MappedField { field, path, source }) in self.fields().enumerate() {
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
