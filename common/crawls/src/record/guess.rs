//! Guesses from a sample of a file's records at which path each field is.
//!
//! A [`Guess`] sees each sampled record once. For each field it counts the values at a few known paths, and
//! how many of these values the field can hold. The first path with suitable values in at least half of the
//! records wins, or else the path with the most suitable values. A file is in the page form if at least half
//! of the records have its fields and at least half can be read in it. A path that the user names is never
//! replaced by a guess.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use doppel_model::PageUrl;
use doppel_streams::Limits;

use super::date::date;
use super::field_map::{FieldMap, PathSource, Unmet};
use super::fields::{Field, FieldNames, joined_paths};
use super::row::{self, Row, Value};
use crate::InputOptions;

/// The maximum number of records in the sample, which are the first records of the file.
pub const SAMPLE_RECORDS: usize = 1_000;
/// The size in bytes after which the sample ends early. It has at least one record.
pub const SAMPLE_BYTES: usize = 32 << 20;

/// The names of all fields of the page form.
const PAGE_FORM_NAMES: [&str; 8] =
    ["url", "html", "text", "redirect_to", "dead", "fetched_at", "popularity", "language"];
/// The names that hardly any other form than the page form has.
const DISTINCTIVE_NAMES: [&str; 3] = ["redirect_to", "dead", "fetched_at"];

/// The maximum number of sampled paths in memory. Some writers use data as field names, so there can be any
/// number.
const SAMPLED_PATHS_MAX: usize = 1_000;

/// Collects evidence from the sampled records, and guesses the fields of the file.
#[derive(Debug)]
pub struct Guess {
    names: FieldNames,
    limits: Limits,
    candidates: Vec<Candidate>,
    /// The paths of the candidates, each once.
    paths: BTreeSet<String>,
    /// Paths of the fields of the sampled records, at most [`SAMPLED_PATHS_MAX`].
    sampled_paths: BTreeSet<String>,
    /// The paths that the user names and that no record has had so far.
    missing_paths: BTreeSet<String>,
    /// The number of sampled records.
    records: u64,
    /// The number of records whose fields look like those of the page form.
    like_page_form: u64,
    /// The number of records that can be read in the page form.
    pages: u64,
}

/// A path at which a field may be, with the evidence from the sampled records.
#[derive(Debug)]
struct Candidate {
    field: Field,
    path: String,
    /// The number of records with a value at the path.
    values: u64,
    /// The number of these values that the field can hold.
    suitable: u64,
}

impl Guess {
    /// Creates a guess without any evidence.
    pub fn new(options: &InputOptions) -> Self {
        let InputOptions { limits, ref fields, .. } = *options;
        let candidates = |field| {
            let candidate =
                move |path: &str| Candidate { field, path: path.to_owned(), values: 0, suitable: 0 };
            fields.candidates(field).into_iter().map(candidate).collect::<Vec<_>>()
        };
        let candidates: Vec<_> = Field::ALL.into_iter().flat_map(candidates).collect();
        let mut paths: BTreeSet<_> = candidates.iter().map(|candidate| candidate.path.clone()).collect();
        // A record can only be in the page form if it has a URL.
        paths.insert("url".to_owned());
        let is_named = |candidate: &&Candidate| fields.path(candidate.field).is_some();
        let named = candidates.iter().filter(is_named).map(|candidate| candidate.path.clone());
        Self {
            missing_paths: named.collect::<BTreeSet<_>>(),
            names: fields.clone(),
            limits,
            candidates,
            paths,
            sampled_paths: BTreeSet::new(),
            records: 0,
            like_page_form: 0,
            pages: 0,
        }
    }

    /// The paths whose values a sampled row needs to have, each once.
    pub fn paths(&self) -> Vec<String> {
        self.paths.iter().cloned().collect()
    }

    /// Takes the evidence of a sampled record. `is_page` tries to read the record in the page form.
    pub fn note<'a>(&mut self, row: &mut impl Row<'a>, is_page: impl FnOnce() -> bool) {
        let (mut has_page_form_names, mut has_distinctive_name) = (true, false);
        row.names(&mut |name| {
            has_page_form_names &= PAGE_FORM_NAMES.contains(&name);
            has_distinctive_name |= DISTINCTIVE_NAMES.contains(&name);
            self.missing_paths.remove(name);
            if self.sampled_paths.len() < SAMPLED_PATHS_MAX && !self.sampled_paths.contains(name) {
                self.sampled_paths.insert(name.to_owned());
            }
        });
        self.records += 1;
        if has_page_form_names || has_distinctive_name {
            self.like_page_form += 1;
        }
        // If the user names a field, the file is not read in the page form.
        self.pages += u64::from(self.names.is_empty() && is_page());
        for path in &self.paths {
            let of_path = |candidate: &&mut Candidate| candidate.path == *path;
            let mut candidates = self.candidates.iter_mut().filter(of_path).peekable();
            let Some(field) = candidates.peek().map(|candidate| candidate.field) else { continue };
            let value = row.take(path).map(|value| row::typed(row, field, value));
            let Some(value) = value.filter(|value| !value.is_empty()) else { continue };
            for candidate in candidates {
                candidate.values += 1;
                candidate.suitable += u64::from(candidate.field.can_hold(&value, &self.limits));
            }
        }
    }

    /// Makes the map of the fields from all evidence.
    pub fn finish(self) -> FieldMap {
        let map = if self.names.is_empty() && self.is_page_form() {
            FieldMap::page_form()
        } else {
            FieldMap::new(self.all_fields()).with_joined_text(self.joined().map(str::to_owned))
        };
        if self.records == 0 {
            return map;
        }
        let unmet = self.unmet();
        map.with_sample(unmet, self.sampled_paths.into_iter().collect())
    }

    /// The paths of all fields, as [`FieldMap::new`] takes them.
    fn all_fields(&self) -> Vec<(Field, String, PathSource)> {
        let mut fields: Vec<_> = Field::ALL.into_iter().flat_map(|field| self.paths_of(field)).collect();
        let is_content = |(field, _, source): &(Field, String, PathSource)| {
            matches!(field, Field::Text | Field::Html) && *source != PathSource::Fallback
        };
        if !fields.iter().any(is_content) && !self.names.is_off(Field::Text) {
            // Later records may have a text although the sampled ones have none.
            fields.retain(|(field, ..)| *field != Field::Text);
            fields.insert(0, (Field::Text, "text".to_owned(), PathSource::Fallback));
        }
        fields
    }

    /// The paths of one field, in order of preference.
    fn paths_of(&self, field: Field) -> Vec<(Field, String, PathSource)> {
        if let Some(joined) = self.joined().filter(|_| field == Field::Text) {
            return joined_paths(joined).map(|part| (field, part.to_owned(), PathSource::Named)).collect();
        }
        if let Some(path) = self.names.path(field) {
            return vec![(field, path.to_owned(), PathSource::Named)];
        }
        let candidates = || self.candidates.iter().filter(|candidate| candidate.field == field);
        let possible = || candidates().filter(|candidate| candidate.is_possible());
        let common = possible().find(|candidate| candidate.suitable * 2 >= self.records);
        // Of several candidates with equally many suitable values, `min_by_key` takes the first.
        let found = common.or_else(|| possible().min_by_key(|candidate| Reverse(candidate.suitable)));
        let in_page_form = field.in_page_form();
        let is_fallback = |candidate: &&Candidate| {
            Some(candidate.path.as_str()) == in_page_form
                && candidate.is_not_refuted()
                && found.is_none_or(|found| found.path != candidate.path)
        };
        let found = found.map(|found| (field, found.path.clone(), PathSource::Guessed));
        let fallback = candidates().find(is_fallback);
        found
            .into_iter()
            .chain(fallback.map(|fallback| (field, fallback.path.clone(), PathSource::Fallback)))
            .collect()
    }

    /// The path that the user gives for the text, if it names several fields and no record has a field of
    /// this whole name.
    fn joined(&self) -> Option<&str> {
        let path = self.names.path(Field::Text)?;
        (self.missing_paths.contains(path) && joined_paths(path).nth(1).is_some()).then_some(path)
    }

    /// The fields that the user names, but for which no sampled record has a value.
    fn unmet(&self) -> Vec<Unmet> {
        let text = self.names.path(Field::Text);
        // If the text is joined, the paths of its parts are read. Otherwise only the whole path is read.
        let is_read = |candidate: &Candidate| match (candidate.field, self.joined()) {
            (Field::Text, None) => text == Some(&candidate.path),
            (Field::Text, Some(joined)) => candidate.path != joined,
            _ => self.names.path(candidate.field).is_some(),
        };
        let is_unmet = |candidate: &&Candidate| candidate.values == 0 && is_read(candidate);
        let unmet = |candidate: &Candidate| Unmet {
            field: candidate.field,
            path: candidate.path.clone(),
            is_there: !self.missing_paths.contains(&candidate.path),
        };
        self.candidates.iter().filter(is_unmet).map(unmet).collect()
    }

    /// Whether the file is in the page form: at least half of the records have its fields, and at least half
    /// can be read in it. A few records with other fields therefore do not change the form of the file. If
    /// most dates are in another form, the file is not read in the page form, where each of them would make a
    /// bad record.
    fn is_page_form(&self) -> bool {
        self.like_page_form * 2 >= self.records && self.pages * 2 >= self.records
    }
}

impl Candidate {
    /// Whether the sampled records show that the field may be at this path.
    fn is_possible(&self) -> bool {
        self.suitable > 0 && self.is_not_refuted()
    }

    /// Like [`is_possible`](Self::is_possible), but a path without any value in the sample may be possible,
    /// too.
    fn is_not_refuted(&self) -> bool {
        match self.field {
            Field::Url if !self.is_name_of_urls() => self.suitable > 0 && self.suitable == self.values,
            Field::Url | Field::Date => self.suitable * 2 >= self.values,
            _ => self.suitable > 0 || self.values == 0,
        }
    }

    /// Whether the name of the path says that its values are URLs, so that a few other values do not refute
    /// it. A field named `source` can hold anything.
    fn is_name_of_urls(&self) -> bool {
        self.path != "source"
    }
}

impl Field {
    /// Whether the field can hold a value.
    fn can_hold(self, value: &Value<'_>, limits: &Limits) -> bool {
        match (self, value) {
            (Self::Text | Self::Html, value) => {
                matches!(value, Value::Text(_) | Value::Broken(_) | Value::Bytes(_))
            }
            (Self::Id, value) => matches!(value, Value::Text(_) | Value::Whole(_)),
            (Self::Url, Value::Text(url)) => is_web(url) && PageUrl::parse(url).is_ok(),
            (Self::Date, value) => date(value).is_some_and(|date| limits.check_date(date).is_ok()),
            (Self::Language | Self::RedirectTo, Value::Text(_)) => true,
            (Self::Popularity, value) => matches!(value, Value::Whole(_) | Value::Float(_)),
            (Self::Dead, Value::Bool(_)) => true,
            _ => false,
        }
    }
}

/// Whether a URL begins with `http://` or `https://`.
fn is_web(url: &str) -> bool {
    let begins =
        |scheme: &str| url.get(..scheme.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(scheme));
    begins("http://") || begins("https://")
}
