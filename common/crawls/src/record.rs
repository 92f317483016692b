//! Makes pages of records of any schema. The module decides which field of a record is its text, its URL, its
//! date and so on, and how a record without a URL is named.
//!
//! The module must not know any file format. The reader of each format shows its records as [`Row`]s, and
//! works like this for each file:
//!
//! 1. The reader samples the first rows to guess the fields. It calls [`Guess::new`] with the options, then
//!    [`Guess::note`] for each of the first [`SAMPLE_RECORDS`] rows, or fewer if they are large
//!    ([`SAMPLE_BYTES`]). At last [`Guess::finish`] returns the [`FieldMap`].
//! 2. The reader calls [`Records::new`] with that map. Then it calls [`Records::item`] for every row from the
//!    first one on, with the number of the row.
//!
//! In step 1 a row needs to have only the values at [`Guess::paths`], in step 2 only the values at
//! [`FieldMap::paths`]. In step 2 [`Row::take_numbered`] also gets the number of the path in that list.
//!
//! Two terms occur throughout the module. A *path* names a field of a record, such as `metadata.url`. The
//! *page form* is the JSON of a page that `POST /v1/pages` accepts. A file in the page form is read strictly
//! and nothing is guessed.

mod date;
mod faults;
mod field_map;
mod field_paths;
mod fields;
mod guess;
mod ids;
mod json;
mod mend;
mod name;
mod naming;
mod paths;
mod reader;
mod row;
mod setup;

pub use field_map::{FieldMap, MappedField, PathSource, Unmet};
pub use fields::{Field, FieldNames, Ignored, NO_FIELD};
pub use guess::{Guess, SAMPLE_BYTES, SAMPLE_RECORDS};
pub use json::JsonRow;
pub(crate) use mend::MendedLine;
pub use name::RecordFile;
pub use naming::{IdChoices, NamedBy, RepeatedId, Repetition};
pub(crate) use naming::{IdRows, OpenIdRows};
#[cfg(feature = "columns")]
pub(crate) use paths::Paths;
pub use reader::Records;
pub(crate) use row::id_of;
#[cfg(feature = "columns")]
pub(crate) use row::{A_LIST, AN_OBJECT, LIST, append, append_in_place_of};
pub use row::{Row, Value};
pub(crate) use setup::Setup;
