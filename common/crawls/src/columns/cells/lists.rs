//! Paths that lead into lists, such as `messages[].content`: joins the texts of the elements, and finds the
//! columns that a path needs.

use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, StructArray};
use arrow_schema::{DataType, Fields};

use super::{find_column, value};
use crate::record::{A_LIST, AN_OBJECT, LIST, Value, append, append_in_place_of};

/// Appends the texts at the path `rest`, which leads from a value into lists and structures, to `texts`.
///
/// If the path expects a list or a structure, but the value is neither, the value itself is appended.
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
    let mut parents = Vec::new();
    let found = find_column(structure.fields(), structure.columns(), inside, &mut parents);
    if let Some((column, rest)) = found.filter(|_| !parents.iter().any(|parent| parent.is_null(row))) {
        add_texts(&column, row, rest, texts);
    }
}

/// The elements of the list in a row: the column of all elements, and the range of this list in it. `None` if
/// the column does not contain lists.
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

/// The type of the elements of a list type. `None` for other types.
pub(super) fn element_type(list: &DataType) -> Option<&DataType> {
    match list {
        DataType::List(element)
        | DataType::LargeList(element)
        | DataType::FixedSizeList(element, _)
        | DataType::ListView(element)
        | DataType::LargeListView(element) => Some(element.data_type()),
        _ => None,
    }
}

/// The number of the first leaf at a path with lists. A *leaf* is a column without children. Leaves are
/// counted from 0 through all columns, in the order in which Parquet stores them.
pub(in crate::columns) fn first_leaf(fields: &Fields, path: &str) -> Option<usize> {
    let mut before = 0;
    for field in fields {
        let rest = path.strip_prefix(field.name().as_str());
        let inside = match (field.name() == path, rest, field.data_type()) {
            (true, ..) => Some(0),
            (_, Some(rest), data_type) => first_leaf_inside(data_type, rest),
            (_, None, _) => None,
        };
        if let Some(inside) = inside {
            return Some(before + inside);
        }
        before += count_leaves(field.data_type());
    }
    None
}

/// The number of the first leaf at the rest of a path, counted from the first leaf of a column of this type.
fn first_leaf_inside(data_type: &DataType, rest: &str) -> Option<usize> {
    match data_type {
        _ if rest.is_empty() => Some(0),
        DataType::Struct(inside) => first_leaf(inside, rest.strip_prefix('.')?),
        data_type => match (element_type(data_type), rest.strip_prefix(LIST)) {
            (Some(element), Some(rest)) => first_leaf_inside(element, rest),
            // A value that is not a list is read like a list with this one element.
            (None, Some(_)) => Some(0),
            (Some(_), None) | (None, None) => None,
        },
    }
}

/// The number of leaves of a column of this type.
fn count_leaves(data_type: &DataType) -> usize {
    match data_type {
        DataType::Struct(inside) => inside.iter().map(|field| count_leaves(field.data_type())).sum(),
        DataType::Map(entries, _) => count_leaves(entries.data_type()),
        data_type => element_type(data_type).map_or(1, count_leaves),
    }
}
