//! What results may not be put in the place of.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use doppel_inputs::sources::{self, InputSource, SourceKind};

use super::places::resolved;

/// The inputs by their one paths.
pub(super) struct InputPaths {
    /// Files, and what they are links to.
    files: HashSet<PathBuf>,
    /// Directories of pages.
    pages: Vec<PathBuf>,
}

impl InputPaths {
    pub(super) fn by(sources: &[InputSource]) -> io::Result<Self> {
        let mut taken = Self { files: HashSet::new(), pages: Vec::new() };
        for source in sources {
            if let SourceKind::File(path, _) = &source.kind {
                taken.files.extend(one_paths(path)?);
            } else if let SourceKind::Pages(dir) = &source.kind {
                taken.pages.push(fs::canonicalize(dir)?);
            }
        }
        Ok(taken)
    }

    /// The input that the results at a path of a source would replace a part of, or be a part of.
    pub(super) fn meets(&self, path: &Path, source: &InputSource) -> Option<&Path> {
        let pages = self.pages_around(path);
        if source.is_pages() {
            let mut all = self.files.iter().chain(&self.pages).map(PathBuf::as_path);
            return pages.or_else(|| all.find(|input| input.starts_with(path)));
        }
        pages.or_else(|| self.files.get(path).map(PathBuf::as_path))
    }

    /// The directory of pages that a path is in.
    pub(super) fn pages_around(&self, path: &Path) -> Option<&Path> {
        self.pages.iter().map(PathBuf::as_path).find(|dir| path.starts_with(dir))
    }
}

/// The paths of what is at a path, there or not: its own, and that of what it is a link to. None of standard input or output.
pub(super) fn one_paths(path: &Path) -> io::Result<Vec<PathBuf>> {
    if sources::is_standard(path) {
        return Ok(Vec::new());
    }
    Ok([resolved(path)?].into_iter().chain(fs::canonicalize(path)).collect())
}
