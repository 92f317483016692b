//! Copies inputs that can be read only once, for commands that read their inputs twice. These inputs are
//! standard input and named pipes.

use std::fs::{self, File};
use std::io;

use anyhow::Context;
use doppel_crawls::record::RecordFile;

use crate::sources::{self, InputSource, SourceKind};
use doppel_terminal::scratch::Scratch;

/// Temporary copies of inputs. They are removed with this value.
pub struct Spool {
    _scratch: Scratch,
}

impl Spool {
    /// Copies standard input and named pipes to files, and replaces their sources by the copies. `None` if no
    /// source needs a copy. Records and messages keep the names of the originals.
    ///
    /// # Errors
    /// If there is no room for a copy, or an original cannot be read.
    pub fn of(sources: &mut [InputSource]) -> anyhow::Result<Option<Self>> {
        let mut once: Vec<_> = sources.iter_mut().filter(|source| source.is_read_once()).collect();
        if once.is_empty() {
            return Ok(None);
        }
        let scratch = Scratch::new()?;
        for (number, source) in once.iter_mut().enumerate() {
            let shown = source.path().to_owned();
            let (from, name) = match &source.kind {
                SourceKind::File(path, name) => (File::open(path), name.clone()),
                _ => (sources::standard(), RecordFile::single(&shown)),
            };
            let dir = scratch.path().join(number.to_string());
            fs::create_dir(&dir).with_context(|| format!("cannot make {}", dir.display()))?;
            // The copy keeps the file name, because the name may reveal the format.
            let copy = dir.join(shown.file_name().unwrap_or_default());
            let copied = from.and_then(|mut from| io::copy(&mut from, &mut File::create(&copy)?));
            let bytes =
                copied.with_context(|| format!("cannot copy {} to {}", shown.display(), copy.display()))?;
            **source = InputSource {
                kind: SourceKind::File(copy, name),
                input: source.input,
                bytes,
                copy_of: Some(shown),
            };
        }
        Ok(Some(Self { _scratch: scratch }))
    }
}
