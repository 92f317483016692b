//! Fields of records that a user names, and that a file does not have: of one file that is an error, before anything of it is taken, because a
//! misspelt name would leave out what it means without a word. Of several files, at least one has to have each.

use std::collections::BTreeSet;
use std::fmt;

use doppel_crawls::record::{Field, FieldMap, Unmet};
use doppel_crawls::{InputOptions, Item};

use crate::sources::Source;
use doppel_terminal::exit::Failure;

/// How many fields that are there are told.
const ALIKE_TOLD: usize = 8;

/// Which of the fields that are named the files have so far.
pub struct NamedFields<'s> {
    sources: &'s [Source],
    options: &'s InputOptions,
    /// Those that a file has, or that one of the later files has.
    found: BTreeSet<Field>,
    /// Those that the last file has.
    of_file: BTreeSet<Field>,
}

/// What is said of a field that a file does not have.
#[derive(Debug)]
pub struct Lacks<'m> {
    unmet: &'m Unmet,
    map: &'m FieldMap,
}

impl<'s> NamedFields<'s> {
    /// Begins a check of the fields that `options` name against the files of `sources`.
    pub fn new(sources: &'s [Source], options: &'s InputOptions) -> Self {
        Self { sources, options, found: BTreeSet::new(), of_file: BTreeSet::new() }
    }

    /// A file that was read before had these.
    pub fn read_before(&mut self, had: &BTreeSet<Field>) {
        self.found.extend(had);
    }

    /// It is another file's turn.
    pub fn begin_file(&mut self) {
        self.of_file.clear();
    }

    /// Those that the file has whose turn it is.
    pub fn of_file(&self) -> BTreeSet<Field> {
        self.of_file.clone()
    }

    /// Takes note of the fields of a source, of which `number` is the place. What it lacks is to be told.
    ///
    /// # Errors
    /// When neither it nor any other source has a field that is named.
    pub fn note<'m>(&mut self, number: usize, map: &'m FieldMap) -> Result<Vec<Lacks<'m>>, Failure> {
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

/// What a file lacks of the fields that are named.
pub fn lacks(map: &FieldMap) -> impl Iterator<Item = Lacks<'_>> {
    map.unmet().iter().map(move |unmet| Lacks { unmet, map })
}

/// Refuses a file that lacks a field that is named.
///
/// # Errors
/// When it does.
pub fn require(map: &FieldMap, file: &dyn fmt::Display) -> Result<(), Failure> {
    match lacks(map).find(|lacks| !lacks.unmet.is_there) {
        Some(lacks) => Err(Failure::Usage(format!("{file}: {lacks}"))),
        None => Ok(()),
    }
}

/// The fields that a file has; none where it has no record.
fn those_in(map: &FieldMap) -> impl Iterator<Item = Field> {
    let is_unmet = |field: Field| map.unmet().iter().any(|unmet| unmet.field == field && !unmet.is_there);
    let fields = map.fields().map(|(field, ..)| field);
    fields.filter(move |field| map.is_of_records() && !is_unmet(*field))
}

/// Whether a source has a field by its first records. A pipe may have all: it can be looked at only when it is its turn.
fn may_have(source: &Source, options: &InputOptions, field: Field) -> bool {
    if source.is_read_once() {
        return true;
    }
    let first = source.open(options.clone()).ok().and_then(|mut input| input.next());
    matches!(first, Some(Item::Fields(map)) if those_in(&map).any(|there| there == field))
}

/// `the first records have no field ulr (--url-field); they have url, text`.
impl fmt::Display for Lacks<'_> {
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
