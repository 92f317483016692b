//! Texts in lists, and in the structures in lists: `messages[].content`.

use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, StructArray};
use arrow_schema::{DataType, Fields};

use super::{find, value};
use crate::record::{A_LIST, AN_OBJECT, LIST, Value, append, append_in_place_of};

/// Adds the texts at `rest`, which leads from a value into lists and structures, to those before.
pub(super) fn add_texts(array: &ArrayRef, row: usize, rest: &str, texts: &mut Option<Value<'static>>) {
    if array.is_null(row) {
        return;
    }
    let owned = |array: &ArrayRef, row| value(&**array, row).map(Value::into_owned);
    let inside = if rest.is_empty() {
        return append(texts, owned(array, row));
    } else if let Some(rest) = rest.strip_prefix(LIST) {
        let Some((elements, rows)) = elements(array, row) else {
            return append_in_place_of(texts, owned(array, row).as_ref(), A_LIST);
        };
        return rows.for_each(|row| add_texts(elements, row, rest, texts));
    } else {
        rest.strip_prefix('.').unwrap_or(rest)
    };
    let Some(structure) = array.as_any().downcast_ref::<StructArray>() else {
        return append_in_place_of(texts, owned(array, row).as_ref(), AN_OBJECT);
    };
    let mut around = Vec::new();
    let found = find(structure.fields(), structure.columns(), inside, &mut around);
    if let Some((column, rest)) = found.filter(|_| !around.iter().any(|around| around.is_null(row))) {
        add_texts(&column, row, rest, texts);
    }
}

/// The elements of a list in a row; none of what is no list.
fn elements(array: &ArrayRef, row: usize) -> Option<(&ArrayRef, Range<usize>)> {
    let range = |begin: i64, end: i64| Some(usize::try_from(begin).ok()?..usize::try_from(end).ok()?);
    let (elements, rows) = match array.data_type() {
        DataType::List(_) => {
            let list = array.as_list::<i32>();
            let offsets = list.value_offsets();
            (list.values(), range(offsets[row].into(), offsets[row + 1].into())?)
        }
        DataType::LargeList(_) => {
            let list = array.as_list::<i64>();
            (list.values(), range(list.value_offsets()[row], list.value_offsets()[row + 1])?)
        }
        DataType::FixedSizeList(..) => {
            let list = array.as_fixed_size_list();
            let begin = list.value_offset_at(row);
            (list.values(), begin..begin + usize::try_from(list.value_length()).ok()?)
        }
        DataType::ListView(_) => {
            let list = array.as_list_view::<i32>();
            let begin = i64::from(list.value_offset(row));
            (list.values(), range(begin, begin + i64::from(list.value_size(row)))?)
        }
        DataType::LargeListView(_) => {
            let list = array.as_list_view::<i64>();
            (list.values(), range(list.value_offset(row), list.value_offset(row) + list.value_size(row))?)
        }
        _ => return None,
    };
    (rows.end <= elements.len()).then_some((elements, rows))
}

/// The type of the elements of a list.
pub(super) fn element_of(list: &DataType) -> Option<&DataType> {
    match list {
        DataType::List(element)
        | DataType::LargeList(element)
        | DataType::FixedSizeList(element, _)
        | DataType::ListView(element)
        | DataType::LargeListView(element) => Some(element.data_type()),
        _ => None,
    }
}

/// The first leaf at a path with lists, counted through all columns in the order in which Parquet stores them.
pub(in crate::columns) fn leaf_at(fields: &Fields, path: &str) -> Option<usize> {
    let mut before = 0;
    for field in fields {
        let rest = path.strip_prefix(field.name().as_str());
        let inside = match (field.name() == path, rest, field.data_type()) {
            (true, ..) => Some(0),
            (_, Some(rest), of) => leaf_inside(of, rest),
            (_, None, _) => None,
        };
        if let Some(inside) = inside {
            return Some(before + inside);
        }
        before += leaves(field.data_type());
    }
    None
}

/// The first leaf at what is left of a path in a column of a type.
fn leaf_inside(of: &DataType, rest: &str) -> Option<usize> {
    match of {
        _ if rest.is_empty() => Some(0),
        DataType::Struct(inside) => leaf_at(inside, rest.strip_prefix('.')?),
        of => match (element_of(of), rest.strip_prefix(LIST)) {
            (Some(element), Some(rest)) => leaf_inside(element, rest),
            // What is no list is read as if it were in one.
            (None, Some(_)) => Some(0),
            (Some(_), None) | (None, None) => None,
        },
    }
}

/// How many leaves a column of a type has.
fn leaves(of: &DataType) -> usize {
    match of {
        DataType::Struct(inside) => inside.iter().map(|field| leaves(field.data_type())).sum(),
        DataType::Map(entries, _) => leaves(entries.data_type()),
        of => element_of(of).map_or(1, leaves),
    }
}
