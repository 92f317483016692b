//! Takes the values of the fields from a record. The paths of each field are looked up in the [`FieldMap`]
//! once for a file, not once for each record.

use super::field_map::{FieldMap, MappedField, PathSource};
use super::fields::Field;
use super::row::{self, Row, Value};
use crate::charset;

/// The paths of each field of a file's records, in order of preference.
#[derive(Debug)]
pub(super) struct FieldPaths {
    /// Indexed by the [`Field`].
    by_field: [Vec<FieldPath>; Field::ALL.len()],
    joins_text: bool,
}

/// A path at which a field may be.
#[derive(Debug)]
struct FieldPath {
    /// The number of the path in [`FieldMap::paths`].
    number: usize,
    path: String,
    source: PathSource,
}

/// The value of a field in a record.
pub(super) struct FieldValue<'a, 'p> {
    pub(super) value: Value<'a>,
    /// The path at which the record has the value.
    pub(super) path: &'p str,
    pub(super) source: PathSource,
}

impl FieldPaths {
    /// The paths of all fields of a map.
    pub(super) fn new(map: &FieldMap) -> Self {
        let mut by_field = [const { Vec::new() }; Field::ALL.len()];
        for (number, MappedField { field, path, source }) in map.all().enumerate() {
            by_field[field as usize].push(FieldPath { number, path: path.to_owned(), source });
        }
        Self { by_field, joins_text: map.joins_text() }
    }

    /// Removes the paths of the id, so that no record has an id.
    pub(super) fn remove_id(&mut self) {
        self.by_field[Field::Id as usize].clear();
    }

    /// Takes the value of a field from a record. If the record has values at several paths of the field, this
    /// is the first value that is not empty, or else the last value.
    pub(super) fn take<'a>(&self, row: &mut impl Row<'a>, field: Field) -> Option<FieldValue<'a, '_>> {
        if field == Field::Text && self.joins_text {
            return self.take_joined(row);
        }
        let mut found = None;
        for FieldPath { number, path, source } in &self.by_field[field as usize] {
            let Some(value) = row.take_numbered(*number, path) else { continue };
            let value = row::typed(row, field, value);
            let is_empty = value.is_empty();
            found = Some(FieldValue { value, path, source: *source });
            if !is_empty {
                break;
            }
        }
        found
    }

    /// Takes a text that is spread over several fields, and joins its parts by line feeds. If a part is not
    /// text, this is the first such part, so that the caller can report it.
    fn take_joined<'a>(&self, row: &mut impl Row<'a>) -> Option<FieldValue<'a, '_>> {
        let mut joined = None;
        let mut at = None;
        for FieldPath { number, path, source } in &self.by_field[Field::Text as usize] {
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
        Some(FieldValue { value: joined?, path, source })
    }
}
