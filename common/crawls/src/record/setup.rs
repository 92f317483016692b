//! What a reader of a format is given to read the records of a file.

use super::name::RecordFile;
use super::naming::Again;
use crate::InputOptions;

/// A file of records that is to be read.
#[derive(Clone)]
pub(crate) struct Setup {
    /// How its records are named.
    pub(crate) file: RecordFile,
    /// What the user says of the fields and bounds of the records.
    pub(crate) options: InputOptions,
    /// Opens the file once more; none of what can be read only once.
    pub(crate) again: Option<Again>,
}
