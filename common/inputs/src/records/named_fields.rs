//! Checks that the files have the fields that the user names. A misspelt name would otherwise leave out the
//! content of the field without any message. If there is a single file, the check fails before any record of
//! the file is used. Of several files, at least one must have each named field.

use std::collections::BTreeSet;
use std::fmt;

use doppel_crawls::record::{Field, FieldMap, Unmet};
use doppel_crawls::{InputOptions, Item};

use crate::sources::InputSource;
use doppel_terminal::exit::Failure;

/// Most existing fields that a message lists.
const ALIKE_TOLD: usize = 8;

/// Tracks which fields the files have, to find named fields that no file has.
pub struct NamedFields<'s> {
    sources: &'s [InputSource],
    options: &'s InputOptions,
    /// Fields that a file has which was read, or that was found in a later file.
    found: BTreeSet<Field>,
    /// Fields that the current file has.
    of_file: BTreeSet<Field>,
}

/// A named field that a file lacks. Displays as a message for the user.
#[derive(Debug)]
pub struct MissingField<'m> {
    unmet: &'m Unmet,
    map: &'m FieldMap,
}

impl<'s> NamedFields<'s> {
    /// Begins a check of the fields that `options` name against the files of `sources`.
    pub fn new(sources: &'s [InputSource], options: &'s InputOptions) -> Self {
        Self { sources, options, found: BTreeSet::new(), of_file: BTreeSet::new() }
    }

    /// Adds the fields of a file that an earlier run has read.
    pub fn read_before(&mut self, had: &BTreeSet<Field>) {
        self.found.extend(had);
    }

    /// Begins the next file, whose fields are not known yet.
    pub fn begin_file(&mut self) {
        self.of_file.clear();
    }

    /// Fields that the current file has.
    pub fn of_file(&self) -> BTreeSet<Field> {
        self.of_file.clone()
    }

    /// Adds the fields of a source, whose index is `number`. Returns the named fields that the source lacks,
    /// so that the caller can show them.
    ///
    /// # Errors
    /// [`Failure::Usage`] if neither this source nor any other has a named field.
    pub fn note<'m>(&mut self, number: usize, map: &'m FieldMap) -> Result<Vec<MissingField<'m>>, Failure> {
        self.of_file = those_in(map).collect();
        self.found.extend(&self.of_file);
        for lacks in lacks(map) {
            let field = lacks.unmet.field;
            if lacks.unmet.is_there || self.found.contains(&field) {
                continue;
            }
            let later = self.sources.get(number + 1..).unwrap_or_default();
            if !later.iter().any(|source| may_have(source, self.options, field)) {
                let path = self.sources.get(number).map(|source| source.path().display().to_string());
                let others = if self.sources.len() > 1 { ", nor has any other file" } else { "" };
                return Err(Failure::Usage(format!("{}: {lacks}{others}", path.unwrap_or_default())));
            }
            self.found.insert(field);
        }
        Ok(lacks(map).collect())
    }
}

/// Named fields that a file lacks.
pub fn lacks(map: &FieldMap) -> impl Iterator<Item = MissingField<'_>> {
    map.unmet().iter().map(move |unmet| MissingField { unmet, map })
}

/// Refuses a file that lacks a named field.
///
/// # Errors
/// [`Failure::Usage`] if the file lacks such a field.
pub fn require(map: &FieldMap, file: &dyn fmt::Display) -> Result<(), Failure> {
    match lacks(map).find(|lacks| !lacks.unmet.is_there) {
        Some(lacks) => Err(Failure::Usage(format!("{file}: {lacks}"))),
        None => Ok(()),
    }
}

/// Fields that a file has. Empty if the file has no record.
fn those_in(map: &FieldMap) -> impl Iterator<Item = Field> {
    let is_unmet = |field: Field| map.unmet().iter().any(|unmet| unmet.field == field && !unmet.is_there);
    let fields = map.fields().map(|at| at.field);
    fields.filter(move |field| map.is_of_records() && !is_unmet(*field))
}

/// Whether a source has a field, judging by its first records. Always true for a pipe, which can be read only
/// when its turn comes.
fn may_have(source: &InputSource, options: &InputOptions, field: Field) -> bool {
    if source.is_read_once() {
        return true;
    }
    let first = source.open(options.clone()).ok().and_then(|mut input| input.next());
    matches!(first, Some(Item::Fields(map)) if those_in(&map).any(|there| there == field))
}

/// Formats a message such as `the first records have no field ulr (--url-field); they have url, text`.
impl fmt::Display for MissingField<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { unmet: Unmet { field, path, is_there }, map } = self;
        let option = field.option().unwrap_or_default();
        if *is_there {
            return write!(f, "the field {path} ({option}) has no value in the first records");
        }
        write!(f, "the first records have no field {path} ({option})")?;
        let alike = map.alike(path);
        if alike.is_empty() {
            return Ok(());
        }
        f.write_str("; they have ")?;
        for (at, other) in alike.iter().take(ALIKE_TOLD).enumerate() {
            write!(f, "{}{other}", if at > 0 { ", " } else { "" })?;
        }
        let more = alike.len().saturating_sub(ALIKE_TOLD);
        if more > 0 {
            write!(f, " and {more} more")?;
        }
        self.map.separator_hint().map_or(Ok(()), |hint| write!(f, "; {hint}"))
    }
}
