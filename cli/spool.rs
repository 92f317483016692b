//! Standard input as an input: it is copied to a temporary file first, because crawls are opened by name and may be read twice.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::args::InputArgs;
use crate::exit::Failure;
use crate::scratch::Scratch;

/// What messages and the names of its records call it. Without an extension the format is found by the first bytes.
const NAME: &str = "stdin";

/// A copy of standard input, which is removed in the end.
pub(crate) struct Spool {
    _scratch: Scratch,
}

impl Spool {
    /// Copies standard input, and puts the copy in its place, where `-` is among the inputs; none where it is not.
    ///
    /// # Errors
    /// When `-` is there twice, or there is no room.
    pub(crate) fn of(inputs: &mut InputArgs) -> anyhow::Result<Option<Self>> {
        let mut named: Vec<&mut PathBuf> =
            inputs.inputs.iter_mut().filter(|path| path.as_path() == Path::new("-")).collect();
        match named.as_mut_slice() {
            [] => Ok(None),
            [place] => {
                let scratch = Scratch::new()?;
                let path = scratch.path().join(NAME);
                let copy = || io::copy(&mut io::stdin().lock(), &mut File::create(&path)?);
                copy().with_context(|| format!("cannot copy standard input to {}", path.display()))?;
                **place = path;
                Ok(Some(Self { _scratch: scratch }))
            }
            _ => Err(Failure::Usage("standard input can be read once; give - once".to_owned()).into()),
        }
    }
}
