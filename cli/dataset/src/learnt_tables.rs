//! Tables of a policy that a run has learned from its inputs.

use std::io::{self, Write};
use std::path::PathBuf;

use doppel_model::tables::TablesHash;
use doppel_terminal::output::plural;
use serde::Serialize;

/// Tables of a policy that a run has learned.
#[derive(Debug, Serialize)]
pub struct LearntTables {
    /// Hash of the tables, which names them in a policy.
    pub hash: TablesHash,
    /// Pages from which they were learned.
    pub pages: u64,
    /// Contents in the sample.
    pub contents: u32,
    /// Words that are in more than one content of the sample.
    pub words: u64,
    /// File in which they are stored.
    pub kept: Option<PathBuf>,
}

impl LearntTables {
    /// Prints the tables for people.
    pub(crate) fn print(&self, out: &mut dyn Write) -> io::Result<()> {
        let Self { hash, pages, words, ref kept, .. } = *self;
        let (pages, words) = (plural(pages, "page"), plural(words, "word"));
        writeln!(out, "\ntables learnt from {pages} ({words}): hash {hash}")?;
        match kept {
            Some(path) => writeln!(out, "kept in {}; they never change for this collection", path.display()),
            None => Ok(()),
        }
    }
}
