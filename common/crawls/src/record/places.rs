//! Takes the values of fields from records.

use super::fields::{Field, FieldMap, Source};
use super::row::{self, Row, Value};
use crate::charset;

/// Where the fields of a file's records are, so that none has to be looked for in each record.
#[derive(Debug)]
pub(super) struct Places {
    of_fields: [Vec<Place>; Field::ALL.len()],
    joins_text: bool,
}

/// A path that a field may be at.
#[derive(Debug)]
struct Place {
    /// Its number in [`FieldMap::paths`].
    number: usize,
    path: String,
    source: Source,
}

impl Places {
    /// Those of a map.
    pub(super) fn new(map: &FieldMap) -> Self {
        let mut places = [const { Vec::new() }; Field::ALL.len()];
        for (number, (field, path, source)) in map.all().enumerate() {
            places[field as usize].push(Place { number, path: path.to_owned(), source });
        }
        Self { of_fields: places, joins_text: map.joins_text() }
    }

    /// Has no place for the id.
    pub(super) fn forget_id(&mut self) {
        self.of_fields[Field::Id as usize].clear();
    }

    /// Takes the value of a field: the first that is not empty, or else the last.
    pub(super) fn take<'a>(&self, row: &mut impl Row<'a>, field: Field) -> Option<(Value<'a>, &str, Source)> {
        if field == Field::Text && self.joins_text {
            return self.take_joined(row);
        }
        let mut found = None;
        for Place { number, path, source } in &self.of_fields[field as usize] {
            let Some(value) = row.take_numbered(*number, path) else { continue };
            let value = row::typed(row, field, value);
            let is_empty = value.is_empty();
            found = Some((value, path.as_str(), *source));
            if !is_empty {
                break;
            }
        }
        found
    }
    /// Takes a text that is in several fields, joined by line feeds. The first value that is no text is told.
    fn take_joined<'a>(&self, row: &mut impl Row<'a>) -> Option<(Value<'a>, &str, Source)> {
        let mut joined = None;
        let mut at = None;
        for Place { number, path, source } in &self.of_fields[Field::Text as usize] {
            let value = match row.take_numbered(*number, path) {
                Some(Value::Bytes(bytes)) => Value::Text(charset::decode(&bytes, None).into()),
                Some(value) => value,
                None => continue,
            };
            let is_text = |value: &Value<'_>| matches!(value, Value::Text(_) | Value::Broken(_));
            if joined.as_ref().is_none_or(|joined| is_text(joined) && !is_text(&value)) {
                at = Some((path.as_str(), *source));
            }
            row::append(&mut joined, Some(value));
        }
        let (path, source) = at?;
        Some((joined?, path, source))
    }
}
