//! The fields that Doppel reads of a record. [`FieldNames`] has the paths that the user gives for them.
//! [`FieldMap`](super::FieldMap) has the paths of each field in a file.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

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
