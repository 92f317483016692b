//! Resolves the inputs of a command into sources: files, standard input, directories of pages, and objects in
//! stores. A pattern stands for the files that match it, and a directory of crawl files for its crawl files.

mod distinct_names;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::FileTypeExt;
use std::path::{Component, Path, PathBuf};
use std::slice;

use anyhow::Context;
use doppel_crawls::record::RecordFile;
use doppel_crawls::{Input, InputError, InputOptions, Reason, crawl_ending, is_html};
use glob::MatchOptions;
use walkdir::{DirEntry, WalkDir};

use crate::objects::{self, Listing, Object};
use crate::version::Version;
use doppel_terminal::destination::refuse_input;
use doppel_terminal::exit::Failure;

/// Argument that names standard input as an input.
const STANDARD: &str = "-";

/// Name of standard input in messages and in the names of records.
pub const STANDARD_NAME: &str = "stdin";

/// A source of records that the inputs name.
#[derive(Debug)]
pub struct InputSource {
    /// Kind and location of the source.
    pub kind: SourceKind,
    /// Index of the input that named the source, counted from 0.
    pub input: usize,
    /// Size of the source in bytes. Zero if the size is not known before reading.
    pub bytes: u64,
    /// Name of the original in messages, if the source is a copy of an original that can be read only once.
    pub copy_of: Option<PathBuf>,
}

/// Kind and location of a source.
#[derive(Debug)]
pub enum SourceKind {
    /// Standard input of the process.
    Standard,
    /// A file, and the name that its records carry.
    File(PathBuf, RecordFile),
    /// A directory of pages.
    Pages(PathBuf),
    /// An object in a store.
    Object(Object),
}

/// Sources that the inputs name, in the order of the inputs.
#[derive(Debug, Default)]
pub struct Sources {
    /// Sources to read, in the order of the inputs.
    pub all: Vec<InputSource>,
    /// Number of files beside crawl files in directories, which are not read.
    pub beside: u64,
    /// Further files in these directories whose name ends in `.json`, so that they may be crawl files. They
    /// are not read, but counted by a pattern that names them.
    pub unsure: BTreeMap<String, u64>,
}

/// Whether an input stands for standard input.
pub fn is_standard(input: &Path) -> bool {
    input == Path::new(STANDARD)
}

/// Refuses inputs that contain standard input twice.
///
/// # Errors
/// [`Failure::Usage`] if more than one input stands for standard input.
pub fn require_standard_once(inputs: &[PathBuf]) -> Result<(), Failure> {
    if inputs.iter().filter(|input| is_standard(input)).count() > 1 {
        return Err(Failure::Usage("standard input can be read once; give - once".to_owned()));
    }
    Ok(())
}

/// Opens standard input as a file, which can be read once.
///
/// # Errors
/// If standard input is closed.
pub fn standard() -> io::Result<File> {
    Ok(File::from(io::stdin().as_fd().try_clone_to_owned()?))
}

/// Resolves the inputs into sources.
///
/// # Errors
/// - If an input does not exist, or a pattern matches no file.
/// - If standard input appears twice.
/// - If a part of a directory of crawl files cannot be read.
/// - If a store does not answer or refuses the request.
pub fn sources(inputs: &[PathBuf]) -> anyhow::Result<Sources> {
    require_standard_once(inputs)?;
    let mut sources = Sources::default();
    for (number, input) in inputs.iter().enumerate() {
        if let Some(address) = objects::address(input) {
            let Listing { objects, beside } = objects::named_by(address)?;
            sources.beside += beside;
            for object in objects {
                sources.add(SourceKind::Object(object), number);
            }
            continue;
        }
        let kind = if is_standard(input) {
            SourceKind::Standard
        } else {
            match fs::metadata(input) {
                Ok(metadata) if metadata.is_dir() => {
                    sources.add_directory(input, number)?;
                    continue;
                }
                Ok(_) => SourceKind::File(input.clone(), RecordFile::single(input)),
                Err(error) if error.kind() == io::ErrorKind::NotFound && is_pattern(input) => {
                    sources.add_matches(input, number)?;
                    continue;
                }
                Err(error) => {
                    return Err(error).with_context(|| format!("cannot read {}", input.display()));
                }
            }
        };
        sources.add(kind, number);
    }
    Ok(sources)
}

impl InputSource {
    /// Path of the source, as messages show it.
    pub fn path(&self) -> &Path {
        match &self.kind {
            _ if let Some(path) = &self.copy_of => path,
            SourceKind::Standard => Path::new(STANDARD_NAME),
            SourceKind::File(path, _) | SourceKind::Pages(path) => path,
            SourceKind::Object(object) => object.path(),
        }
    }

    /// Whether the source is a directory of pages.
    pub fn is_pages(&self) -> bool {
        matches!(self.kind, SourceKind::Pages(_))
    }

    /// Whether the source can be read only once.
    pub fn is_read_once(&self) -> bool {
        match &self.kind {
            SourceKind::Standard => true,
            SourceKind::File(path, _) => {
                fs::metadata(path).is_ok_and(|metadata| metadata.file_type().is_fifo())
            }
            SourceKind::Pages(_) | SourceKind::Object(_) => false,
        }
    }

    /// Version of the file or object. `None` for standard input, named pipes, and directories of pages.
    pub fn version(&self) -> Option<Version> {
        match &self.kind {
            SourceKind::File(path, _) => Version::of(path),
            SourceKind::Object(object) => Some(object.version()),
            SourceKind::Standard | SourceKind::Pages(_) => None,
        }
    }

    /// Opens the source for reading.
    ///
    /// # Errors
    /// The errors of [`doppel_crawls::open`].
    pub fn open(&self, options: InputOptions) -> Result<Input, InputError> {
        match &self.kind {
            SourceKind::Standard => {
                let path = Path::new(STANDARD_NAME);
                let fail = |error| {
                    InputError::new(&path.into(), doppel_crawls::InputPosition::File, Reason::Io(error))
                };
                doppel_crawls::open_pipe(standard().map_err(fail)?, path, RecordFile::single(path), options)
            }
            SourceKind::File(path, name) => match &self.copy_of {
                Some(of) => doppel_crawls::open_copy(path, of, name.clone(), options),
                None => doppel_crawls::open_as(path, name.clone(), options),
            },
            SourceKind::Pages(dir) => doppel_crawls::open(dir, options),
            SourceKind::Object(object) => object.open(options),
        }
    }
}

impl Sources {
    /// Gives files with the same name in different directories names that tell them apart.
    pub fn give_distinct_names(&mut self) {
        distinct_names::give_distinct_names(&mut self.all);
    }

    /// Refuses an output path that names a file to be read.
    ///
    /// # Errors
    /// [`Failure::Usage`] if the output would replace such a file.
    pub fn refuse_output(&self, option: &str, path: &Path) -> Result<(), Failure> {
        for source in &self.all {
            match &source.kind {
                SourceKind::File(file, _) => refuse_input(option, path, slice::from_ref(file))?,
                SourceKind::Pages(dir) if path.is_file() => {
                    for file in visible_files(dir) {
                        refuse_input(option, path, &[file.into_path()])?;
                    }
                }
                SourceKind::Pages(_) | SourceKind::Standard | SourceKind::Object(_) => {}
            }
        }
        Ok(())
    }

    fn add(&mut self, kind: SourceKind, input: usize) {
        let bytes = match &kind {
            SourceKind::File(path, _) => {
                fs::metadata(path).map_or(0, |metadata| if metadata.is_file() { metadata.len() } else { 0 })
            }
            SourceKind::Object(object) => object.bytes(),
            // Only the reader, which walks through the source, knows the size.
            SourceKind::Standard | SourceKind::Pages(_) => 0,
        };
        self.all.push(InputSource { kind, input, bytes, copy_of: None });
    }

    /// Adds the crawl files of a directory that contains crawl files and no HTML page. Adds any other
    /// directory as a directory of pages.
    fn add_directory(&mut self, dir: &Path, input: usize) -> anyhow::Result<()> {
        let (mut crawls, mut others, mut unread) = (Vec::new(), 0, None);
        let mut unsure: BTreeMap<String, u64> = BTreeMap::new();
        for file in visible(dir) {
            let file = match file {
                Ok(file) => file,
                Err(error) => {
                    unread.get_or_insert(error);
                    continue;
                }
            };
            match file.path() {
                page if is_html(page) => {
                    crawls.clear();
                    break;
                }
                crawl if crawl_ending(crawl).is_some() => crawls.push(file.into_path()),
                // The file may contain JSON lines, or metadata about the crawl files.
                json if json.extension().is_some_and(|extension| extension == "json") => {
                    *unsure.entry(json.with_file_name("*.json").display().to_string()).or_default() += 1;
                }
                _ => others += 1,
            }
        }
        if crawls.is_empty() {
            // The reader of the pages reports files and directories that cannot be read.
            self.add(SourceKind::Pages(dir.to_owned()), input);
            return Ok(());
        }
        if let Some(error) = unread {
            return Err(error).with_context(|| format!("cannot read all of {}", dir.display()));
        }
        self.beside += others;
        for (pattern, files) in unsure {
            *self.unsure.entry(pattern).or_default() += files;
        }
        self.add_files(crawls, dir, input);
        Ok(())
    }

    /// Adds the files that a pattern matches.
    fn add_matches(&mut self, pattern: &Path, input: usize) -> anyhow::Result<()> {
        let wrong = |why: String| Failure::Usage(format!("{}: {why}", pattern.display()));
        let text = pattern
            .to_str()
            .ok_or_else(|| wrong("no file has this name, and a pattern must be UTF-8".to_owned()))?;
        // Hidden files are left out below, because the option of the crate for them panics on a name that is
        // not UTF-8.
        let found =
            glob::glob_with(text, MatchOptions::default()).map_err(|error| wrong(error.to_string()))?;
        // Reports directories that cannot be searched.
        let found = found.collect::<Result<Vec<_>, _>>().context("cannot search for matching files")?;
        let dir = before_pattern(pattern);
        let is_wanted = |path: &PathBuf| {
            let below = path.strip_prefix(&dir).unwrap_or(path);
            // A special file, such as a pipe, may be readable only once, so a pattern matches regular files
            // only.
            path.is_file() && (names_hidden(pattern, &dir) || !below.components().any(is_hidden))
        };
        let mut files: Vec<_> = found.into_iter().filter(is_wanted).collect();
        files.sort();
        if files.is_empty() {
            return Err(wrong("no file matches this pattern".to_owned()).into());
        }
        self.add_files(files, &dir, input);
        Ok(())
    }

    /// Adds files whose records are named by their paths below `dir`.
    fn add_files(&mut self, files: Vec<PathBuf>, dir: &Path, input: usize) {
        for path in files {
            let name = RecordFile::new(path.strip_prefix(dir).unwrap_or(&path));
            self.add(SourceKind::File(path, name), input);
        }
    }
}

/// Files below a directory that are not hidden, in the order of their paths. Errors are ignored here, because
/// the reader of the directory reports them.
fn visible_files(dir: &Path) -> impl Iterator<Item = DirEntry> {
    visible(dir).flatten()
}

/// Like [`visible_files`], but also returns errors.
fn visible(dir: &Path) -> impl Iterator<Item = walkdir::Result<DirEntry>> {
    let is_shown =
        |entry: &DirEntry| entry.depth() == 0 || !entry.file_name().as_encoded_bytes().starts_with(b".");
    let walk = WalkDir::new(dir).sort_by_file_name().into_iter().filter_entry(is_shown);
    walk.filter(|entry| entry.as_ref().map_or(true, |entry| entry.file_type().is_file()))
}

/// Whether a path contains a character of a pattern: `*`, `?` or `[`.
pub fn is_pattern(input: &Path) -> bool {
    input.as_os_str().as_encoded_bytes().iter().any(|byte| b"*?[".contains(byte))
}

fn is_hidden(part: Component<'_>) -> bool {
    matches!(part, Component::Normal(name) if name.as_encoded_bytes().starts_with(b"."))
}

/// Whether a pattern asks for hidden files below `dir`: a part of the pattern begins with a dot.
fn names_hidden(pattern: &Path, dir: &Path) -> bool {
    pattern
        .components()
        .filter(|part| *part != Component::CurDir)
        .skip(dir.components().count())
        .any(is_hidden)
}

/// Directory that precedes the first part of a path which contains a pattern. Spelt like the paths of the
/// matching files.
pub fn before_pattern(pattern: &Path) -> PathBuf {
    let is_plain = |part: &Component<'_>| !is_pattern(part.as_os_str().as_ref());
    pattern.components().take_while(is_plain).filter(|part| *part != Component::CurDir).collect()
}

/// The pattern that an input names, below the real path of its plain directory. `None` if the input is not a pattern, or if its directory
/// is not there. Like a run, the pattern gives way to a file of its own name.
pub fn absolute_pattern(input: &Path) -> Option<glob::Pattern> {
    if !is_pattern(input) || input.exists() {
        return None;
    }
    let plain = before_pattern(input);
    let parts = input.components().filter(|part| *part != Component::CurDir);
    let below: PathBuf = parts.skip(plain.components().count()).collect();
    let dir = if plain.as_os_str().is_empty() { Path::new(".") } else { &plain };
    let dir = fs::canonicalize(dir).ok()?;
    let whole = Path::new(&glob::Pattern::escape(&dir.to_string_lossy())).join(below);
    glob::Pattern::new(&whole.to_string_lossy()).ok()
}

/// Whether an input is a pattern that matches a path.
pub fn matches_pattern(input: &Path, path: &Path) -> bool {
    let options = MatchOptions { require_literal_separator: true, ..MatchOptions::default() };
    absolute_pattern(input).is_some_and(|pattern| pattern.matches_path_with(path, options))
}

#[cfg(test)]
mod tests;
