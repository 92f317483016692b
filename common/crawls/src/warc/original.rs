//! [`Originals`]: finds the records to which revisits refer, by payload digest or by record id.
//!
//! Crawlers store a payload once, and write a revisit when another URL returned the same bytes. Memory is
//! bounded: the module keeps only offsets and numbers, up to a limit, and reads an original again when a
//! revisit needs it. It can read an original again only if one seek reaches the record.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::path::Path;
use std::sync::Arc;

use super::archive_format::ArchiveFormat;
use super::head::Field;
use super::record::{Record, RecordReader};
use doppel_model::{PageUrl, stable_hash128};
use doppel_streams::{FilePart, HeadError, InputPosition, Limits, Reason, Stream};

/// The location of a file that can be opened again.
pub(super) enum FileLocation {
    /// At a path of the file system.
    Path(Arc<Path>),
    /// Inside another file.
    Part(FilePart),
}

impl FileLocation {
    /// Opens the file from its beginning.
    pub(super) fn open(&self, limits: &Limits) -> Result<Stream, Reason> {
        match self {
            Self::Path(path) => Stream::open(path, limits),
            Self::Part(part) => part.open(limits),
        }
    }

    /// Position of a record in messages. `offset` is its offset in this file. `unpacked` is its offset in the
    /// unpacked data of all parts that are read as one; it takes precedence.
    pub(super) fn position(&self, offset: u64, unpacked: Option<u64>) -> InputPosition {
        match (self, unpacked) {
            (Self::Path(_), None) => InputPosition::Record(offset),
            (Self::Part(part), None) => InputPosition::Record(part.offset(offset)),
            (_, Some(unpacked)) => InputPosition::Unpacked(unpacked),
        }
    }

    /// Whether offsets in this file count unpacked bytes, because the file is deflated.
    pub(super) fn is_deflated(&self) -> bool {
        matches!(self, Self::Part(part) if part.is_deflated())
    }
}

/// A page to which a revisit may refer.
#[derive(Clone, Copy)]
pub(super) struct Original {
    /// Mark of its record. `None` if one seek does not reach the record.
    mark: Option<u64>,
    /// Number of pages before it in the file.
    pub(super) number: u64,
    /// Number of the first page with the same payload digest.
    pub(super) content: u64,
}

/// The pages of a file to which revisits may refer.
pub(super) struct Originals {
    location: FileLocation,
    format: ArchiveFormat,
    limits: Limits,
    /// Maps the hash of a payload digest, or of a record id, to the first page that has it.
    originals: HashMap<u128, Original>,
    /// Maps the hash of a URL to the content of its last capture. `None` if the caller judges each capture on
    /// its own.
    last_contents: Option<HashMap<u128, u64>>,
    /// A second reader of the file, opened at the first revisit that needs it.
    reader: Option<RecordReader>,
}

impl Originals {
    /// Creates an empty table. `judges_records` states whether the caller judges each capture of a URL on its
    /// own.
    pub(super) fn new(
        format: ArchiveFormat,
        location: FileLocation,
        limits: Limits,
        judges_records: bool,
    ) -> Self {
        let last_contents = (!judges_records).then(HashMap::new);
        Self { location, format, limits, originals: HashMap::new(), last_contents, reader: None }
    }

    /// Whether the caller judges each capture of a URL on its own.
    pub(super) fn judges_records(&self) -> bool {
        self.last_contents.is_none()
    }

    /// Location of the file.
    pub(super) fn location(&self) -> &FileLocation {
        &self.location
    }

    /// Remembers a page by its payload digest and record id, unless the limit is reached. `number` pages come
    /// before it. Returns its content number. An unreadable digest or id does not make the page bad.
    pub(super) fn remember(&mut self, record: Record<'_>, number: u64) -> u64 {
        let mut page = Original { mark: record.mark, number, content: number };
        for field in [Field::PayloadDigest, Field::RecordId] {
            let Some(key) = key(record, field).ok().flatten() else { continue };
            let is_full = self.originals.len() >= self.limits.originals_max;
            match self.originals.entry(key) {
                Entry::Occupied(first) if field == Field::PayloadDigest => page.content = first.get().content,
                Entry::Vacant(entry) if !is_full => drop(entry.insert(page)),
                Entry::Occupied(_) | Entry::Vacant(_) => {}
            }
        }
        page.content
    }

    /// Remembers the content number of the last capture of a URL.
    pub(super) fn remember_last_content(&mut self, url: &PageUrl, content: u64) {
        let Some(last) = &mut self.last_contents else { return };
        let key = stable_hash128(url.as_str().as_bytes());
        if last.len() < self.limits.originals_max || last.contains_key(&key) {
            last.insert(key, content);
        }
    }

    /// Content number of the last capture of a URL in this file, if it is remembered.
    pub(super) fn last_content(&self, url: &PageUrl) -> Option<u64> {
        let key = stable_hash128(url.as_str().as_bytes());
        self.last_contents.as_ref()?.get(&key).copied()
    }

    /// Finds the page to which `revisit` refers. Tries `fields` in order; the first field that names a page
    /// wins.
    pub(super) fn find(&self, revisit: Record<'_>, fields: &[Field]) -> Result<Option<Original>, HeadError> {
        for field in fields {
            if let Some(original) = key(revisit, *field)?.and_then(|key| self.originals.get(&key)) {
                return Ok(Some(*original));
            }
        }
        Ok(None)
    }

    /// Reads the record of a page again. `None` if it cannot be reached.
    pub(super) fn read(&mut self, page: Original) -> Result<Option<Record<'_>>, Reason> {
        let Some(mark) = page.mark else { return Ok(None) };
        let reader = match &mut self.reader {
            Some(reader) => reader,
            none => {
                none.insert(RecordReader::new(self.format, self.location.open(&self.limits)?, self.limits))
            }
        };
        let found = reader.read_at(mark)?.then(|| reader.record());
        Ok(found)
    }
}

/// Hash of a payload digest or record id. Both share a map, because a digest never looks like an id.
fn key(record: Record<'_>, field: Field) -> Result<Option<u128>, HeadError> {
    Ok(record.get(field)?.map(|value| stable_hash128(value.as_bytes())))
}
