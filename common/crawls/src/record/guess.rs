//! Guesses from the first records of a file which field holds what.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use doppel_model::PageUrl;

use super::date::date;
use super::fields::{Field, FieldMap, FieldNames, Source, Unmet, parts};
use super::row::{self, Row, Value};
use crate::InputOptions;
use crate::limits::Limits;

/// How many records are looked at, at the beginning of a file ...
pub const SAMPLE_RECORDS: usize = 1_000;
/// ... unless they have more bytes than this. One is looked at in any case.
pub const SAMPLE_BYTES: usize = 32 << 20;

/// The eight fields of Doppel's own form.
const OWN: [&str; 8] = ["url", "html", "text", "redirect_to", "dead", "fetched_at", "popularity", "language"];
/// Those of them that hardly any other form has.
const TELLING: [&str; 3] = ["redirect_to", "dead", "fetched_at"];

/// How many paths of fields are remembered. Where names are data there is no end of them.
const SEEN_MAX: usize = 1_000;

/// What the first records of a file say about its fields.
#[derive(Debug)]
pub struct Guess {
    names: FieldNames,
    limits: Limits,
    candidates: Vec<Candidate>,
    /// Their paths, each once.
    paths: BTreeSet<String>,
    /// The paths of fields, at most [`SEEN_MAX`].
    seen: BTreeSet<String>,
    /// The paths that are named and that no record has so far.
    unseen: BTreeSet<String>,
    /// How many records were looked at, how many of these have the fields of Doppel's own form, and how many can be read in it.
    records: u64,
    own: u64,
    pages: u64,
}

#[derive(Debug)]
struct Candidate {
    field: Field,
    path: String,
    /// How many records have a value there, and how many of these can be what is looked for.
    values: u64,
    fitting: u64,
}

impl Guess {
    /// Before the first record.
    pub fn new(options: &InputOptions) -> Self {
        let InputOptions { limits, ref fields, .. } = *options;
        let candidates = |field| {
            let candidate =
                move |path: &str| Candidate { field, path: path.to_owned(), values: 0, fitting: 0 };
            fields.candidates(field).into_iter().map(candidate).collect::<Vec<_>>()
        };
        let candidates: Vec<_> = Field::ALL.into_iter().flat_map(candidates).collect();
        let mut paths: BTreeSet<_> = candidates.iter().map(|candidate| candidate.path.clone()).collect();
        // Whether a record is a page of Doppel's own form rests on its URL in any case.
        paths.insert("url".to_owned());
        let is_named = |candidate: &&Candidate| fields.path(candidate.field).is_some();
        let unseen = candidates.iter().filter(is_named).map(|candidate| candidate.path.clone());
        Self {
            unseen: unseen.collect::<BTreeSet<_>>(),
            names: fields.clone(),
            limits,
            candidates,
            paths,
            seen: BTreeSet::new(),
            records: 0,
            own: 0,
            pages: 0,
        }
    }

    /// The paths that are looked at, each once.
    pub fn paths(&self) -> Vec<String> {
        self.paths.iter().cloned().collect()
    }

    /// Takes note of a record. `is_page` tries to read it in Doppel's own form.
    pub fn note<'a>(&mut self, row: &mut impl Row<'a>, is_page: impl FnOnce() -> bool) {
        let (mut is_own, mut is_telling) = (true, false);
        row.names(&mut |name| {
            is_own &= OWN.contains(&name);
            is_telling |= TELLING.contains(&name);
            self.unseen.remove(name);
            if self.seen.len() < SEEN_MAX && !self.seen.contains(name) {
                self.seen.insert(name.to_owned());
            }
        });
        self.records += 1;
        if is_own || is_telling {
            self.own += 1;
        }
        // Where a field is named, the file is read by that.
        self.pages += u64::from(self.names.is_empty() && is_page());
        for path in &self.paths {
            let of_path = |candidate: &&mut Candidate| candidate.path == *path;
            let mut candidates = self.candidates.iter_mut().filter(of_path).peekable();
            let Some(field) = candidates.peek().map(|candidate| candidate.field) else { continue };
            let value = row.take(path).map(|value| row::typed(row, field, value));
            let Some(value) = value.filter(|value| !value.is_empty()) else { continue };
            for candidate in candidates {
                candidate.values += 1;
                candidate.fitting += u64::from(candidate.field.fits(&value, &self.limits));
            }
        }
    }

    /// Where the fields are.
    pub fn finish(self) -> FieldMap {
        let map = if self.names.is_empty() && self.is_page_form() {
            FieldMap::page_form()
        } else {
            FieldMap::new(self.all_places()).joining(self.joined().map(str::to_owned))
        };
        if self.records == 0 {
            return map;
        }
        let unmet = self.unmet();
        map.with_seen(unmet, self.seen.into_iter().collect())
    }

    fn all_places(&self) -> Vec<(Field, String, Source)> {
        let mut places: Vec<_> = Field::ALL.into_iter().flat_map(|field| self.places(field)).collect();
        let is_content = |(field, _, source): &(Field, String, Source)| {
            matches!(field, Field::Text | Field::Html) && *source != Source::Fallback
        };
        if !places.iter().any(is_content) && !self.names.is_off(Field::Text) {
            // Where the first records have no text, later ones may.
            places.retain(|(field, ..)| *field != Field::Text);
            places.insert(0, (Field::Text, "text".to_owned(), Source::Fallback));
        }
        places
    }

    /// Where a field is, the first choice first.
    fn places(&self, field: Field) -> Vec<(Field, String, Source)> {
        if let Some(joined) = self.joined().filter(|_| field == Field::Text) {
            return parts(joined).map(|part| (field, part.to_owned(), Source::Named)).collect();
        }
        if let Some(path) = self.names.path(field) {
            return vec![(field, path.to_owned(), Source::Named)];
        }
        let candidates = || self.candidates.iter().filter(|candidate| candidate.field == field);
        let possible = || candidates().filter(|candidate| candidate.is_possible());
        let common = possible().find(|candidate| candidate.fitting * 2 >= self.records);
        // Of several that are as rare, the first.
        let found = common.or_else(|| possible().min_by_key(|candidate| Reverse(candidate.fitting)));
        let own = field.in_page_form();
        let is_fallback = |candidate: &&Candidate| {
            Some(candidate.path.as_str()) == own
                && candidate.may_be_possible()
                && found.is_none_or(|found| found.path != candidate.path)
        };
        let found = found.map(|found| (field, found.path.clone(), Source::Guessed));
        let fallback = candidates().find(is_fallback);
        found
            .into_iter()
            .chain(fallback.map(|fallback| (field, fallback.path.clone(), Source::Fallback)))
            .collect()
    }

    /// What the user calls the text, if it is in several fields and no field has this name as a whole.
    fn joined(&self) -> Option<&str> {
        let path = self.names.path(Field::Text)?;
        (self.unseen.contains(path) && parts(path).nth(1).is_some()).then_some(path)
    }

    /// Of the fields that are named, those for which no record has a value.
    fn unmet(&self) -> Vec<Unmet> {
        let text = self.names.path(Field::Text);
        // Of a text with commas the whole name counts, or else its parts.
        let is_read = |candidate: &Candidate| match (candidate.field, self.joined()) {
            (Field::Text, None) => text == Some(&candidate.path),
            (Field::Text, Some(joined)) => candidate.path != joined,
            _ => self.names.path(candidate.field).is_some(),
        };
        let is_unmet = |candidate: &&Candidate| candidate.values == 0 && is_read(candidate);
        let unmet = |candidate: &Candidate| Unmet {
            field: candidate.field,
            path: candidate.path.clone(),
            is_there: !self.unseen.contains(&candidate.path),
        };
        self.candidates.iter().filter(is_unmet).map(unmet).collect()
    }

    /// Whether the file is in Doppel's own form: at least half of its records have the fields of that, and at least half can be read in it. So
    /// a few records with other fields do not change what the file is, nor does a date in another form make all of them bad.
    fn is_page_form(&self) -> bool {
        self.own * 2 >= self.records && self.pages * 2 >= self.records
    }
}

impl Candidate {
    /// Whether the field may be here.
    fn is_possible(&self) -> bool {
        self.fitting > 0 && self.may_be_possible()
    }

    /// The same where it may have no value in the first records.
    fn may_be_possible(&self) -> bool {
        match self.field {
            Field::Url if !self.names_itself() => self.fitting > 0 && self.fitting == self.values,
            Field::Url | Field::Date => self.fitting * 2 >= self.values,
            _ => self.fitting > 0 || self.values == 0,
        }
    }

    /// Whether its name says that it has URLs, so that it does although some values are none. A source may be anything.
    fn names_itself(&self) -> bool {
        self.path != "source"
    }
}

impl Field {
    /// Whether a value can be what the field holds.
    fn fits(self, value: &Value<'_>, limits: &Limits) -> bool {
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

fn is_web(url: &str) -> bool {
    let begins =
        |scheme: &str| url.get(..scheme.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(scheme));
    begins("http://") || begins("https://")
}
