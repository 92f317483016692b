//! Directories and patterns that a run names as inputs.
//!
//! A crawl file that an earlier run read below such a directory, or by such a pattern, may have been deleted
//! since. Its results are then stale, because the run has read everything that the input names. A file counts
//! as gone only if its directory exists and has other entries. Otherwise the directory may be unmounted.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use doppel_crawls::crawl_ending;
use doppel_inputs::sources::absolute_pattern;
use glob::{MatchOptions, Pattern};

/// A pattern matches a path as the listing of files does: `*` matches no separator and no leading dot.
const MATCHING: MatchOptions =
    MatchOptions { case_sensitive: true, require_literal_separator: true, require_literal_leading_dot: true };

/// An input that names several files.
#[derive(Debug)]
enum NamedInput {
    Directory(PathBuf),
    Pattern(Pattern),
}

/// The inputs of a run that name several files.
#[derive(Debug, Default)]
pub(in crate::results) struct NamedInputs(Vec<NamedInput>);

/// State of a file that an earlier run has read and the present run has not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UnreadFile {
    /// No input of this run names the file, or the file still exists.
    NotNamed,
    /// An input names the file, and the file has gone from its directory.
    Gone,
    /// An input names the file, and the directory of the file has gone or is empty.
    Unreachable,
}

impl NamedInputs {
    /// The directories and patterns among the inputs of a command.
    pub(in crate::results) fn of(inputs: &[PathBuf]) -> Self {
        Self(inputs.iter().filter_map(|input| NamedInput::of(input)).collect())
    }

    /// The state of a file that this run has not read. `path` must have no symbolic links.
    pub(super) fn unread(&self, path: &Path) -> UnreadFile {
        let is_missing =
            fs::symlink_metadata(path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
        if !is_missing || !self.0.iter().any(|input| input.names(path)) {
            return UnreadFile::NotNamed;
        }
        let has_entries = |dir: &Path| fs::read_dir(dir).is_ok_and(|mut entries| entries.next().is_some());
        if path.parent().is_some_and(has_entries) { UnreadFile::Gone } else { UnreadFile::Unreachable }
    }
}

impl NamedInput {
    /// `None` if the input names a single file or an object in a store.
    fn of(input: &Path) -> Option<Self> {
        if fs::metadata(input).is_ok() {
            return fs::canonicalize(input).ok().filter(|path| path.is_dir()).map(Self::Directory);
        }
        absolute_pattern(input).map(Self::Pattern)
    }

    /// Whether a run reads a file at this path. A directory is read for visible crawl files alone.
    fn names(&self, path: &Path) -> bool {
        let is_hidden = |part: &OsStr| part.as_encoded_bytes().starts_with(b".");
        match self {
            Self::Directory(dir) => path.strip_prefix(dir).is_ok_and(|below| {
                !below.as_os_str().is_empty() && crawl_ending(below).is_some() && !below.iter().any(is_hidden)
            }),
            Self::Pattern(pattern) => pattern.matches_path_with(path, MATCHING),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_have_gone_belong_to_the_directory_or_pattern_that_names_them() {
        use UnreadFile::{Gone, NotNamed, Unreachable};

        let home = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(home.path()).unwrap();
        for dir in ["in[8]/sub", "in[8]/empty", "in[8]/.hidden"] {
            fs::create_dir_all(root.join(dir)).unwrap();
        }
        for file in ["in[8]/b.jsonl", "in[8]/sub/b.jsonl", "in[8]/.hidden/b.jsonl"] {
            fs::write(root.join(file), "").unwrap();
        }
        let unread = |input: &str, path: &str| NamedInputs::of(&[root.join(input)]).unread(&root.join(path));
        for (input, path, expected) in [
            ("in[8]", "in[8]/a.jsonl", Gone),
            ("in[8]", "in[8]/sub/a.jsonl", Gone),
            ("in[8]", "in[8]/empty/a.jsonl", Unreachable),
            ("in[8]", "in[8]/unmounted/a.jsonl", Unreachable),
            ("in[8]", "in[8]/b.jsonl", NotNamed),
            ("in[8]", "in[8]/.hidden/a.jsonl", NotNamed),
            ("in[8]", "in[8]/a.json", NotNamed),
            ("in[8]", "other/a.jsonl", NotNamed),
            ("in[8]/b.jsonl", "in[8]/a.jsonl", NotNamed),
            ("in[[]8[]]/*.jsonl", "in[8]/a.jsonl", Gone),
            ("in[[]8[]]/*.jsonl", "in[8]/sub/a.jsonl", NotNamed),
            ("in[[]8[]]/*/*.jsonl", "in[8]/sub/a.jsonl", Gone),
            ("in[[]8[]]/**/*.jsonl", "in[8]/sub/a.jsonl", Gone),
            ("in[[]8[]]/**/*.jsonl", "in[8]/.hidden/a.jsonl", NotNamed),
            ("in[[]8[]]/*.jsonl", "in[8]/a.csv", NotNamed),
            ("gone.jsonl", "gone.jsonl", NotNamed),
        ] {
            assert_eq!(unread(input, path), expected, "{path}, of the input {input}");
        }
    }
}
