//! Checks the directories of results before the inputs are read, because reading may take hours.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use doppel_crawls::Limits;
use doppel_crawls::copy::{self, Sides};
use doppel_inputs::arguments::InputArgs;
use doppel_inputs::sources::{self, InputSource, SourceKind};
use doppel_inputs::version::Version;
use doppel_model::Timestamp;
use doppel_snapshot::create_directories;
use doppel_terminal::exit::Failure;
use doppel_terminal::output::say;

use super::input_paths::{InputPaths, canonical_paths};
use super::locks::Locks;
use super::part_file::{PartFile, Prepared};
use super::places::{places, resolved};
use super::{ANNOTATED_RECORD_BYTES, GROUPING_PAGE_BYTES, MEMORY_TOLD, PAGE_BYTES, RECORD_BYTES, ResultArgs};

/// The results that a run writes: directories, paths and options, after all checks.
#[derive(Debug)]
pub struct Results {
    /// The directory of each side.
    pub(super) dirs: Sides<PathBuf>,
    /// Path of the results of each source, relative to a directory, and the version of the source's file.
    pub(super) places: Vec<(PathBuf, Option<Version>)>,
    pub(super) annotate: bool,
    /// Whether the run writes a collection, which still has the pages of inputs that are no longer readable.
    pub(super) is_collection: bool,
    /// Locks on the directories, held until the end. Without them, two runs would remove each other's files.
    pub(super) _locks: Locks,
}

impl Results {
    /// Checks and locks the directories. Returns `None` if no results are wanted. `others` are the other
    /// outputs of the command, each with its option, and `data` is the data directory.
    ///
    /// # Errors
    /// If a directory cannot be written, or a file in it would replace an input or another output.
    pub fn check(
        args: &ResultArgs,
        inputs: &InputArgs,
        others: &[(&str, &Path)],
        data: Option<&Path>,
    ) -> anyhow::Result<Option<Self>> {
        args.check_options()?;
        if !args.is_wanted() {
            return Ok(None);
        }
        let sources = &inputs.sources()?.all;
        let relative = places(sources, &inputs.inputs)?;
        let mut dirs = Vec::new();
        for (option, dir) in args.dirs() {
            dirs.push((option, dir, directory(dir).with_context(|| cannot(dir))?));
        }
        for (at, (option, _, dir)) in dirs.iter().enumerate() {
            for (other_option, _, other) in &dirs[at + 1..] {
                let is_nested = dir.starts_with(other) || other.starts_with(dir);
                let wrong = || {
                    usage(format!("{option} and {other_option} name two directories, neither in the other"))
                };
                ensure!(!is_nested, wrong());
            }
        }
        let taken = InputPaths::by(sources)?;
        let mut beside: Vec<(&str, PathBuf)> = Vec::new();
        for (option, path) in others {
            beside.extend(canonical_paths(path)?.into_iter().map(|path| (*option, path)));
        }
        if let Some(data) = data {
            beside.push(("--data", directory(data)?));
        }
        for (option, path) in &beside {
            if let Some(pages) = taken.pages_around(path) {
                return Err(usage(format!("{option} is inside the input {}", pages.display())).into());
            }
        }
        let mut elsewhere = BTreeSet::new();
        for (option, given, dir) in &dirs {
            let shown = given.display();
            for input in inputs.inputs.iter().filter(|input| input.is_dir()) {
                let input = fs::canonicalize(input)?;
                let is_inside = dir.starts_with(&input);
                ensure!(
                    !is_inside,
                    usage(format!("{option} {shown} is inside the input {}", input.display()))
                );
            }
            if let Some(data) = data {
                let is_inside = dir.starts_with(directory(data)?);
                ensure!(!is_inside, usage(format!("{option} {shown} is inside the data directory")));
            }
            for (other, path) in &beside {
                ensure!(!path.starts_with(dir), usage(format!("{other} is inside {option} {shown}")));
            }
            for (place, source) in relative.iter().zip(sources) {
                let path = resolved(&dir.join(place)).with_context(|| cannot(given))?;
                let wrong = |what: &str| {
                    let path = path.display();
                    usage(format!("{option} {shown} would put results at {path}, which {what}"))
                };
                if let Some(input) = taken.meets(&path, source) {
                    let is_it = input == path && !source.is_pages();
                    let input = format!("is in, or around, the input {}", input.display());
                    return Err(wrong(if is_it { "is an input" } else { &input }).into());
                }
                let pattern = inputs.inputs.iter().find(|input| sources::matches_pattern(input, &path));
                ensure!(pattern.is_none(), wrong("also matches the pattern of an input"));
                // A link in the directory can lead elsewhere.
                if !path.starts_with(dir) {
                    let other = dirs.iter().find(|(_, _, other)| path.starts_with(other));
                    ensure!(other.is_none(), wrong("is a place of another option's results"));
                    elsewhere.extend(path.parent().map(Path::to_owned));
                }
            }
        }
        let mut locks = Locks::default();
        for (_, given, dir) in &dirs {
            create_directories(given).with_context(|| cannot(given))?;
            locks.lock(dir, given)?;
            Prepared::default().prepare(given, given).with_context(|| cannot(given))?;
            // Try to write. Dropping the part file removes it.
            PartFile::begin(&given.join("results")).with_context(|| cannot(given))?;
        }
        for dir in elsewhere.iter().filter(|dir| dir.is_dir()) {
            locks.lock(dir, dir)?;
        }
        check_types(inputs, sources)?;
        if args.annotate {
            check_annotations(inputs, sources)?;
        }
        let seen = relative.into_iter().zip(sources);
        Ok(Some(Self {
            dirs: Sides {
                kept: args.kept.clone(),
                removed: args.removed.clone(),
                superseded: args.superseded.clone(),
            },
            places: seen.map(|(place, source)| (place, source.version())).collect(),
            annotate: args.annotate,
            is_collection: data.is_some(),
            _locks: locks,
        }))
    }

    /// The directories of results, each with its option.
    pub fn directories(&self) -> impl Iterator<Item = (&'static str, PathBuf)> {
        let Sides { kept, removed, superseded } = &self.dirs;
        let dirs = [("--kept", kept), ("--removed", removed), ("--superseded", superseded)];
        dirs.into_iter().filter_map(|(option, dir)| Some((option, dir.clone()?)))
    }

    /// The files and directories that the run writes, one for each input, with the option of its directory.
    pub fn paths(&self) -> impl Iterator<Item = (&'static str, PathBuf)> {
        self.directories()
            .flat_map(|(option, dir)| self.places.iter().map(move |(place, _)| (option, dir.join(place))))
    }

    /// Reports on standard error how much memory a run takes, unless the inputs are small. `bytes` is their
    /// size.
    pub fn say_memory(&self, bytes: u64) {
        if bytes < MEMORY_TOLD {
            return;
        }
        let record = if self.annotate { ANNOTATED_RECORD_BYTES } else { RECORD_BYTES };
        say!(
            "doppel: memory: about {} MB for each million pages while they are grouped ({} MB of them for the results), then {record} MB, \
             and a row group or record at a time",
            GROUPING_PAGE_BYTES + PAGE_BYTES + record,
            PAGE_BYTES + record
        );
    }
}

/// Checks that files have only types of columns that can be written.
fn check_types(inputs: &InputArgs, sources: &[InputSource]) -> anyhow::Result<()> {
    let options = inputs.records.fields.options(Limits::at(Timestamp::now()));
    for source in sources.iter().filter(|source| is_file(source)) {
        if let SourceKind::File(path, name) = &source.kind {
            copy::check(path, name.clone(), &options)?;
        }
    }
    Ok(())
}

/// Refuses inputs that cannot be annotated: directories of pages, and ARC files.
fn check_annotations(inputs: &InputArgs, sources: &[InputSource]) -> anyhow::Result<()> {
    let options = inputs.records.fields.options(Limits::at(Timestamp::now()));
    for source in sources {
        let path = source.path();
        // An input that cannot be opened is reported when it is read.
        let has_no_place = source.is_pages()
            || is_file(source) && source.open(options.clone()).is_ok_and(|input| !input.takes_annotations());
        let path = path.display();
        ensure!(
            !has_no_place,
            usage(format!("--annotate has no place in files of pages or of ARC, as in {path}"))
        );
    }
    Ok(())
}

/// The canonical path of a directory, which need not exist.
fn directory(dir: &Path) -> io::Result<PathBuf> {
    fs::canonicalize(dir).or_else(|_| resolved(dir))
}

/// Whether a source is a regular file, which can be opened more than once.
fn is_file(source: &InputSource) -> bool {
    matches!(&source.kind, SourceKind::File(path, _) if path.is_file())
}

fn cannot(dir: &Path) -> String {
    format!("cannot write to {}", dir.display())
}

fn usage(text: impl Into<String>) -> Failure {
    Failure::Usage(text.into())
}
