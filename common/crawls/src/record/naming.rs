//! Whether the guessed id of a file names its records.
//!
//! A field that is called `id` may hold anything, such as the number of a topic. Before the first record is named by a guessed id, all ids of the
//! file are read: if one repeats, the field is no id, and records are named by their rows. Ids are compared by hashes, in bounded memory; two ids of
//! one hash are read again and compared as they are, so the answer does not depend on the key of the hashes.
//!
//! A collection keeps what was chosen for a file, by the name of the file: otherwise the rows of a later version of the file would have other names.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use super::ids::Ids;
use super::name::RecordFile;
use crate::error::Reason;

/// How much of an id is told, in characters.
const ID_TOLD: usize = 60;

/// What names the records of a file that have no URL, where its id was guessed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NamedBy {
    /// Their ids.
    Id,
    /// Their rows, because an id repeats.
    Row,
}

/// A guessed id that is none, because a value repeats.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepeatedId {
    /// The path of the field.
    pub path: String,
    /// The first repetition; none where an earlier run has met it.
    pub first: Option<Repetition>,
}

/// Two rows that have one id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repetition {
    /// The beginning of the id.
    pub id: String,
    /// The rows, or lines of JSON lines.
    pub rows: [u64; 2],
}

impl fmt::Display for RepeatedId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, first } = self;
        match first {
            Some(Repetition { id, rows: [first, second] }) => {
                write!(f, "{path} is no id (rows {first} and {second} have {id:?})")
            }
            None => write!(f, "{path} was no id in the first run"),
        }
    }
}

/// A file of records that is read for its ids alone.
pub(crate) trait IdRows {
    /// The next row and its id, at the only path of `path`. `None` at the end of the file, and where it cannot be read further.
    fn next_id(&mut self, path: &[String]) -> Option<(u64, Option<String>)>;
}

/// Opens a file of records once more.
pub(crate) type Again = Arc<dyn Fn() -> Result<Box<dyn IdRows>, Reason> + Send + Sync>;

/// What the ids of a file are.
#[derive(Debug, Clone)]
pub(super) enum Checked {
    /// Each is there once, as far as they were remembered.
    Unique { unremembered: u64 },
    /// One is there twice.
    Repeated(RepeatedId),
}

/// Reads the ids of a file.
///
/// # Errors
/// When it cannot be opened.
fn check(again: &Again, path: &str, ids_max: usize) -> Result<Checked, Reason> {
    let mut ids = Ids::new(ids_max);
    let wanted = [path.to_owned()];
    let mut rows = again()?;
    while let Some((row, id)) = rows.next_id(&wanted) {
        let Some(id) = id else { continue };
        if ids.note(&id) {
            continue;
        }
        // Two ids may have one hash.
        if let Some(first) = first_with(again, &wanted, &id)?.filter(|first| *first < row) {
            let first = Repetition { id: id.chars().take(ID_TOLD).collect(), rows: [first, row] };
            return Ok(Checked::Repeated(RepeatedId { path: path.to_owned(), first: Some(first) }));
        }
    }
    Ok(Checked::Unique { unremembered: ids.unremembered() })
}

/// The first row with an id.
fn first_with(again: &Again, path: &[String], wanted: &str) -> Result<Option<u64>, Reason> {
    let mut rows = again()?;
    while let Some((row, id)) = rows.next_id(path) {
        if id.as_deref() == Some(wanted) {
            return Ok(Some(row));
        }
    }
    Ok(None)
}

/// Takes down what was chosen for a file, before a record of it is named.
type Keep = Box<dyn Fn(&str, NamedBy) -> io::Result<()> + Send>;

/// What was chosen for files with a guessed id. Copies share one memory, so that a run that reads a file several times looks at its ids once.
#[derive(Clone, Default)]
pub struct IdChoices(Arc<Mutex<Choices>>);

#[derive(Default)]
struct Choices {
    /// What the ids of files are, by the path at which messages show the file.
    checked: HashMap<PathBuf, Checked>,
    /// What a collection has chosen, by how the names of a file's records begin. None without a collection.
    kept: Option<BTreeMap<String, NamedBy>>,
    keep: Option<Keep>,
}

impl fmt::Debug for IdChoices {
    /// Always the same: how a file is read does not depend on what was read before.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("IdChoices")
    }
}

impl IdChoices {
    /// From here on a collection keeps what is chosen, and has chosen this before. `keep` writes it down.
    pub fn keep_in(
        &self,
        kept: BTreeMap<String, NamedBy>,
        keep: Option<impl Fn(&str, NamedBy) -> io::Result<()> + Send + 'static>,
    ) {
        self.with(|choices| {
            choices.kept = Some(kept);
            choices.keep = keep.map(|keep| Box::new(keep) as Keep);
        });
    }

    /// What the collection has chosen.
    #[must_use]
    pub fn kept(&self) -> BTreeMap<String, NamedBy> {
        self.with(|choices| choices.kept.clone().unwrap_or_default())
    }

    /// What the collection has chosen for a file.
    pub(super) fn kept_for(&self, file: &RecordFile) -> Option<NamedBy> {
        self.with(|choices| choices.kept.as_ref()?.get(file.as_str()).copied())
    }

    /// Finds out what the ids of a file are, and has the collection keep it.
    ///
    /// # Errors
    /// When the file cannot be opened, or the choice not be written down.
    pub(super) fn choose(
        &self,
        (shown, file): (&Path, &RecordFile),
        again: &Again,
        (path, ids_max): (&str, usize),
    ) -> Result<Checked, Reason> {
        let known = self.with(|choices| choices.checked.get(shown).cloned());
        let checked = match known {
            Some(known) => known,
            None => check(again, path, ids_max)?,
        };
        let by = match checked {
            Checked::Unique { .. } => NamedBy::Id,
            Checked::Repeated(_) => NamedBy::Row,
        };
        self.with(|choices| {
            if let Some(kept) = &mut choices.kept {
                choices.keep.as_ref().map_or(Ok(()), |keep| keep(file.as_str(), by)).map_err(Reason::Io)?;
                kept.insert(file.as_str().to_owned(), by);
            }
            choices.checked.insert(shown.to_owned(), checked.clone());
            Ok(checked)
        })
    }

    fn with<T>(&self, what: impl FnOnce(&mut Choices) -> T) -> T {
        what(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Rows(std::vec::IntoIter<Option<&'static str>>, u64);

    impl IdRows for Rows {
        fn next_id(&mut self, _path: &[String]) -> Option<(u64, Option<String>)> {
            let id = self.0.next()?;
            self.1 += 1;
            Some((self.1, id.map(str::to_owned)))
        }
    }

    fn of(ids: Vec<Option<&'static str>>) -> Again {
        Arc::new(move || Ok(Box::new(Rows(ids.clone().into_iter(), 0)) as Box<dyn IdRows>))
    }

    #[test]
    fn the_first_repetition_is_found() {
        let check = |ids, max| check(&of(ids), "id", max).unwrap();
        let ids = vec![Some("a"), None, Some("b"), None, Some("a"), Some("b")];
        let Checked::Repeated(repeated) = check(ids.clone(), 10) else { panic!() };
        assert_eq!(repeated.to_string(), r#"id is no id (rows 1 and 5 have "a")"#);
        assert!(matches!(check(ids[..4].to_vec(), 10), Checked::Unique { unremembered: 0 }));
        assert!(matches!(check(ids, 0), Checked::Unique { unremembered: 4 }));
    }

    #[test]
    fn a_collection_keeps_the_first_choice() {
        let choices = IdChoices::default();
        let (file, shown) = (RecordFile::new(Path::new("a.jsonl")), Path::new("a.jsonl"));
        let repeated = of(vec![Some("a"), Some("a")]);
        let told = Arc::new(Mutex::new(Vec::new()));
        let tell = Arc::clone(&told);
        choices.keep_in(
            BTreeMap::new(),
            Some(move |file: &str, by| {
                tell.lock().unwrap().push((file.to_owned(), by));
                Ok(())
            }),
        );
        assert_eq!(choices.kept_for(&file), None);
        choices.choose((shown, &file), &repeated, ("id", 10)).unwrap();
        assert_eq!(choices.kept_for(&file), Some(NamedBy::Row));
        assert_eq!(*told.lock().unwrap(), [("record:a.jsonl".to_owned(), NamedBy::Row)]);
        // A second reading of the run does not look again.
        let unread: Again = Arc::new(|| Err(Reason::Truncated));
        assert!(matches!(choices.choose((shown, &file), &unread, ("id", 10)), Ok(Checked::Repeated(_))));
    }
}
