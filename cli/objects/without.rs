//! What a program does with objects in stores that was built without them: it refuses them.

use std::convert::Infallible;
use std::path::Path;

use doppel_crawls::record::RecordFile;
use doppel_crawls::{Input, InputError, InputOptions};

use super::Listing;
use crate::version::Version;
use doppel_terminal::exit::Failure;

/// An object, of which there is none.
#[derive(Debug)]
pub(crate) struct Object(Infallible);

impl Object {
    pub(crate) fn path(&self) -> &Path {
        match self.0 {}
    }

    pub(crate) fn bytes(&self) -> u64 {
        match self.0 {}
    }

    pub(crate) fn name(&self) -> &RecordFile {
        match self.0 {}
    }

    pub(crate) fn version(&self) -> Version {
        match self.0 {}
    }

    pub(crate) fn open(&self, _: InputOptions) -> Result<Input, InputError> {
        match self.0 {}
    }
}

/// Refuses an input that is in a store.
///
/// # Errors
/// Always.
pub(crate) fn named_by(input: &str) -> anyhow::Result<Listing> {
    let text = format!(
        "{input}: this program was built without stores of objects; build it with --features object-store"
    );
    Err(Failure::Usage(text).into())
}
