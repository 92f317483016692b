//! Guesses from the first records of a file which field holds what.

use std::collections::BTreeSet;

use doppel_model::PageUrl;

use super::date::date;
use super::fields::{Field, FieldMap, FieldNames, Source};
use super::row::{Row, Value};
use crate::limits::Limits;

/// How many records are looked at, at the beginning of a file ...
pub const SAMPLE_RECORDS: usize = 1_000;
/// ... unless they have more bytes than this. One is looked at in any case.
pub const SAMPLE_BYTES: usize = 32 << 20;

/// The eight fields of Doppel's own form.
const OWN: [&str; 8] = ["url", "html", "text", "redirect_to", "dead", "fetched_at", "popularity", "language"];
/// Those of them that hardly any other form has.
const TELLING: [&str; 3] = ["redirect_to", "dead", "fetched_at"];

/// What the first records of a file say about its fields.
#[derive(Debug)]
pub struct Guess {
    names: FieldNames,
    limits: Limits,
    candidates: Vec<Candidate>,
    /// Their paths, each once.
    paths: BTreeSet<String>,
    /// The names of all outermost fields.
    seen: BTreeSet<String>,
    /// Records with text or HTML, and those with both.
    with_content: u64,
    with_both: u64,
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
    pub fn new(names: &FieldNames, limits: Limits) -> Self {
        let candidates = |field| {
            let candidate =
                move |path: &str| Candidate { field, path: path.to_owned(), values: 0, fitting: 0 };
            names.candidates(field).into_iter().map(candidate).collect::<Vec<_>>()
        };
        let candidates: Vec<_> = Field::ALL.into_iter().flat_map(candidates).collect();
        let paths = candidates.iter().map(|candidate| candidate.path.clone()).collect();
        Self {
            names: names.clone(),
            limits,
            candidates,
            paths,
            seen: BTreeSet::new(),
            with_content: 0,
            with_both: 0,
        }
    }

    /// The paths that are looked at, each once.
    pub fn paths(&self) -> Vec<String> {
        self.paths.iter().cloned().collect()
    }

    /// Takes note of a record.
    pub fn note<'a>(&mut self, row: &mut impl Row<'a>) {
        row.names(&mut |name| {
            if !self.seen.contains(name) {
                self.seen.insert(name.to_owned());
            }
        });
        let (mut has_text, mut has_html) = (false, false);
        for path in &self.paths {
            let Some(value) = row.take(path).filter(|value| !value.is_empty()) else { continue };
            for candidate in self.candidates.iter_mut().filter(|candidate| candidate.path == *path) {
                candidate.values += 1;
                candidate.fitting += u64::from(fits(candidate.field, &value, &self.limits));
                has_text |= candidate.field == Field::Text;
                has_html |= candidate.field == Field::Html;
            }
        }
        self.with_content += u64::from(has_text || has_html);
        self.with_both += u64::from(has_text && has_html);
    }

    /// Where the fields are.
    pub fn finish(self) -> FieldMap {
        if self.names.is_empty() && self.is_page_form() {
            return FieldMap::page_form();
        }
        let mut fields = Vec::new();
        for field in Field::ALL {
            if let Some(path) = self.names.path(field) {
                fields.push((field, path.to_owned(), Source::Named));
                continue;
            }
            let mut candidates = self.candidates.iter().filter(|candidate| candidate.field == field);
            if let Some(found) = candidates.find(|candidate| candidate.is_it()) {
                fields.push((field, found.path.clone(), Source::Guessed));
            }
        }
        if !fields.iter().any(|(field, ..)| matches!(field, Field::Text | Field::Html)) {
            // Where the first records have no text, later ones may.
            fields.insert(0, (Field::Text, "text".to_owned(), Source::Guessed));
        }
        FieldMap::new(fields)
    }

    /// Whether the file is in Doppel's own form: its fields are those, or it has a URL and content beside a field that tells. It is not
    /// where most records have text and HTML, which no page has.
    fn is_page_form(&self) -> bool {
        if self.seen.is_empty() {
            return true;
        }
        let has = |name: &str| self.seen.contains(name);
        let is_telling =
            TELLING.into_iter().any(has) && ["html", "text", "redirect_to", "dead"].into_iter().any(has);
        let is_own = self.seen.iter().all(|name| OWN.contains(&name.as_str()));
        has("url") && (is_own || is_telling) && self.with_both * 2 <= self.with_content
    }
}

impl Candidate {
    /// Whether the field is taken to be here.
    fn is_it(&self) -> bool {
        match self.field {
            Field::Url => self.values > 0 && self.fitting == self.values,
            Field::Date => self.fitting > 0 && self.fitting * 2 >= self.values,
            _ => self.fitting > 0,
        }
    }
}

/// Whether a value can be what a field holds.
fn fits(field: Field, value: &Value<'_>, limits: &Limits) -> bool {
    match (field, value) {
        (Field::Text | Field::Html, value) => matches!(value, Value::Text(_) | Value::Bytes(_)),
        (Field::Id, value) => matches!(value, Value::Text(_) | Value::Whole(_)),
        (Field::Url, Value::Text(url)) => is_web(url) && PageUrl::parse(url).is_ok(),
        (Field::Date, value) => date(value).is_some_and(|date| limits.check_date(date).is_ok()),
        (Field::Language | Field::RedirectTo, Value::Text(_)) => true,
        (Field::Popularity, value) => matches!(value, Value::Whole(_) | Value::Float(_)),
        (Field::Dead, Value::Bool(_)) => true,
        _ => false,
    }
}

fn is_web(url: &str) -> bool {
    let begins =
        |scheme: &str| url.get(..scheme.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(scheme));
    begins("http://") || begins("https://")
}
