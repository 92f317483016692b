//! Shows each row of a decoded batch as a [`Row`] of a record.
//!
//! A path such as `metadata.url` leads through structures to a column. A path such as `messages[].content`
//! leads through lists, and the module [`lists`] joins the texts of their elements. [`Columns`] finds the
//! column of each path once for a batch, and [`BatchRow`] takes the values of one row.

pub(super) mod lists;

use std::borrow::Cow;
use std::ops::RangeInclusive;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Date64Type, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type,
    Int32Type, Int64Type, TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
    TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, RecordBatch, StructArray};
use arrow_schema::{DataType, Fields, TimeUnit};
use doppel_model::Timestamp;

use crate::record::{A_LIST, AN_OBJECT, LIST, Paths, Row, Value};
use lists::{add_texts, element_type};

/// The columns of a batch at given paths.
pub(super) struct Columns {
    /// The column of each path, in the order of the paths. `None` for a path that the batch does not have.
    columns: Vec<Option<Column>>,
    rows: usize,
}

struct Column {
    path: String,
    /// The structures that contain the column, the outermost first.
    parents: Vec<ArrayRef>,
    values: ArrayRef,
    /// The rest of the path from the brackets of a list on. Empty if the path does not lead through a list.
    rest: String,
}

impl Columns {
    /// Finds the columns of a batch at `paths`.
    pub(super) fn new(batch: &RecordBatch, paths: &[String]) -> Self {
        let column = |path: &String| {
            let mut parents = Vec::new();
            let fields = batch.schema_ref().fields();
            let (values, rest) = find_column(fields, batch.columns(), path, &mut parents)?;
            Some(Column { path: path.clone(), parents, values, rest: rest.to_owned() })
        };
        Self { columns: paths.iter().map(column).collect(), rows: batch.num_rows() }
    }

    /// The number of rows of the batch.
    pub(super) fn rows(&self) -> usize {
        self.rows
    }
}

impl Column {
    /// The value in a row. `None` if the value or a structure that contains it is null.
    fn value(&self, row: usize) -> Option<Value<'_>> {
        if self.parents.iter().any(|parent| parent.is_null(row)) {
            return None;
        }
        if self.rest.is_empty() {
            return value(&*self.values, row);
        }
        let mut texts = None;
        add_texts(&self.values, row, &self.rest, &mut texts);
        texts
    }
}

/// Finds the column at a path, and returns it with the rest of the path from the brackets of a list on. Adds
/// the structures that contain the column to `parents`. A column whose own name is the whole path, dots
/// included, takes precedence over a column inside a structure.
fn find_column<'p>(
    fields: &Fields,
    columns: &[ArrayRef],
    path: &'p str,
    parents: &mut Vec<ArrayRef>,
) -> Option<(ArrayRef, &'p str)> {
    if let Some(at) = fields.iter().position(|field| field.name() == path) {
        return columns.get(at).cloned().map(|column| (column, ""));
    }
    for (field, column) in fields.iter().zip(columns) {
        let Some(rest) = path.strip_prefix(field.name().as_str()) else { continue };
        if rest.starts_with(LIST) {
            return Some((column.clone(), rest));
        }
        let Some(rest) = rest.strip_prefix('.') else { continue };
        let Some(inside) = column.as_any().downcast_ref::<StructArray>() else { continue };
        parents.push(column.clone());
        if let Some(found) = find_column(inside.fields(), inside.columns(), rest, parents) {
            return Some(found);
        }
        parents.pop();
    }
    None
}

/// The maximum depth of structures and lists whose paths are listed.
const DEPTH_MAX: u32 = 64;

/// Lists the paths of the columns, both top-level columns and columns inside structures and lists. [`Paths`]
/// bounds the memory of the list.
pub(super) fn paths(fields: &Fields) -> Vec<String> {
    let mut paths = Paths::default();
    add_paths(fields, &mut String::new(), DEPTH_MAX, &mut paths);
    paths.into_vec()
}

/// Adds the paths of the columns `fields`. `prefix` is the path of the structure that contains them, with a
/// dot at the end.
fn add_paths(fields: &Fields, prefix: &mut String, depth: u32, paths: &mut Paths) {
    for field in fields {
        paths.note(prefix, field.name());
        let prefix_length = prefix.len();
        prefix.push_str(field.name());
        add_paths_inside(field.data_type(), prefix, depth, paths);
        prefix.truncate(prefix_length);
    }
}

/// Adds the paths of the columns inside a column or a list element of this type, whose path is `prefix`.
fn add_paths_inside(data_type: &DataType, prefix: &mut String, depth: u32, paths: &mut Paths) {
    let Some(depth) = depth.checked_sub(1) else { return };
    match data_type {
        DataType::Struct(inside) => {
            prefix.push('.');
            add_paths(inside, prefix, depth, paths);
        }
        data_type => {
            let Some(element) = element_type(data_type) else { return };
            prefix.push_str(LIST);
            if !matches!(element, DataType::Struct(_)) {
                paths.note("", prefix);
            }
            add_paths_inside(element, prefix, depth, paths);
        }
    }
}

/// One row of a batch, as a record shows its values.
pub(super) struct BatchRow<'a> {
    columns: &'a Columns,
    row: usize,
    /// The paths of all columns of the file, both top-level columns and columns inside structures.
    names: &'a [String],
}

impl<'a> BatchRow<'a> {
    pub(super) fn new(columns: &'a Columns, row: usize, names: &'a [String]) -> Self {
        Self { columns, row, names }
    }
}

impl<'a> Row<'a> for BatchRow<'a> {
    fn take(&mut self, path: &str) -> Option<Value<'a>> {
        self.columns.columns.iter().flatten().find(|column| column.path == path)?.value(self.row)
    }

    fn take_numbered(&mut self, number: usize, _path: &str) -> Option<Value<'a>> {
        self.columns.columns.get(number)?.as_ref()?.value(self.row)
    }

    fn names(&self, each: &mut dyn FnMut(&str)) {
        // The list of all paths is bounded, so it may lack paths that the caller looks for.
        self.columns.columns.iter().flatten().for_each(|column| each(&column.path));
        self.names.iter().for_each(|name| each(name));
    }
}

/// The dates that have a text form, in milliseconds since 1970: from the beginning of the year 0 almost to
/// the end of the year 9999.
const DATE_RANGE: RangeInclusive<i64> = -62_167_219_200_000..=253_402_207_200_000;

/// The value in a row of a column. `None` if the value is null, or NaN.
fn value(array: &dyn Array, row: usize) -> Option<Value<'_>> {
    if array.is_null(row) {
        return None;
    }
    let text = |text| Some(Value::Text(Cow::Borrowed(text)));
    let number = |number: Option<i128>| number.map(Value::Whole);
    // Data frames write NaN for a missing value.
    let float = |number: f64| (!number.is_nan()).then_some(Value::Float(number));
    let date = |millis: Option<i64>| {
        let millis = millis.filter(|millis| DATE_RANGE.contains(millis)).map(Timestamp::from_millis);
        Some(millis.map_or(Value::Other("a date out of range"), Value::Date))
    };
    match array.data_type() {
        DataType::Null => None,
        DataType::Utf8 => text(array.as_string::<i32>().value(row)),
        DataType::LargeUtf8 => text(array.as_string::<i64>().value(row)),
        DataType::Utf8View => text(array.as_string_view().value(row)),
        DataType::Binary => Some(bytes(array.as_binary::<i32>().value(row))),
        DataType::LargeBinary => Some(bytes(array.as_binary::<i64>().value(row))),
        DataType::BinaryView => Some(bytes(array.as_binary_view().value(row))),
        DataType::FixedSizeBinary(_) => Some(bytes(array.as_fixed_size_binary().value(row))),
        DataType::Int8 => number(whole::<Int8Type>(array, row)),
        DataType::Int16 => number(whole::<Int16Type>(array, row)),
        DataType::Int32 => number(whole::<Int32Type>(array, row)),
        DataType::Int64 => number(whole::<Int64Type>(array, row)),
        DataType::UInt8 => number(whole::<UInt8Type>(array, row)),
        DataType::UInt16 => number(whole::<UInt16Type>(array, row)),
        DataType::UInt32 => number(whole::<UInt32Type>(array, row)),
        DataType::UInt64 => number(whole::<UInt64Type>(array, row)),
        DataType::Float16 => float(array.as_primitive::<Float16Type>().value(row).into()),
        DataType::Float32 => float(array.as_primitive::<Float32Type>().value(row).into()),
        DataType::Float64 => float(array.as_primitive::<Float64Type>().value(row)),
        DataType::Boolean => Some(Value::Bool(array.as_boolean().value(row))),
        DataType::Date32 => {
            date(i64::from(array.as_primitive::<Date32Type>().value(row)).checked_mul(Timestamp::DAY_MS))
        }
        DataType::Date64 => date(Some(array.as_primitive::<Date64Type>().value(row))),
        // A timestamp with a zone stores UTC. A timestamp without a zone is read as UTC.
        DataType::Timestamp(unit, _) => date(match unit {
            TimeUnit::Second => array.as_primitive::<TimestampSecondType>().value(row).checked_mul(1_000),
            TimeUnit::Millisecond => Some(array.as_primitive::<TimestampMillisecondType>().value(row)),
            TimeUnit::Microsecond => {
                Some(array.as_primitive::<TimestampMicrosecondType>().value(row).div_euclid(1_000))
            }
            TimeUnit::Nanosecond => {
                Some(array.as_primitive::<TimestampNanosecondType>().value(row).div_euclid(1_000_000))
            }
        }),
        DataType::Dictionary(..) => {
            let dictionary = array.as_any_dictionary_opt()?;
            let Some(Value::Whole(key)) = value(dictionary.keys(), row) else { return None };
            let key = usize::try_from(key).ok().filter(|key| *key < dictionary.values().len())?;
            value(&**dictionary.values(), key)
        }
        DataType::List(_)
        | DataType::LargeList(_)
        | DataType::FixedSizeList(..)
        | DataType::ListView(_)
        | DataType::LargeListView(_) => Some(Value::Other(A_LIST)),
        DataType::Struct(_) | DataType::Map(..) => Some(Value::Other(AN_OBJECT)),
        _ => Some(Value::Other("a value of another type")),
    }
}

fn whole<T: ArrowPrimitiveType<Native: Into<i128>>>(array: &dyn Array, row: usize) -> Option<i128> {
    array.as_primitive_opt::<T>().map(|array| array.value(row).into())
}

/// Reads bytes as text if they are UTF-8, because many writers of Parquet do not mark text as such. Bytes
/// with a zero byte or an escape character remain bytes: charsets that consist of ASCII bytes, such as
/// ISO-2022-JP, use escapes.
fn bytes(bytes: &[u8]) -> Value<'_> {
    match str::from_utf8(bytes) {
        Ok(text) if memchr::memchr2(0, 0x1b, bytes).is_none() => Value::Text(Cow::Borrowed(text)),
        _ => Value::Bytes(Cow::Borrowed(bytes)),
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::{Int64Array, TimestampMillisecondArray, TimestampSecondArray};
    use arrow_schema::{Field, Schema};

    use super::*;

    #[test]
    fn a_timestamp_without_a_text_form_is_no_date() {
        let (first, last) = (*DATE_RANGE.start(), *DATE_RANGE.end());
        let millis = [0, first, last, first - 1, last + 1, i64::MIN, i64::MAX];
        let array = TimestampMillisecondArray::from(millis.to_vec());
        for (row, millis) in millis.into_iter().enumerate() {
            let expected = if row < 3 {
                Value::Date(Timestamp::from_millis(millis))
            } else {
                Value::Other("a date out of range")
            };
            assert_eq!(value(&array, row), Some(expected), "{millis}");
        }
        assert_eq!(
            value(&TimestampSecondArray::from(vec![i64::MIN]), 0),
            Some(Value::Other("a date out of range"))
        );
        assert_eq!(Timestamp::from_millis(first).to_string(), "0000-01-01T00:00:00Z");
        assert_eq!(Timestamp::from_millis(last).to_string(), "9999-12-30T22:00:00Z");
    }

    #[test]
    fn a_value_is_found_by_its_path_and_by_the_number_of_its_path() {
        let inside: ArrayRef = std::sync::Arc::new(Int64Array::from(vec![Some(1), Some(2)]));
        let field = std::sync::Arc::new(Field::new("b", DataType::Int64, true));
        let around = StructArray::new(vec![field].into(), vec![inside], Some(vec![true, false].into()));
        let id: ArrayRef = std::sync::Arc::new(Int64Array::from(vec![None, Some(4)]));
        let batch =
            RecordBatch::try_from_iter([("a", std::sync::Arc::new(around) as _), ("id", id)]).unwrap();
        let paths = ["text", "id", "a.b", "a", "id"].map(str::to_owned);
        let columns = Columns::new(&batch, &paths);
        let object = Value::Other("an object");
        let expected = [
            [None, None, Some(Value::Whole(1)), Some(object), None],
            [None, Some(Value::Whole(4)), None, None, Some(Value::Whole(4))],
        ];
        for (row, expected) in expected.into_iter().enumerate() {
            for ((number, path), expected) in paths.iter().enumerate().zip(expected) {
                let mut row = BatchRow::new(&columns, row, &[]);
                assert_eq!(row.take(path), expected, "{path}");
                assert_eq!(row.take_numbered(number, path), expected, "{path}");
            }
        }
    }

    #[test]
    fn the_paths_of_a_schema_take_bounded_memory() {
        let many: Fields = (0..10_000).map(|n| Field::new(format!("{n}"), DataType::Int64, true)).collect();
        let long = Fields::from(vec![
            Field::new("k".repeat(1 << 20), DataType::Struct(many), true),
            Field::new("a", DataType::Struct(vec![Field::new("b", DataType::Int64, true)].into()), true),
        ]);
        let found = paths(&long);
        assert_eq!(found[1..], ["a", "a.b"]);
        assert_eq!(found[0].len(), 1 << 10);
    }

    #[test]
    fn a_wanted_column_is_named_even_if_there_are_too_many_columns_to_name_all() {
        let fields: Fields = (0..20_000).map(|n| Field::new(format!("{n}"), DataType::Int64, true)).collect();
        let names = paths(&fields);
        let array: ArrayRef = std::sync::Arc::new(Int64Array::from(vec![None]));
        let schema = Schema::new(vec![Field::new("19999", DataType::Int64, true)]);
        let batch = RecordBatch::try_new(schema.into(), vec![array]).unwrap();
        let columns = Columns::new(&batch, &["19999".to_owned()]);
        let mut found = Vec::new();
        BatchRow::new(&columns, 0, &names).names(&mut |name| found.push(name.to_owned()));
        assert!(found.iter().any(|name| name == "19999") && found.len() < 20_000);
    }
}
