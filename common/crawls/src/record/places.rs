//! Takes the values of fields from records.

use super::fields::{Field, FieldMap, Source};
use super::row::{self, Row, Value};

/// Where the fields of a file's records are, so that none has to be looked for in each record.
#[derive(Debug)]
pub(super) struct Places([Vec<Place>; Field::ALL.len()]);

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
        Self(places)
    }

    /// Takes the value of a field: the first that is not empty, or else the last.
    pub(super) fn take<'a>(&self, row: &mut impl Row<'a>, field: Field) -> Option<(Value<'a>, &str, Source)> {
        let mut found = None;
        for Place { number, path, source } in &self.0[field as usize] {
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
}
