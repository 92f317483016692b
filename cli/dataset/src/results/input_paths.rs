//! The paths of the inputs, which results must not replace.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use doppel_inputs::sources::{self, InputSource, SourceKind};

use super::places::resolved;

/// Canonical paths of the inputs.
pub(super) struct InputPaths {
    /// Files, under their own paths and the paths to which they link.
    files: HashSet<PathBuf>,
    /// Directories of pages.
    pages: Vec<PathBuf>,
}

impl InputPaths {
    pub(super) fn by(sources: &[InputSource]) -> io::Result<Self> {
        let mut taken = Self { files: HashSet::new(), pages: Vec::new() };
        for source in sources {
            if let SourceKind::File(path, _) = &source.kind {
                taken.files.extend(canonical_paths(path)?);
            } else if let SourceKind::Pages(dir) = &source.kind {
                taken.pages.push(fs::canonicalize(dir)?);
            }
        }
        Ok(taken)
    }

    /// The input that the results of `source` at `path` would replace, contain, or be inside of.
    pub(super) fn meets(&self, path: &Path, source: &InputSource) -> Option<&Path> {
        let pages = self.pages_around(path);
        if source.is_pages() {
            let mut all = self.files.iter().chain(&self.pages).map(PathBuf::as_path);
            return pages.or_else(|| all.find(|input| input.starts_with(path)));
        }
        pages.or_else(|| self.files.get(path).map(PathBuf::as_path))
    }

    /// The directory of pages that contains a path.
    pub(super) fn pages_around(&self, path: &Path) -> Option<&Path> {
        self.pages.iter().map(PathBuf::as_path).find(|dir| path.starts_with(dir))
    }
}

/// The canonical path of a file that need not exist, and the path to which it links. Empty for standard input
/// or output.
pub(super) fn canonical_paths(path: &Path) -> io::Result<Vec<PathBuf>> {
    if sources::is_standard(path) {
        return Ok(Vec::new());
    }
    Ok([resolved(path)?].into_iter().chain(fs::canonicalize(path)).collect())
}
