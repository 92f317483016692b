//! What a format shows of one record.

use std::borrow::Cow;

use doppel_model::Timestamp;

use super::fields::Field;

/// One record of a file. `'a` is how long the data live that its values borrow from: a line, or a batch of columns.
pub trait Row<'a> {
    /// Takes the value at a path, such as `text` or `metadata.url`; dots lead into nested objects, and a field whose own
    /// name has dots is found by it as well. `messages[].content` gives the texts of all elements of a list, joined by line feeds. `None` where the record does not have it, or it is null. A value is taken once, so that text
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

/// The text of an id; none of a value that is no id.
pub(crate) fn id_of(value: Option<Value<'_>>) -> Option<String> {
    match value? {
        Value::Text(id) if !id.is_empty() => Some(id.into_owned()),
        Value::Whole(id) => Some(id.to_string()),
        _ => None,
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

/// What stands behind the name of a list in a path that leads into its elements: `messages[].content`.
pub(crate) const LIST: &str = "[]";

/// The kinds of values that others are in.
pub(crate) const A_LIST: &str = "a list";
pub(crate) const AN_OBJECT: &str = "an object";

/// Adds a value of a list to those before it: texts are joined by a line feed, and nothing is added by a null or an empty text. Of what is no text the
/// first stays, so that it is told.
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

/// Adds a text behind another one and a line feed, unless one of them is empty.
fn join(text: &mut String, more: &str) {
    if !text.is_empty() && !more.is_empty() {
        text.push('\n');
    }
    text.push_str(more);
}

/// Adds a value that stands where something of a `kind` may be that has others in it. A text is taken as if it were in that.
pub(crate) fn append_in_place_of<'a>(slot: &mut Option<Value<'a>>, value: Option<&Value<'a>>, kind: &str) {
    if !matches!(value, Some(Value::Other(found)) if *found == kind) {
        append(slot, value.cloned());
    }
}

/// A value of a record.
#[derive(Debug, Clone, PartialEq)]
pub enum Value<'a> {
    /// Text.
    Text(Cow<'a, str>),
    /// Text in which U+FFFD stands for lone surrogates: it can be read, and names nothing.
    Broken(String),
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
    /// The same without what it borrows from.
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
            Self::Broken(_) => "text with a lone surrogate",
            Self::Bytes(_) => "bytes",
            Self::Whole(_) | Self::Float(_) => "a number",
            Self::Bool(_) => "true or false",
            Self::Date(_) => "a date",
            Self::Other(kind) => kind,
        }
    }
}
