//! Decides whether the guessed id of a file names its records.
//!
//! A field that is called `id` may hold anything, such as the number of a topic. Before a guessed id names a
//! record, all ids of the file are therefore read. If an id repeats, the field is not an id, and the records
//! are named by their rows. The check compares hashes of ids in bounded memory. When two ids have the same
//! hash, it reads the file again and compares the ids themselves. The answer therefore does not depend on the
//! random key of the hashes.
//!
//! A collection stores the choice for each file under the name of the file. Otherwise a later version of the
//! file could give the same rows other names.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use doppel_streams::Reason;
use serde::{Deserialize, Serialize};

use super::ids::IdSet;
use super::name::RecordFile;

/// The maximum number of characters of an id in a message.
const SHOWN_ID_CHARS_MAX: usize = 60;

/// The choice of a name for the records without a URL in a file whose id is guessed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NamedBy {
    /// The id of the record names it.
    Id,
    /// The row of the record names it, because an id repeats in the file.
    Row,
}

/// A guessed field that is not an id, because a value of it repeats.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepeatedId {
    /// The path of the field.
    pub path: String,
    /// The first repetition in the file. `None` if an earlier run found it and the collection stores only the
    /// choice.
    pub first: Option<Repetition>,
}

/// Two rows that have the same id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repetition {
    /// The beginning of the id, at most 60 characters.
    pub id: String,
    /// The numbers of the rows, or of the lines of a file of JSON lines, counted from 1.
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

/// A reader that reads only the ids of a file of records.
pub(crate) trait IdRows {
    /// Reads the number of the next row and its id. `path` has the path of the id as its only element. The id
    /// is `None` if the row has none. Returns `None` at the end of the file, and at damage after which
    /// nothing can be read.
    fn next_id(&mut self, path: &[String]) -> Option<(u64, Option<String>)>;
}

/// Opens a file of records again, to read its ids.
pub(crate) type OpenIdRows = Arc<dyn Fn() -> Result<Box<dyn IdRows>, Reason> + Send + Sync>;

/// The result of checking all ids of a file.
#[derive(Debug, Clone)]
pub(super) enum IdCheck {
    /// No id repeats. `unremembered` ids were not compared with later ones, because there were too many.
    Unique { unremembered: u64 },
    /// At least one id repeats.
    Repeated(RepeatedId),
}

/// Checks whether an id repeats in a file. `path` is the path of the id, and at most `ids_max` ids are
/// remembered.
///
/// # Errors
/// If the file cannot be opened.
fn check_ids(open_ids: &OpenIdRows, path: &str, ids_max: usize) -> Result<IdCheck, Reason> {
    let mut ids = IdSet::new(ids_max);
    let wanted = [path.to_owned()];
    let mut rows = open_ids()?;
    while let Some((row, id)) = rows.next_id(&wanted) {
        let Some(id) = id else { continue };
        if ids.insert(&id) {
            continue;
        }
        // Two different ids may have the same hash, so the ids themselves are compared.
        if let Some(first) = first_row_with(open_ids, &wanted, &id)?.filter(|first| *first < row) {
            let first = Repetition { id: id.chars().take(SHOWN_ID_CHARS_MAX).collect(), rows: [first, row] };
            return Ok(IdCheck::Repeated(RepeatedId { path: path.to_owned(), first: Some(first) }));
        }
    }
    Ok(IdCheck::Unique { unremembered: ids.unremembered() })
}

/// The number of the first row that has this id.
fn first_row_with(open_ids: &OpenIdRows, path: &[String], wanted: &str) -> Result<Option<u64>, Reason> {
    let mut rows = open_ids()?;
    while let Some((row, id)) = rows.next_id(path) {
        if id.as_deref() == Some(wanted) {
            return Ok(Some(row));
        }
    }
    Ok(None)
}

/// Stores the choice for a file durably, before a record of the file is named.
type StoreChoice = Box<dyn Fn(&str, NamedBy) -> io::Result<()> + Send>;

/// The choices for files whose id is guessed. Clones share their content, so a run that reads a file several
/// times checks its ids once.
#[derive(Clone, Default)]
pub struct IdChoices(Arc<Mutex<Choices>>);

#[derive(Default)]
struct Choices {
    /// The results of the checks in this run, by the path under which messages show the file.
    checked: HashMap<PathBuf, IdCheck>,
    /// The stored choices of the collection, by [`RecordFile`]. `None` if the run has no collection.
    stored: Option<BTreeMap<String, NamedBy>>,
    store: Option<StoreChoice>,
}

impl fmt::Debug for IdChoices {
    /// Writes a constant. The options of an input, which contain the choices, look the same before and after
    /// a file was read.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("IdChoices")
    }
}

impl IdChoices {
    /// Connects the choices to a collection. `kept` are the choices that the collection stored in earlier
    /// runs. `keep` stores each further choice.
    pub fn keep_in(
        &self,
        kept: BTreeMap<String, NamedBy>,
        keep: Option<impl Fn(&str, NamedBy) -> io::Result<()> + Send + 'static>,
    ) {
        self.with(|choices| {
            choices.stored = Some(kept);
            choices.store = keep.map(|keep| Box::new(keep) as StoreChoice);
        });
    }

    /// The choices that the collection stores, by [`RecordFile`]. Empty if the run has no collection.
    #[must_use]
    pub fn kept(&self) -> BTreeMap<String, NamedBy> {
        self.with(|choices| choices.stored.clone().unwrap_or_default())
    }

    /// The choice that the collection stores for a file.
    pub(super) fn stored_for(&self, file: &RecordFile) -> Option<NamedBy> {
        self.with(|choices| choices.stored.as_ref()?.get(file.as_str()).copied())
    }

    /// Checks the ids of a file, and stores the resulting choice in the collection. Messages show the file as
    /// `shown`. `path` is the path of the id, and at most `ids_max` ids are remembered.
    ///
    /// # Errors
    /// If the file cannot be opened, or the choice cannot be stored.
    pub(super) fn choose(
        &self,
        (shown, file): (&Path, &RecordFile),
        open_ids: &OpenIdRows,
        (path, ids_max): (&str, usize),
    ) -> Result<IdCheck, Reason> {
        let known = self.with(|choices| choices.checked.get(shown).cloned());
        let checked = match known {
            Some(known) => known,
            None => check_ids(open_ids, path, ids_max)?,
        };
        let by = match checked {
            IdCheck::Unique { .. } => NamedBy::Id,
            IdCheck::Repeated(_) => NamedBy::Row,
        };
        self.with(|choices| {
            if let Some(stored) = &mut choices.stored {
                choices
                    .store
                    .as_ref()
                    .map_or(Ok(()), |store| store(file.as_str(), by))
                    .map_err(Reason::Io)?;
                stored.insert(file.as_str().to_owned(), by);
            }
            choices.checked.insert(shown.to_owned(), checked.clone());
            Ok(checked)
        })
    }

    fn with<T>(&self, access: impl FnOnce(&mut Choices) -> T) -> T {
        access(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct TestRows {
        ids: std::vec::IntoIter<Option<&'static str>>,
        number: u64,
    }

    impl IdRows for TestRows {
        fn next_id(&mut self, _path: &[String]) -> Option<(u64, Option<String>)> {
            let id = self.ids.next()?;
            self.number += 1;
            Some((self.number, id.map(str::to_owned)))
        }
    }

    /// A file whose rows have these ids.
    fn file_of(ids: Vec<Option<&'static str>>) -> OpenIdRows {
        Arc::new(
            move || Ok(Box::new(TestRows { ids: ids.clone().into_iter(), number: 0 }) as Box<dyn IdRows>),
        )
    }

    #[test]
    fn the_first_repetition_is_found() {
        let check = |ids, max| check_ids(&file_of(ids), "id", max).unwrap();
        let ids = vec![Some("a"), None, Some("b"), None, Some("a"), Some("b")];
        let IdCheck::Repeated(repeated) = check(ids.clone(), 10) else {
            panic!("the repeated id was not found")
        };
        assert_eq!(repeated.to_string(), r#"id is no id (rows 1 and 5 have "a")"#);
        assert!(matches!(check(ids[..4].to_vec(), 10), IdCheck::Unique { unremembered: 0 }));
        assert!(matches!(check(ids, 0), IdCheck::Unique { unremembered: 4 }));
    }

    #[test]
    fn a_choice_is_stored_and_the_ids_are_not_checked_again() {
        let choices = IdChoices::default();
        let (file, shown) = (RecordFile::new(Path::new("a.jsonl")), Path::new("a.jsonl"));
        let repeated = file_of(vec![Some("a"), Some("a")]);
        let stored = Arc::new(Mutex::new(Vec::new()));
        let store = Arc::clone(&stored);
        choices.keep_in(
            BTreeMap::new(),
            Some(move |file: &str, by| {
                store.lock().unwrap().push((file.to_owned(), by));
                Ok(())
            }),
        );
        assert_eq!(choices.stored_for(&file), None);
        choices.choose((shown, &file), &repeated, ("id", 10)).unwrap();
        assert_eq!(choices.stored_for(&file), Some(NamedBy::Row));
        assert_eq!(*stored.lock().unwrap(), [("record:a.jsonl".to_owned(), NamedBy::Row)]);
        // A second reading in the same run uses the result of the first check.
        let unreadable: OpenIdRows = Arc::new(|| Err(Reason::Truncated));
        assert!(matches!(choices.choose((shown, &file), &unreadable, ("id", 10)), Ok(IdCheck::Repeated(_))));
    }
}
