//! The interface between a file format and the record reader: a format shows each record as a [`Row`] of
//! [`Value`]s.
//!
//! A path with brackets, such as `messages[].content`, leads into the elements of a list. The functions
//! [`append`] and [`append_in_place_of`] join the texts of the elements in the same way for every format.

use std::borrow::Cow;

use doppel_model::Timestamp;

use super::fields::Field;

/// One record of a file. `'a` is the lifetime of the data that its values borrow: a line, or a batch of
/// columns.
pub trait Row<'a> {
    /// Takes the value at a path, such as `text` or `metadata.url`. `None` if the record does not have the
    /// field, or if its value is null.
    ///
    /// Dots lead into nested objects. A field whose own name contains dots is found by that name as well.
    /// `messages[].content` returns the texts of all elements of a list, joined by line feeds. Each value can
    /// be taken only once, so that unescaped text need not be copied.
    fn take(&mut self, path: &str) -> Option<Value<'a>>;

    /// Like [`take`](Self::take), but also passes the number of the path in
    /// [`FieldMap::paths`](super::FieldMap::paths), by which some formats find the value faster.
    fn take_numbered(&mut self, _number: usize, path: &str) -> Option<Value<'a>> {
        self.take(path)
    }

    /// Calls `each` with the paths of all fields, both top-level fields and fields inside objects.
    fn names(&self, each: &mut dyn FnMut(&str));

    /// Whether the values have types. In a format without types, numbers and truth values are text.
    fn has_types(&self) -> bool {
        true
    }
}

/// The id that a value stands for, as text. `None` if the value cannot be an id.
pub(crate) fn id_of(value: Option<Value<'_>>) -> Option<String> {
    match value? {
        Value::Text(id) if !id.is_empty() => Some(id.into_owned()),
        Value::Whole(id) => Some(id.to_string()),
        _ => None,
    }
}

/// Converts a text to the type of its field if the format of the row has no types. Other values stay as they
/// are.
pub(super) fn typed<'a>(row: &impl Row<'a>, field: Field, value: Value<'a>) -> Value<'a> {
    let Value::Text(text) = &value else { return value };
    if row.has_types() {
        return value;
    }
    let text = text.trim();
    let typed = match field {
        Field::Popularity => text.parse().ok().map(Value::Float),
        Field::Dead if text.eq_ignore_ascii_case("true") || text == "1" => Some(Value::Bool(true)),
        Field::Dead if text.eq_ignore_ascii_case("false") || text == "0" => Some(Value::Bool(false)),
        _ => None,
    };
    typed.unwrap_or(value)
}

/// The brackets after the name of a list in a path that leads into its elements, such as
/// `messages[].content`.
pub(crate) const LIST: &str = "[]";

/// The [kind](Value::Other) of a list.
pub(crate) const A_LIST: &str = "a list";
/// The [kind](Value::Other) of an object or a structure.
pub(crate) const AN_OBJECT: &str = "an object";

/// Appends the value of a list element to the values of the elements before it. Texts are joined by a line
/// feed. Nulls and empty texts add nothing. The first value that is not text replaces the texts and stays, so
/// that an error can report it.
pub(crate) fn append<'a>(slot: &mut Option<Value<'a>>, value: Option<Value<'a>>) {
    match (slot, value) {
        (_, None) => {}
        (Some(Value::Text(text)), Some(Value::Text(more))) => {
            if text.is_empty() {
                *text = more;
            } else {
                join(text.to_mut(), &more);
            }
        }
        (Some(Value::Broken(text)), Some(Value::Text(more))) => join(text, &more),
        (Some(Value::Broken(text)), Some(Value::Broken(more))) => join(text, &more),
        (slot @ Some(Value::Text(_)), Some(Value::Broken(more))) => {
            let Some(Value::Text(text)) = slot.take() else { return };
            let mut text = text.into_owned();
            join(&mut text, &more);
            *slot = Some(Value::Broken(text));
        }
        (slot @ (None | Some(Value::Text(_) | Value::Broken(_))), value) => *slot = value,
        (Some(_), _) => {}
    }
}

/// Appends a text to another one. A line feed separates them, unless one of them is empty.
fn join(text: &mut String, more: &str) {
    if !text.is_empty() && !more.is_empty() {
        text.push('\n');
    }
    text.push_str(more);
}

/// Appends a value that stands where the path expects a container of this `kind`, a list or an object. The
/// container itself is left out, because its contents are appended on their own. Any other value is appended
/// as if it were inside such a container.
pub(crate) fn append_in_place_of<'a>(slot: &mut Option<Value<'a>>, value: Option<&Value<'a>>, kind: &str) {
    if !matches!(value, Some(Value::Other(found)) if *found == kind) {
        append(slot, value.cloned());
    }
}

/// A value of a record's field.
#[derive(Debug, Clone, PartialEq)]
pub enum Value<'a> {
    /// A text of valid Unicode.
    Text(Cow<'a, str>),
    /// Text in which U+FFFD replaces lone surrogates. It can be the content of a page, but not an id or a
    /// URL.
    Broken(String),
    /// Bytes whose charset is not known.
    Bytes(Cow<'a, [u8]>),
    /// A number without a fraction.
    Whole(i128),
    /// A number in floating point.
    Float(f64),
    /// A value that is true or false.
    Bool(bool),
    /// A point in time, in a format that has a type for dates.
    Date(Timestamp),
    /// A value of any other kind, described in words such as `a list`.
    Other(&'static str),
}

impl Value<'_> {
    /// Copies the borrowed data, so that the value borrows nothing.
    #[cfg(feature = "columns")]
    pub(crate) fn into_owned(self) -> Value<'static> {
        match self {
            Self::Text(text) => Value::Text(Cow::Owned(text.into_owned())),
            Self::Broken(text) => Value::Broken(text),
            Self::Bytes(bytes) => Value::Bytes(Cow::Owned(bytes.into_owned())),
            Self::Whole(number) => Value::Whole(number),
            Self::Float(number) => Value::Float(number),
            Self::Bool(truth) => Value::Bool(truth),
            Self::Date(date) => Value::Date(date),
            Self::Other(kind) => Value::Other(kind),
        }
    }

    /// Whether the value is an empty text or has no bytes. An empty cell of a table is such a value.
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Text(text) => text.is_empty(),
            Self::Bytes(bytes) => bytes.is_empty(),
            _ => false,
        }
    }

    /// Describes the kind of the value in words, for error messages.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Text(_) => "text",
            Self::Broken(_) => "text with a lone surrogate",
            Self::Bytes(_) => "bytes",
            Self::Whole(_) | Self::Float(_) => "a number",
            Self::Bool(_) => "true or false",
            Self::Date(_) => "a date",
            Self::Other(kind) => kind,
        }
    }
}
