//! The input of a reader of records, whatever the file format.

use super::name::RecordFile;
use super::naming::OpenIdRows;
use crate::InputOptions;

/// The options for reading a file of records.
#[derive(Clone)]
pub(crate) struct Setup {
    /// Names the records that have no URL.
    pub(crate) file: RecordFile,
    /// The fields and limits that the user sets.
    pub(crate) options: InputOptions,
    /// Opens the file again to read its ids. `None` for a pipe, which can be read only once.
    pub(crate) open_ids: Option<OpenIdRows>,
}
