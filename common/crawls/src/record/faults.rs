//! What is wrong with the fields of a record. Each fault names its field by the path.

use doppel_model::PageUrl;

use super::fields::Field;
use super::row::{A_LIST, Value};
use crate::error::{FieldError, FieldProblem, Reason};

/// The least integers that have no 64-bit form: formats give larger ones as floating-point numbers. With a sign the limit is half of that.
const BEYOND_64_BITS: f64 = 2.0 * (1_u64 << 63) as f64;

/// The fault of the field at `path`.
pub(super) fn wrong(path: &str, problem: FieldProblem) -> Reason {
    Reason::Field(FieldError { path: path.to_owned(), problem })
}

/// The page URL that the field at `path` has.
pub(super) fn page_url(path: &str, text: &str) -> Result<PageUrl, Reason> {
    PageUrl::parse(text).map_err(|error| wrong(path, error.into()))
}

/// The fault of a value of another type.
pub(super) fn wrong_type(path: &str, value: &Value<'_>, has_to_be: &'static str) -> Reason {
    wrong(path, FieldProblem::Type { is: value.kind(), has_to_be })
}

/// What is wrong with a value that has to be text; of a list, how to name what is in it.
pub(super) fn no_text(field: Field, path: &str, value: &Value<'_>) -> Reason {
    match (value, field.option()) {
        (Value::Other(A_LIST), Some(option)) => {
            wrong(path, FieldProblem::List { path: path.to_owned(), option })
        }
        _ => wrong_type(path, value, "text"),
    }
}

/// The fault of a value that names no record.
pub(super) fn no_id(path: &str, value: &Value<'_>) -> Reason {
    match value {
        Value::Float(number) if *number >= BEYOND_64_BITS || *number <= -BEYOND_64_BITS / 2.0 => {
            wrong(path, FieldProblem::LargeId)
        }
        _ => wrong_type(path, value, "text or a whole number"),
    }
}
