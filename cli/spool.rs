//! Copies of what can be read only once, for commands that read their inputs twice: standard input and named pipes.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::inputs;
use crate::scratch::Scratch;

/// Copies of inputs, which are removed in the end.
pub(crate) struct Spool {
    _scratch: Scratch,
}

impl Spool {
    /// Copies standard input and named pipes, and puts the copies in their places among the inputs; none where there is none of
    /// them.
    ///
    /// # Errors
    /// When standard input is there twice, or there is no room.
    pub(crate) fn of(inputs: &mut [PathBuf]) -> anyhow::Result<Option<Self>> {
        inputs::require_standard_once(inputs)?;
        let mut once: Vec<_> = inputs.iter_mut().filter(|input| is_read_once(input)).collect();
        if once.is_empty() {
            return Ok(None);
        }
        let scratch = Scratch::new()?;
        for (number, input) in once.iter_mut().enumerate() {
            let dir = scratch.path().join(number.to_string());
            fs::create_dir(&dir).with_context(|| format!("cannot make {}", dir.display()))?;
            // The copy has the name of the input, after which records are named, and which may tell the format.
            let (from, name) = if inputs::is_standard(input) {
                (inputs::standard(), inputs::STANDARD_NAME.as_ref())
            } else {
                (File::open(&input), input.file_name().unwrap_or_default())
            };
            let copy = dir.join(name);
            let copied = from.and_then(|mut from| io::copy(&mut from, &mut File::create(&copy)?));
            copied.with_context(|| format!("cannot copy {} to {}", name.display(), copy.display()))?;
            **input = copy;
        }
        Ok(Some(Self { _scratch: scratch }))
    }
}

fn is_read_once(input: &Path) -> bool {
    inputs::is_standard(input) || fs::metadata(input).is_ok_and(|metadata| metadata.file_type().is_fifo())
}
