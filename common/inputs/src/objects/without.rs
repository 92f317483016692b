//! Refuses objects in stores. For programs that were built without support for stores.

use std::convert::Infallible;
use std::path::Path;

use doppel_crawls::record::RecordFile;
use doppel_crawls::{Input, InputError, InputOptions};

use super::Listing;
use crate::version::Version;
use doppel_terminal::exit::Failure;

/// An object in a store. No value of this type exists.
#[derive(Debug)]
pub struct Object(Infallible);

impl Object {
    /// Address of the object, as messages show it.
    pub fn path(&self) -> &Path {
        match self.0 {}
    }

    /// Size of the object, in bytes.
    pub fn bytes(&self) -> u64 {
        match self.0 {}
    }

    /// Name that the records of the object carry.
    pub fn name(&self) -> &RecordFile {
        match self.0 {}
    }

    /// Version of the object in its store.
    pub fn version(&self) -> Version {
        match self.0 {}
    }

    /// Opens the object for reading.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn open(&self, _: InputOptions) -> Result<Input, InputError> {
        match self.0 {}
    }
}

/// Refuses an input that is in a store.
///
/// # Errors
/// Always.
pub fn named_by(input: &str) -> anyhow::Result<Listing> {
    let text = format!(
        "{input}: this program was built without support for object stores; build it with --features object-store"
    );
    Err(Failure::Usage(text).into())
}
