//! Records of any schema as pages: which field of a record is its text, its URL and its date, and how a record without a
//! URL is named. Nothing here knows a file format; each format shows its records as [`Row`]s.
//!
//! A reader of a format works like this for each file:
//!
//! 1. [`Guess::new`] with the options that were given, among them the [`FieldNames`]; [`Guess::note`] for each of the first
//!    [`SAMPLE_RECORDS`] rows (fewer where they are large); [`Guess::finish`] gives the [`FieldMap`].
//! 2. [`Records::new`] with that map, then [`Records::item`] for every row from the first, with its number.
//!
//! A row need only have the values at [`Guess::paths`] in step 1, and at [`FieldMap::paths`] in step 2, in which it is also told
//! the number of the path there.

mod date;
mod faults;
mod fields;
mod guess;
mod ids;
mod json;
mod mend;
mod name;
mod naming;
mod paths;
mod places;
mod reader;
mod row;
mod setup;

pub use fields::{Field, FieldMap, FieldNames, Ignored, NO_FIELD, Source, Unmet};
pub use guess::{Guess, SAMPLE_BYTES, SAMPLE_RECORDS};
pub use json::JsonRow;
pub(crate) use mend::Mended;
pub use name::RecordFile;
pub(crate) use naming::{Again, IdRows};
pub use naming::{IdChoices, NamedBy, RepeatedId, Repetition};
pub(crate) use paths::Paths;
pub use reader::Records;
pub(crate) use row::{A_LIST, AN_OBJECT};
pub(crate) use row::{LIST, append, append_in_place_of, id_of};
pub use row::{Row, Value};
pub(crate) use setup::Setup;
