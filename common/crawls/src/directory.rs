//! Reads pages from the files of a directory, or from one file: HTML, text and Markdown, with `file://` URLs.
//!
//! The reader visits files in path order. It never follows symbolic links, so a walk cannot loop. It skips
//! hidden files and directories, so it does not read the history of a source checkout.

use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use doppel_streams::{InputError, InputPosition, Limits, Reason, SkipReason};
use walkdir::{DirEntry, WalkDir};

use super::charset;
use super::format::{INSPECTED_BYTES, PageKind, is_text};
use super::{FetchedBody, FetchedPage, Item, modified};
use doppel_model::{PageUrl, UrlError};

/// Reader of the pages of a directory or of one file.
pub(super) struct Files {
    source: FileSource,
    /// Canonical path of the directory. `None` for a single file.
    root: Option<PathBuf>,
    /// Path of the last file that the reader inspected.
    last_path: Option<PathBuf>,
    limits: Limits,
    bytes_read: u64,
    /// Whether a file or directory could not be read.
    broke_off: bool,
}

enum FileSource {
    Walk(Box<walkdir::IntoIter>),
    Single(Option<(PathBuf, PageKind)>),
}

/// Total size in bytes of the files that a walk of `root` visits.
pub(super) fn size(root: &Path) -> u64 {
    let visible = WalkDir::new(root).into_iter().filter_entry(|entry| !is_hidden(entry)).flatten();
    visible.filter(|entry| entry.file_type().is_file()).map(|entry| length(&entry)).sum()
}

impl Files {
    /// Creates a reader of all files below the directory `root`.
    pub(super) fn below(root: &Path, limits: Limits) -> Self {
        // All paths below a canonical root are canonical, because the walk follows no links.
        let root = canonical(root);
        let walk = WalkDir::new(&root).sort_by_file_name().into_iter();
        Self {
            source: FileSource::Walk(Box::new(walk)),
            root: Some(root),
            last_path: None,
            limits,
            bytes_read: 0,
            broke_off: false,
        }
    }

    /// Creates a reader of one file.
    pub(super) fn single(path: &Path, kind: PageKind, limits: Limits) -> Self {
        Self {
            source: FileSource::Single(Some((canonical(path), kind))),
            root: None,
            last_path: None,
            limits,
            bytes_read: 0,
            broke_off: false,
        }
    }

    /// Canonical path of the directory. `None` for a single file.
    pub(super) fn root(&self) -> Option<&Path> {
        self.root.as_deref()
    }

    /// Canonical path of the file to which the last item belongs.
    pub(super) fn file_path(&self) -> Option<&Path> {
        self.last_path.as_deref()
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
                && let FileSource::Walk(walk) = &mut self.source
            {
                walk.skip_current_dir();
            }
            return Some(Item::Skipped(SkipReason::Hidden));
        }
        if entry.file_type().is_dir() {
            return None;
        }
        if !entry.file_type().is_file() {
            return Some(Item::Skipped(SkipReason::Link));
        }
        self.last_path = Some(entry.path().to_owned());
        Some(match PageKind::from_name(entry.path()) {
            Some(kind) => self.file(entry.path(), kind),
            None => {
                self.bytes_read += length(entry);
                Item::Skipped(SkipReason::FileName)
            }
        })
    }

    fn file(&mut self, path: &Path, kind: PageKind) -> Item {
        match self.read(path, kind) {
            Ok(item) => item,
            Err(reason) => {
                // A file that was deleted after the walk found it no longer belongs to the directory.
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
        // The name of a file without an extension does not show whether it is text.
        if kind == PageKind::Unnamed {
            (&mut file).take(INSPECTED_BYTES as u64).read_to_end(&mut bytes).map_err(Reason::Io)?;
            if !is_text(&bytes) {
                return Ok(Item::Skipped(SkipReason::Binary));
            }
        }
        self.limits.check_page(usize::try_from(metadata.len()).unwrap_or(usize::MAX))?;
        // If a file grows during reading, read it only up to the limit.
        let left = self.limits.page_bytes_max.saturating_sub(bytes.len()) as u64;
        file.take(left).read_to_end(&mut bytes).map_err(Reason::Io)?;
        let body = match kind {
            PageKind::Html => FetchedBody::Html { bytes, charset: None },
            PageKind::Xhtml => FetchedBody::Xhtml { bytes, charset: None },
            PageKind::Text | PageKind::Unnamed => FetchedBody::Text(charset::decode(&bytes, None)),
        };
        charset::check(&body)?;
        let fetched_at = Some(self.limits.check_date(modified(&metadata))?);
        Ok(Item::Page(FetchedPage { url: url(path)?, fetched_at, body, popularity: None, language: None }))
    }
}

impl Iterator for Files {
    type Item = Item;

    fn next(&mut self) -> Option<Item> {
        loop {
            let entry = match &mut self.source {
                FileSource::Single(file) => {
                    let (path, kind) = file.take()?;
                    return Some(self.file(&path, kind));
                }
                FileSource::Walk(walk) => walk.next()?,
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

/// Canonical form of a path, or the path itself if it cannot be determined. In that case, reading the path
/// reports the error.
fn canonical(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

fn bad(path: &Path, reason: Reason) -> Item {
    Item::Bad(InputError::new(&Arc::from(path), InputPosition::File, reason))
}

/// Creates the `file://` URL of the file at a canonical path.
fn url(path: &Path) -> Result<PageUrl, Reason> {
    let url = url::Url::from_file_path(path)
        .map_err(|()| UrlError::Invalid(format!("{} is not an absolute path", path.display())))?;
    Ok(PageUrl::parse(url.as_str())?)
}
