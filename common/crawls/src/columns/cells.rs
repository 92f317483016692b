//! The rows of a batch of columns.

use std::borrow::Cow;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Date64Type, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type,
    Int32Type, Int64Type, TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
    TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, RecordBatch, StructArray};
use arrow_schema::{DataType, Fields, TimeUnit};
use doppel_model::Timestamp;

use crate::record::{Row, Value};

/// The columns of a batch at some paths.
pub(super) struct Columns {
    found: Vec<Column>,
    rows: usize,
}

struct Column {
    path: String,
    /// The structures that it is in, the outermost first.
    around: Vec<ArrayRef>,
    values: ArrayRef,
}

impl Columns {
    /// Those of the columns at `paths` that are there.
    pub(super) fn new(batch: &RecordBatch, paths: &[String]) -> Self {
        let find = |path: &String| {
            let mut around = Vec::new();
            let values = find(batch.schema_ref().fields(), batch.columns(), path, &mut around)?;
            Some(Column { path: path.clone(), around, values })
        };
        Self { found: paths.iter().filter_map(find).collect(), rows: batch.num_rows() }
    }

    /// The number of rows.
    pub(super) fn rows(&self) -> usize {
        self.rows
    }
}

/// The column at a path, and the structures that it is in. A column whose own name has dots comes before one in a structure.
fn find(fields: &Fields, columns: &[ArrayRef], path: &str, around: &mut Vec<ArrayRef>) -> Option<ArrayRef> {
    if let Some(at) = fields.iter().position(|field| field.name() == path) {
        return columns.get(at).cloned();
    }
    for (field, column) in fields.iter().zip(columns) {
        let Some(rest) = path.strip_prefix(field.name().as_str()).and_then(|rest| rest.strip_prefix('.'))
        else {
            continue;
        };
        let Some(inside) = column.as_any().downcast_ref::<StructArray>() else { continue };
        around.push(column.clone());
        if let Some(found) = find(inside.fields(), inside.columns(), rest, around) {
            return Some(found);
        }
        around.pop();
    }
    None
}

/// The paths of all columns, outermost and inside structures.
pub(super) fn paths(fields: &Fields) -> Vec<String> {
    let mut paths = Vec::new();
    for field in fields {
        paths.push(field.name().clone());
        if let DataType::Struct(inside) = field.data_type() {
            paths.extend(self::paths(inside).into_iter().map(|path| format!("{}.{path}", field.name())));
        }
    }
    paths
}

/// One row of a batch.
pub(super) struct BatchRow<'a> {
    columns: &'a Columns,
    row: usize,
    /// The paths of all columns of the file, outermost and inside structures.
    names: &'a [String],
}

impl<'a> BatchRow<'a> {
    pub(super) fn new(columns: &'a Columns, row: usize, names: &'a [String]) -> Self {
        Self { columns, row, names }
    }
}

impl<'a> Row<'a> for BatchRow<'a> {
    fn take(&mut self, path: &str) -> Option<Value<'a>> {
        let column = self.columns.found.iter().find(|column| column.path == path)?;
        if column.around.iter().any(|around| around.is_null(self.row)) {
            return None;
        }
        value(&*column.values, self.row)
    }

    fn names(&self, each: &mut dyn FnMut(&str)) {
        self.names.iter().for_each(|name| each(name));
    }
}

/// The value in a row of a column; `None` where it is null.
fn value(array: &dyn Array, row: usize) -> Option<Value<'_>> {
    if array.is_null(row) {
        return None;
    }
    let text = |text| Some(Value::Text(Cow::Borrowed(text)));
    let number = |number: Option<i128>| number.map(Value::Whole);
    let date = |millis: Option<i64>| {
        // A date that cannot be one of a page is shown as what it is stored as.
        millis.map_or(Some(Value::Other("a date out of range")), |millis| {
            Some(Value::Date(Timestamp::from_millis(millis)))
        })
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
        DataType::Float16 => Some(Value::Float(array.as_primitive::<Float16Type>().value(row).into())),
        DataType::Float32 => Some(Value::Float(array.as_primitive::<Float32Type>().value(row).into())),
        DataType::Float64 => Some(Value::Float(array.as_primitive::<Float64Type>().value(row))),
        DataType::Boolean => Some(Value::Bool(array.as_boolean().value(row))),
        DataType::Date32 => {
            date(i64::from(array.as_primitive::<Date32Type>().value(row)).checked_mul(Timestamp::DAY_MS))
        }
        DataType::Date64 => date(Some(array.as_primitive::<Date64Type>().value(row))),
        // Without a zone it is taken as UTC; with one, UTC is what is stored.
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
        | DataType::LargeListView(_) => Some(Value::Other("a list")),
        DataType::Struct(_) | DataType::Map(..) => Some(Value::Other("an object")),
        _ => Some(Value::Other("a value of another type")),
    }
}

fn whole<T: ArrowPrimitiveType<Native: Into<i128>>>(array: &dyn Array, row: usize) -> Option<i128> {
    array.as_primitive_opt::<T>().map(|array| array.value(row).into())
}

/// Bytes are text where they say nothing else: writers of Parquet that do not mark text as such are many. Those of another
/// charset with ASCII bytes alone have escapes.
fn bytes(bytes: &[u8]) -> Value<'_> {
    match str::from_utf8(bytes) {
        Ok(text) if memchr::memchr2(0, 0x1b, bytes).is_none() => Value::Text(Cow::Borrowed(text)),
        _ => Value::Bytes(Cow::Borrowed(bytes)),
    }
}
