//! Remembers how the records of each file are named if they have no URL and their id field was guessed: by
//! their ids, or by their rows because an id repeats.
//!
//! The choice is made when a collection reads a file of a name for the first time. The data directory keeps
//! the choice, so that later versions of the file give their records the same names. A choice is on disk
//! before it names a record.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use anyhow::Context;
use doppel_crawls::record::{IdChoices, NamedBy};
use doppel_terminal::atomic_file::{self, ExistingFile};
use serde::{Deserialize, Serialize};

/// Name of the list of choices in a data directory, with a line of JSON for each file.
pub(crate) const NAME: &str = "named_by.jsonl";
/// Prefix of the temporary names under which the whole list is written.
const ASIDE: &str = "named_by.jsonl.new";

/// Whether a name is the name of the list, or a temporary name of it.
pub(crate) fn is_name(name: &OsStr) -> bool {
    name == NAME || name.as_encoded_bytes().starts_with(ASIDE.as_bytes())
}

/// A line of the list.
#[derive(Serialize, Deserialize)]
struct Line {
    /// Prefix of the names of the file's records.
    records: String,
    named_by: NamedBy,
}

/// Loads the choices of a collection into `choices`, and appends every new choice to the list in its
/// directory. Only the process that holds the directory may call this.
///
/// # Errors
/// If the list cannot be read, or a line of it is damaged.
pub fn keep_in(dir: &Path, choices: &IdChoices) -> anyhow::Result<()> {
    let path = dir.join(NAME);
    let text = match fs::read_to_string(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        read => read.with_context(|| format!("cannot read {}", path.display()))?,
    };
    // A line without an end was never durable, so no record was named by it.
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    let mut kept = BTreeMap::new();
    for line in whole.lines() {
        let line = serde_json::from_str::<Line>(line);
        let Line { records, named_by } =
            line.with_context(|| format!("{} is damaged; restore it from a backup", path.display()))?;
        kept.insert(records, named_by);
    }
    let is_torn = whole.len() + 1 < text.len();
    if is_torn {
        write_new(&path, &kept).with_context(|| format!("cannot write {}", path.display()))?;
    }
    let dir = dir.to_owned();
    let keep = move |records: &str, named_by| {
        let is_new = !path.exists();
        let mut file = File::options().create(true).append(true).open(&path)?;
        let length = file.metadata()?.len();
        let written = file.write_all(&line(records, named_by)?).and_then(|()| file.sync_data());
        written.inspect_err(|_| {
            // Without truncation, the next line would continue this incomplete one.
            let _ = file.set_len(length);
        })?;
        if is_new { File::open(&dir)?.sync_all() } else { Ok(()) }
    };
    choices.keep_in(kept, Some(keep));
    Ok(())
}

/// Starts `choices` for a new collection. The command [writes](write_new) them together with the whole
/// collection.
pub fn keep_for_new(choices: &IdChoices) {
    choices.keep_in(BTreeMap::new(), None::<fn(&str, NamedBy) -> io::Result<()>>);
}

/// Writes the whole list.
///
/// # Errors
/// If the list cannot be written.
pub fn write_new(path: &Path, choices: &BTreeMap<String, NamedBy>) -> io::Result<()> {
    let lines = choices.iter().map(|(records, named_by)| line(records, *named_by));
    let lines: Vec<_> = lines.collect::<io::Result<_>>()?;
    atomic_file::write(path, ASIDE, &lines.concat(), ExistingFile::Replace)
}

fn line(records: &str, named_by: NamedBy) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(&Line { records: records.to_owned(), named_by })?;
    line.push(b'\n');
    Ok(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_are_kept_for_the_next_run() {
        let home = tempfile::tempdir().unwrap();
        let kept = || {
            let choices = IdChoices::default();
            keep_in(home.path(), &choices).map(|()| choices.kept())
        };
        assert_eq!(kept().unwrap(), BTreeMap::new());
        let all =
            BTreeMap::from([("record:a".to_owned(), NamedBy::Row), ("record:b".to_owned(), NamedBy::Id)]);
        let path = home.path().join(NAME);
        write_new(&path, &all).unwrap();
        assert_eq!(kept().unwrap(), all);
        // A torn line was never used.
        let mut text = fs::read_to_string(&path).unwrap();
        text.push_str("{\"records\":\"rec");
        fs::write(&path, &text).unwrap();
        assert_eq!(kept().unwrap(), all);
        assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), 2);
        fs::write(&path, "x\n").unwrap();
        assert!(kept().is_err());
    }
}
