//! What the inputs of a command name: files, standard input, patterns of files, directories, of pages or of crawl files, and objects in
//! stores.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd;
use std::path::{Component, Path, PathBuf};
use std::slice;

use anyhow::Context;
use doppel_crawls::record::RecordFile;
use doppel_crawls::{Input, InputError, InputOptions, Reason, crawl_ending, is_html};
use glob::MatchOptions;
use walkdir::{DirEntry, WalkDir};

use crate::destination::refuse_input;
use crate::exit::Failure;
use crate::objects::{self, Listing, Object};

/// The input that is standard input.
const STANDARD: &str = "-";

/// What messages and the names of records call standard input.
pub(crate) const STANDARD_NAME: &str = "stdin";

/// Something to read.
#[derive(Debug)]
pub(crate) struct Source {
    /// Where it is.
    pub(crate) place: Place,
    /// The number of the input that named it.
    pub(crate) input: usize,
    /// Its size in bytes, as far as that is known before.
    pub(crate) bytes: u64,
}

/// Where something to read is.
#[derive(Debug)]
pub(crate) enum Place {
    /// Standard input.
    Standard,
    /// A file, and what its records are named by.
    File(PathBuf, RecordFile),
    /// A directory of pages.
    Pages(PathBuf),
    /// An object in a store.
    Object(Object),
}

/// What inputs name, in their order.
#[derive(Debug, Default)]
pub(crate) struct Sources {
    pub(crate) all: Vec<Source>,
    /// Files beside crawl files in directories, which are not read.
    pub(crate) beside: u64,
}

/// Whether an input is standard input.
pub(crate) fn is_standard(input: &Path) -> bool {
    input == Path::new(STANDARD)
}

/// Refuses standard input where it is there twice.
///
/// # Errors
/// When it is.
pub(crate) fn require_standard_once(inputs: &[PathBuf]) -> Result<(), Failure> {
    if inputs.iter().filter(|input| is_standard(input)).count() > 1 {
        return Err(Failure::Usage("standard input can be read once; give - once".to_owned()));
    }
    Ok(())
}

/// Standard input as a file, to be read once.
///
/// # Errors
/// When it is closed.
pub(crate) fn standard() -> io::Result<File> {
    Ok(File::from(io::stdin().as_fd().try_clone_to_owned()?))
}

/// What the inputs name.
///
/// # Errors
/// When one is not there, or a pattern that matches nothing, or standard input is there twice.
pub(crate) fn sources(inputs: &[PathBuf]) -> anyhow::Result<Sources> {
    require_standard_once(inputs)?;
    let mut sources = Sources::default();
    for (number, input) in inputs.iter().enumerate() {
        if let Some(address) = objects::address(input) {
            let Listing { objects, beside } = objects::named_by(address)?;
            sources.beside += beside;
            for object in objects {
                sources.add(Place::Object(object), number);
            }
            continue;
        }
        let place = if is_standard(input) {
            Place::Standard
        } else {
            match fs::metadata(input) {
                Ok(metadata) if metadata.is_dir() => {
                    sources.add_directory(input, number);
                    continue;
                }
                Ok(_) => Place::File(input.clone(), RecordFile::single(input)),
                Err(error) if error.kind() == io::ErrorKind::NotFound && is_pattern(input) => {
                    sources.add_matches(input, number)?;
                    continue;
                }
                Err(error) => {
                    return Err(error).with_context(|| format!("cannot read {}", input.display()));
                }
            }
        };
        sources.add(place, number);
    }
    Ok(sources)
}

/// Refuses an output in the place of a file that is read.
///
/// # Errors
/// When it is one, or an input is not there.
pub(crate) fn refuse_output(option: &str, path: &Path, inputs: &[PathBuf]) -> anyhow::Result<()> {
    Ok(sources(inputs)?.refuse_output(option, path)?)
}

impl Source {
    /// What messages call it.
    pub(crate) fn path(&self) -> &Path {
        match &self.place {
            Place::Standard => Path::new(STANDARD_NAME),
            Place::File(path, _) | Place::Pages(path) => path,
            Place::Object(object) => object.path(),
        }
    }

    /// Whether it is a directory of pages.
    pub(crate) fn is_pages(&self) -> bool {
        matches!(self.place, Place::Pages(_))
    }

    /// Opens it.
    ///
    /// # Errors
    /// Those of [`doppel_crawls::open`].
    pub(crate) fn open(&self, options: InputOptions) -> Result<Input, InputError> {
        match &self.place {
            Place::Standard => {
                let path = Path::new(STANDARD_NAME);
                let fail =
                    |error| InputError::new(&path.into(), doppel_crawls::Place::File, Reason::Io(error));
                doppel_crawls::open_pipe(standard().map_err(fail)?, path, RecordFile::single(path), options)
            }
            Place::File(path, name) => doppel_crawls::open_as(path, name.clone(), options),
            Place::Pages(dir) => doppel_crawls::open(dir, options),
            Place::Object(object) => object.open(options),
        }
    }
}

impl Sources {
    /// Refuses an output in the place of a file that is read.
    ///
    /// # Errors
    /// [`Failure::Usage`] where it is one.
    pub(crate) fn refuse_output(&self, option: &str, path: &Path) -> Result<(), Failure> {
        for source in &self.all {
            match &source.place {
                Place::File(file, _) => refuse_input(option, path, slice::from_ref(file))?,
                Place::Pages(dir) if path.is_file() => {
                    for file in visible_files(dir) {
                        refuse_input(option, path, &[file.into_path()])?;
                    }
                }
                Place::Pages(_) | Place::Standard | Place::Object(_) => {}
            }
        }
        Ok(())
    }

    fn add(&mut self, place: Place, input: usize) {
        let bytes = match &place {
            Place::File(path, _) => {
                fs::metadata(path).map_or(0, |metadata| if metadata.is_file() { metadata.len() } else { 0 })
            }
            Place::Object(object) => object.bytes(),
            // The reader knows, which walks through it.
            Place::Standard | Place::Pages(_) => 0,
        };
        self.all.push(Source { place, input, bytes });
    }

    /// The crawl files of a directory, if it has some and no HTML page; else it is one of pages.
    fn add_directory(&mut self, dir: &Path, input: usize) {
        let (mut crawls, mut others) = (Vec::new(), 0);
        for file in visible_files(dir) {
            match file.path() {
                page if is_html(page) => {
                    crawls.clear();
                    break;
                }
                crawl if crawl_ending(crawl).is_some() => crawls.push(file.into_path()),
                _ => others += 1,
            }
        }
        if crawls.is_empty() {
            return self.add(Place::Pages(dir.to_owned()), input);
        }
        self.beside += others;
        self.add_files(crawls, dir, input);
    }

    /// The files that a pattern matches.
    fn add_matches(&mut self, pattern: &Path, input: usize) -> anyhow::Result<()> {
        let wrong = |why: String| Failure::Usage(format!("{}: {why}", pattern.display()));
        let text = pattern
            .to_str()
            .ok_or_else(|| wrong("no file has this name, and it is no pattern".to_owned()))?;
        let options = MatchOptions { require_literal_leading_dot: true, ..MatchOptions::default() };
        let found = glob::glob_with(text, options).map_err(|error| wrong(error.to_string()))?;
        // What cannot be looked at is told of.
        let found = found.collect::<Result<Vec<_>, _>>().context("cannot look for files")?;
        let mut files: Vec<_> = found.into_iter().filter(|path| !path.is_dir()).collect();
        files.sort();
        if files.is_empty() {
            return Err(wrong("no file matches this pattern".to_owned()).into());
        }
        self.add_files(files, &before_pattern(pattern), input);
        Ok(())
    }

    /// Files, whose records are named by their paths below a directory.
    fn add_files(&mut self, files: Vec<PathBuf>, dir: &Path, input: usize) {
        for path in files {
            let name = RecordFile::new(path.strip_prefix(dir).unwrap_or(&path));
            self.add(Place::File(path, name), input);
        }
    }
}

/// The files below a directory that are not hidden, in the order of their paths. Errors are left out: who reads a directory meets
/// them and tells.
fn visible_files(dir: &Path) -> impl Iterator<Item = DirEntry> {
    let is_shown =
        |entry: &DirEntry| entry.depth() == 0 || !entry.file_name().as_encoded_bytes().starts_with(b".");
    let walk = WalkDir::new(dir).sort_by_file_name().into_iter().filter_entry(is_shown).flatten();
    walk.filter(|entry| entry.file_type().is_file())
}

fn is_pattern(input: &Path) -> bool {
    input.as_os_str().as_encoded_bytes().iter().any(|byte| b"*?[".contains(byte))
}

/// The directory in front of the first part that is a pattern.
fn before_pattern(pattern: &Path) -> PathBuf {
    let is_plain = |part: &Component<'_>| !is_pattern(part.as_os_str().as_ref());
    let dir: PathBuf = pattern.components().take_while(is_plain).collect();
    dir
}

#[cfg(test)]
mod tests {
    use super::*;

    fn make(home: &Path, names: &[&str]) {
        for name in names {
            let path = home.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, b"12345").unwrap();
        }
    }

    /// The names of records in what is found, `pages` for a directory of pages, and the number of files beside.
    fn found(input: &Path) -> (Vec<String>, u64) {
        let Sources { all, beside } = sources(&[input.to_owned()]).unwrap();
        let name = |source: Source| match source.place {
            Place::Standard => STANDARD_NAME.to_owned(),
            Place::Pages(_) => "pages".to_owned(),
            Place::Object(object) => object.path().display().to_string(),
            Place::File(path, name) => {
                assert!(path.exists() && source.bytes == 5);
                name.with_number(1).unwrap().as_str().trim_end_matches("#row=1").to_owned()
            }
        };
        (all.into_iter().map(name).collect(), beside)
    }

    #[test]
    fn a_directory_is_one_of_pages_or_of_crawl_files() {
        let home = tempfile::tempdir().unwrap();
        let at = |name: &str| home.path().join(name);
        make(
            home.path(),
            &["set/README.md", "set/data/b.parquet", "set/data/a.jsonl.zst", "set/.git/x.jsonl"],
        );
        let names = ["record:data/a.jsonl.zst", "record:data/b.parquet"].map(str::to_owned).to_vec();
        assert_eq!(found(&at("set")), (names, 1));
        make(home.path(), &["site/index.html", "site/all.csv", "notes/a.txt", "notes/b.md"]);
        for dir in ["site", "notes"] {
            assert_eq!(found(&at(dir)), (vec!["pages".to_owned()], 0), "{dir}");
        }
    }

    #[test]
    fn an_output_is_none_of_the_files_that_are_read() {
        let home = tempfile::tempdir().unwrap();
        make(home.path(), &["set/a/1.jsonl", "set/README.md", "site/index.html", "other/1.jsonl"]);
        let at = |name: &str| home.path().join(name);
        let is_refused = |input: &str, output: &str| {
            refuse_output("--out", &at(output), &[at(input)]).is_err_and(|error| {
                let why = format!("--out {} would replace the input", at(output).display());
                error.to_string().starts_with(&why)
            })
        };
        for (input, output) in [
            ("set", "set/a/1.jsonl"),
            ("set/*/*.jsonl", "set/../set/a/1.jsonl"),
            ("set/a/1.jsonl", "set/a/1.jsonl"),
            ("site", "site/index.html"),
        ] {
            assert!(is_refused(input, output), "{input} {output}");
        }
        for (input, output) in [
            ("set", "set/a/2.jsonl"),
            ("set", "set/README.md"),
            ("set", "other/1.jsonl"),
            ("site", "site/x.html"),
        ] {
            assert!(!is_refused(input, output), "{input} {output}");
        }
    }

    #[test]
    fn patterns_are_expanded_in_order() {
        let home = tempfile::tempdir().unwrap();
        make(
            home.path(),
            &["d/b/2.jsonl", "d/a/1.jsonl", "d/3.jsonl", "d/a/no.txt", "d/.hidden.jsonl", "d/[x].jsonl"],
        );
        let (names, _) = found(&home.path().join("d/**/*.jsonl"));
        assert_eq!(
            names,
            ["record:3.jsonl", "record:%5Bx%5D.jsonl", "record:a/1.jsonl", "record:b/2.jsonl"]
                .map(str::to_owned)
        );
        // A file of such a name is that file.
        assert_eq!(found(&home.path().join("d/[x].jsonl")).0.len(), 1);
        let none = home.path().join("d/*.warc");
        let error = sources(slice::from_ref(&none)).unwrap_err();
        assert_eq!(error.to_string(), format!("{}: no file matches this pattern", none.display()));
        assert!(sources(&[home.path().join("d/none")]).is_err());
    }
}
