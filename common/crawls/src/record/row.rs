//! What a format shows of one record.

use std::borrow::Cow;

use doppel_model::Timestamp;

use super::fields::Field;

/// One record of a file. `'a` is how long the data live that its values borrow from: a line, or a batch of columns.
pub trait Row<'a> {
    /// Takes the value at a path, such as `text` or `metadata.url`; dots lead into nested objects, and a field whose own
    /// name has dots is found by it as well. `None` where the record does not have it, or it is null. A value is taken once, so that text
    /// that was unescaped need not be copied.
    fn take(&mut self, path: &str) -> Option<Value<'a>>;

    /// Takes the value at a path that has this number in [`FieldMap::paths`](super::FieldMap::paths), for formats that find it by that.
    fn take_numbered(&mut self, _number: usize, path: &str) -> Option<Value<'a>> {
        self.take(path)
    }

    /// Shows the paths of all fields, outermost and inside objects.
    fn names(&self, each: &mut dyn FnMut(&str));

    /// Whether its values have types. Where they have none, numbers and truth are text.
    fn has_types(&self) -> bool {
        true
    }
}

/// A value for a field, with the type that the field has where the format of the row has none.
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

/// A value of a record.
#[derive(Debug, Clone, PartialEq)]
pub enum Value<'a> {
    /// Text.
    Text(Cow<'a, str>),
    /// Bytes that are no text of a known charset.
    Bytes(Cow<'a, [u8]>),
    /// A whole number.
    Whole(i128),
    /// Any other number.
    Float(f64),
    /// True or false.
    Bool(bool),
    /// A point in time, in a format that has a type for that.
    Date(Timestamp),
    /// Anything else, in words such as `a list`.
    Other(&'static str),
}

impl Value<'_> {
    /// Whether it stands for nothing, as an empty cell of a table does.
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Text(text) => text.is_empty(),
            Self::Bytes(bytes) => bytes.is_empty(),
            _ => false,
        }
    }

    /// What it is, in words.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Text(_) => "text",
            Self::Bytes(_) => "bytes",
            Self::Whole(_) | Self::Float(_) => "a number",
            Self::Bool(_) => "true or false",
            Self::Date(_) => "a date",
            Self::Other(kind) => kind,
        }
    }
}
