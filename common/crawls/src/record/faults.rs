//! Makes the errors about fields of a record. Each error names the path of the field.

use doppel_model::PageUrl;
use doppel_streams::{FieldError, FieldProblem, Reason};

use super::fields::Field;
use super::row::{A_LIST, Value};

/// The least integer that does not fit 64 bits without a sign. Readers return larger integers as
/// floating-point numbers. With a sign the limit is half of this.
const BEYOND_64_BITS: f64 = 2.0 * (1_u64 << 63) as f64;

/// The error for a problem of the field at `path`.
pub(super) fn field_error(path: &str, problem: FieldProblem) -> Reason {
    Reason::Field(FieldError { path: path.to_owned(), problem })
}

/// Parses the value of the field at `path` as a page URL.
pub(super) fn page_url(path: &str, text: &str) -> Result<PageUrl, Reason> {
    PageUrl::parse(text).map_err(|error| field_error(path, error.into()))
}

/// The error for a value of a wrong type. `has_to_be` describes the type that the field requires.
pub(super) fn wrong_type(path: &str, value: &Value<'_>, has_to_be: &'static str) -> Reason {
    field_error(path, FieldProblem::Type { is: value.kind(), has_to_be })
}

/// The error for a value that is not text. For a list, the error says how to name the texts in the list.
pub(super) fn not_text(field: Field, path: &str, value: &Value<'_>) -> Reason {
    match (value, field.option()) {
        (Value::Other(A_LIST), Some(option)) => {
            field_error(path, FieldProblem::List { path: path.to_owned(), option })
        }
        _ => wrong_type(path, value, "text"),
    }
}

/// The error for a value that cannot be the id of a record.
pub(super) fn not_id(path: &str, value: &Value<'_>) -> Reason {
    match value {
        Value::Float(number) if *number >= BEYOND_64_BITS || *number <= -BEYOND_64_BITS / 2.0 => {
            field_error(path, FieldProblem::LargeId)
        }
        _ => wrong_type(path, value, "text or a whole number"),
    }
}
