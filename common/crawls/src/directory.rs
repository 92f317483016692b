//! Reads pages from the files of a directory, or from one file: HTML, text and Markdown, with `file://` URLs.
//!
//! Files are read in path order. Symbolic links are not followed, so a walk cannot loop. Hidden files and
//! directories are skipped, so the history of a source checkout is not read.

use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use walkdir::{DirEntry, WalkDir};

use super::charset;
use super::error::{InputError, Place, Reason, Skip};
use super::format::{LOOKED_AT, PageKind, is_text};
use super::limits::Limits;
use super::{Fetched, FetchedBody, Item, modified};
use doppel_model::{PageUrl, UrlError};

/// The pages of a directory or of one file.
pub(super) struct Files {
    source: Source,
    /// The directory, if it is one.
    root: Option<PathBuf>,
    /// The last file that was looked at.
    last: Option<PathBuf>,
    limits: Limits,
    bytes_read: u64,
    /// Whether a file or directory could not be read.
    broke_off: bool,
}

enum Source {
    Walk(Box<walkdir::IntoIter>),
    Single(Option<(PathBuf, PageKind)>),
}

/// The total size in bytes of the files that a walk of `root` visits.
pub(super) fn size(root: &Path) -> u64 {
    let visible = WalkDir::new(root).into_iter().filter_entry(|entry| !is_hidden(entry)).flatten();
    visible.filter(|entry| entry.file_type().is_file()).map(|entry| length(&entry)).sum()
}

impl Files {
    /// All files below the directory `root`.
    pub(super) fn below(root: &Path, limits: Limits) -> Self {
        // All paths below a canonical root are canonical, because links are not followed.
        let root = canonical(root);
        let walk = WalkDir::new(&root).sort_by_file_name().into_iter();
        Self {
            source: Source::Walk(Box::new(walk)),
            root: Some(root),
            last: None,
            limits,
            bytes_read: 0,
            broke_off: false,
        }
    }

    /// One file.
    pub(super) fn single(path: &Path, kind: PageKind, limits: Limits) -> Self {
        Self {
            source: Source::Single(Some((canonical(path), kind))),
            root: None,
            last: None,
            limits,
            bytes_read: 0,
            broke_off: false,
        }
    }

    /// The canonical path of the directory, if it is one.
    pub(super) fn root(&self) -> Option<&Path> {
        self.root.as_deref()
    }

    /// The canonical path of the file that the last item is of.
    pub(super) fn file_path(&self) -> Option<&Path> {
        self.last.as_deref()
    }

    pub(super) fn bytes_read(&self) -> u64 {
        self.bytes_read
    }

    pub(super) fn broke_off(&self) -> bool {
        self.broke_off
    }

    fn entry(&mut self, entry: &DirEntry) -> Option<Item> {
        if is_hidden(entry) {
            if entry.file_type().is_dir()
                && let Source::Walk(walk) = &mut self.source
            {
                walk.skip_current_dir();
            }
            return Some(Item::Skipped(Skip::Hidden));
        }
        if entry.file_type().is_dir() {
            return None;
        }
        if !entry.file_type().is_file() {
            return Some(Item::Skipped(Skip::Link));
        }
        self.last = Some(entry.path().to_owned());
        Some(match PageKind::of(entry.path()) {
            Some(kind) => self.file(entry.path(), kind),
            None => {
                self.bytes_read += length(entry);
                Item::Skipped(Skip::FileName)
            }
        })
    }

    fn file(&mut self, path: &Path, kind: PageKind) -> Item {
        match self.read(path, kind) {
            Ok(item) => item,
            Err(reason) => {
                // A file of a directory that has gone since it was found is none of it.
                let has_gone = matches!(&reason, Reason::Io(error) if self.root.is_some() && error.kind() == ErrorKind::NotFound);
                self.broke_off |= matches!(reason, Reason::Io(_)) && !has_gone;
                bad(path, reason)
            }
        }
    }

    fn read(&mut self, path: &Path, kind: PageKind) -> Result<Item, Reason> {
        let mut file = File::open(path).map_err(Reason::Io)?;
        let metadata = file.metadata().map_err(Reason::Io)?;
        self.bytes_read += metadata.len();
        let mut bytes = Vec::new();
        // Nothing says that a file without an extension is text.
        if kind == PageKind::Unnamed {
            (&mut file).take(LOOKED_AT as u64).read_to_end(&mut bytes).map_err(Reason::Io)?;
            if !is_text(&bytes) {
                return Ok(Item::Skipped(Skip::Binary));
            }
        }
        self.limits.check_page(usize::try_from(metadata.len()).unwrap_or(usize::MAX))?;
        // A file that grows while it is read is read only up to the limit.
        let left = self.limits.page_bytes_max.saturating_sub(bytes.len()) as u64;
        file.take(left).read_to_end(&mut bytes).map_err(Reason::Io)?;
        let body = match kind {
            PageKind::Html => FetchedBody::Html { bytes, charset: None },
            PageKind::Xhtml => FetchedBody::Xhtml { bytes, charset: None },
            PageKind::Text | PageKind::Unnamed => FetchedBody::Text(charset::decode(&bytes, None)),
        };
        charset::check(&body)?;
        let fetched_at = Some(self.limits.check_date(modified(&metadata))?);
        Ok(Item::Page(Fetched { url: url(path)?, fetched_at, body, popularity: None, language: None }))
    }
}

impl Iterator for Files {
    type Item = Item;

    fn next(&mut self) -> Option<Item> {
        loop {
            let entry = match &mut self.source {
                Source::Single(file) => {
                    let (path, kind) = file.take()?;
                    return Some(self.file(&path, kind));
                }
                Source::Walk(walk) => walk.next()?,
            };
            match entry {
                Ok(entry) => {
                    if let Some(item) = self.entry(&entry) {
                        return Some(item);
                    }
                }
                Err(error) => {
                    self.broke_off = true;
                    let path = error.path().unwrap_or(Path::new("")).to_owned();
                    return Some(bad(&path, Reason::Io(error.into())));
                }
            }
        }
    }
}

fn is_hidden(entry: &DirEntry) -> bool {
    entry.depth() > 0 && entry.file_name().as_encoded_bytes().starts_with(b".")
}

fn length(entry: &DirEntry) -> u64 {
    entry.metadata().map_or(0, |metadata| metadata.len())
}

/// The canonical form of a path. If it cannot be determined, the path itself: reading it then reports the
/// error.
fn canonical(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

fn bad(path: &Path, reason: Reason) -> Item {
    Item::Bad(InputError::new(&Arc::from(path), Place::File, reason))
}

/// The URL of the file at a canonical path.
fn url(path: &Path) -> Result<PageUrl, Reason> {
    let url = url::Url::from_file_path(path)
        .map_err(|()| UrlError::Invalid(format!("{} is not an absolute path", path.display())))?;
    Ok(PageUrl::parse(url.as_str())?)
}
