//! Directories and patterns that a run names as inputs. A crawl file that an earlier run read below such a directory, or by such a pattern,
//! may have gone since. The results of that file are stale, because the run has read everything that the input names.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use glob::Pattern;

use doppel_inputs::sources::{before_pattern, is_pattern};

/// An input that names several files.
#[derive(Debug)]
enum NamedInput {
    Directory(PathBuf),
    Pattern(Pattern),
}

/// The inputs of a run that name several files.
#[derive(Debug, Default)]
pub(in crate::results) struct NamedInputs(Vec<NamedInput>);

impl NamedInputs {
    /// The directories and patterns among the inputs of a command.
    pub(in crate::results) fn of(inputs: &[PathBuf]) -> Self {
        Self(inputs.iter().filter_map(|input| NamedInput::of(input)).collect())
    }

    /// Whether one of the inputs names a file that is not there any more. `path` has no symbolic links.
    pub(super) fn names_missing(&self, path: &Path) -> bool {
        let is_named = self.0.iter().any(|input| match input {
            NamedInput::Directory(dir) => path.starts_with(dir) && path != dir,
            NamedInput::Pattern(pattern) => pattern.matches_path(path),
        });
        is_named && fs::symlink_metadata(path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
    }
}

impl NamedInput {
    /// `None` of an input that names one file, or an object in a store.
    fn of(input: &Path) -> Option<Self> {
        if fs::metadata(input).is_ok() {
            return fs::canonicalize(input).ok().filter(|path| path.is_dir()).map(Self::Directory);
        }
        let plain = Some(before_pattern(input)).filter(|_| is_pattern(input))?;
        // A pattern may begin with `./`, which is not part of the plain directory.
        let below = input.strip_prefix("./").unwrap_or(input).strip_prefix(&plain).ok()?;
        let dir = if plain.as_os_str().is_empty() { Path::new(".") } else { &plain };
        let dir = fs::canonicalize(dir).ok()?;
        let whole = Path::new(&Pattern::escape(dir.to_str()?)).join(below);
        Pattern::new(whole.to_str()?).ok().map(Self::Pattern)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_have_gone_belong_to_the_directory_or_pattern_that_names_them() {
        let home = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(home.path()).unwrap();
        fs::create_dir_all(root.join("in[8]/sub")).unwrap();
        fs::write(root.join("in[8]/b.jsonl"), "").unwrap();
        let names = |inputs: &[&str], path: &str| {
            let inputs: Vec<PathBuf> = inputs.iter().map(|input| root.join(input)).collect();
            NamedInputs::of(&inputs).names_missing(&root.join(path))
        };
        assert!(names(&["in[8]"], "in[8]/a.jsonl") && names(&["in[8]"], "in[8]/sub/a.jsonl"));
        assert!(!names(&["in[8]"], "in[8]/b.jsonl"), "a file that is there has not gone");
        assert!(!names(&["in[8]"], "other/a.jsonl"), "a file elsewhere is not named");
        assert!(!names(&["in[8]/b.jsonl"], "in[8]/a.jsonl"), "a file does not name the files beside it");
        assert!(names(&["in[[]8[]]/*.jsonl"], "in[8]/a.jsonl"));
        assert!(!names(&["in[[]8[]]/*.jsonl"], "in[8]/a.csv"));
        assert!(!names(&["gone.jsonl"], "gone.jsonl"), "an input that is not there is an error elsewhere");
    }
}
