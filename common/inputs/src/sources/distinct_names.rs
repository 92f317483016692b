//! Gives distinct names to the files of a run that judges each record on its own.
//!
//! A file that is itself an input is named by the last part of its path. So `a/x.parquet` and `b/x.parquet`
//! would have the same name, and so would their records. A run that judges pages wants this: the records of
//! the later file are new versions of the records of the earlier file.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use doppel_crawls::record::RecordFile;

use super::{InputSource, STANDARD_NAME, SourceKind};

/// Renames files that share a name, with each other or with standard input. Each group of such files gets the
/// shortest ends of their paths that are distinct from each other and from the names of all other files. A
/// file that is given twice keeps one name.
pub(super) fn give_distinct_names(sources: &mut [InputSource]) {
    let mut alike: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (number, source) in sources.iter().enumerate() {
        if let SourceKind::File(_, name) = &source.kind {
            alike.entry(name.as_str().to_owned()).or_default().push(number);
        }
    }
    let mut taken: HashSet<String> = alike.keys().cloned().collect();
    let has_standard = sources.iter().any(|source| matches!(source.kind, SourceKind::Standard));
    for (name, numbers) in alike {
        let others = usize::from(has_standard && name == STANDARD_NAME);
        if numbers.len() + others < 2 {
            continue;
        }
        let paths: Vec<_> = numbers.iter().map(|number| whole_path(sources[*number].path())).collect();
        let files = paths.iter().collect::<HashSet<_>>().len();
        let longest = paths.iter().map(|path| path.components().count()).max().unwrap_or_default();
        let names =
            (2..=longest).map(|parts| paths.iter().map(|path| ending(path, parts)).collect::<Vec<_>>());
        let are_distinct = |names: &Vec<RecordFile>| {
            let distinct: HashSet<_> = names.iter().map(RecordFile::as_str).collect();
            distinct.len() == files && distinct.iter().all(|name| !taken.contains(*name))
        };
        let Some(names) = names.filter(|_| files + others > 1).find(are_distinct) else { continue };
        for (number, distinct) in numbers.into_iter().zip(names) {
            taken.insert(distinct.as_str().to_owned());
            if let SourceKind::File(_, name) = &mut sources[number].kind {
                *name = distinct;
            }
        }
    }
}

/// Path of a file from the root. Links to its directory are followed, but not a link to the file itself,
/// because the user knows the file by the name of the link.
fn whole_path(path: &Path) -> PathBuf {
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let dir = fs::canonicalize(dir).unwrap_or_else(|_| dir.to_owned());
    path.file_name().map_or_else(|| dir.clone(), |name| dir.join(name))
}

/// Name of a file that consists of the last `parts` parts of its path.
fn ending(path: &Path, parts: usize) -> RecordFile {
    let all = path.components().count();
    RecordFile::new(&path.components().skip(all.saturating_sub(parts)).collect::<PathBuf>())
}
