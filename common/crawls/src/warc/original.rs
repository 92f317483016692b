//! Finds the records that revisits refer to, by payload digest or by record id.
//!
//! Crawlers store a payload once, and write a revisit when another URL returned the same bytes. Only offsets and numbers
//! are kept in memory. A record is read again if it can be reached by one seek.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::path::Path;
use std::sync::Arc;

use super::form::Form;
use super::head::Field;
use super::record::{Record, Records};
use crate::error::{HeadError, Place, Reason};
use crate::limits::Limits;
use crate::part::Part;
use crate::stream::Stream;
use doppel_model::{PageUrl, stable_hash128};

/// Where a file is that is read once more.
pub(super) enum Whereabouts {
    /// At a path.
    Path(Arc<Path>),
    /// In another file.
    Part(Part),
}

impl Whereabouts {
    pub(super) fn open(&self, limits: &Limits) -> Result<Stream, Reason> {
        match self {
            Self::Path(path) => Stream::open(path, limits),
            Self::Part(part) => part.open(limits),
        }
    }

    /// The place of an offset of the file, or of the file that it is in; or of a byte of what that unpacks to, counted from its first part on.
    pub(super) fn place(&self, offset: u64, unpacked: Option<u64>) -> Place {
        match (self, unpacked) {
            (Self::Path(_), None) => Place::Record(offset),
            (Self::Part(part), None) => Place::Record(part.offset(offset)),
            (_, Some(unpacked)) => Place::Unpacked(unpacked),
        }
    }

    /// Whether an offset is one of what is unpacked.
    pub(super) fn is_deflated(&self) -> bool {
        matches!(self, Self::Part(part) if part.is_deflated())
    }
}

/// A page with a payload.
#[derive(Clone, Copy)]
pub(super) struct Known {
    /// Where the record is, if it can be reached by one seek.
    mark: Option<u64>,
    /// How many pages come before it in the file.
    pub(super) number: u64,
    /// The number of the first page with the same payload digest.
    pub(super) content: u64,
}

/// The pages of a file that revisits may refer to.
pub(super) struct Originals {
    place: Whereabouts,
    form: Form,
    limits: Limits,
    /// Maps the hash of a payload digest, or of a record id, to its first page.
    known: HashMap<u128, Known>,
    /// Maps the hash of a URL to the content of the last capture of that URL. `None` if each capture is judged on its own.
    last_contents: Option<HashMap<u128, u64>>,
    /// A second reader of the file, opened at the first revisit that needs it.
    records: Option<Records>,
}

impl Originals {
    /// `judges_records`: whether each capture of a URL is judged on its own.
    pub(super) fn new(form: Form, place: Whereabouts, limits: Limits, judges_records: bool) -> Self {
        let last_contents = (!judges_records).then(HashMap::new);
        Self { place, form, limits, known: HashMap::new(), last_contents, records: None }
    }

    /// Whether each capture of a URL is judged on its own.
    pub(super) fn judges_records(&self) -> bool {
        self.last_contents.is_none()
    }

    /// Where the file is.
    pub(super) fn place(&self) -> &Whereabouts {
        &self.place
    }

    /// Remembers a page with a payload by its digest and its id, unless the limit is reached. `number` pages come before it. Gives its
    /// content. A digest or an id that cannot be read does no harm to the page.
    pub(super) fn remember(&mut self, record: Record<'_>, number: u64) -> u64 {
        let mut page = Known { mark: record.mark, number, content: number };
        for field in [Field::PayloadDigest, Field::RecordId] {
            let Some(key) = key(record, field).ok().flatten() else { continue };
            let is_full = self.known.len() >= self.limits.originals_max;
            match self.known.entry(key) {
                Entry::Occupied(first) if field == Field::PayloadDigest => page.content = first.get().content,
                Entry::Vacant(entry) if !is_full => drop(entry.insert(page)),
                Entry::Occupied(_) | Entry::Vacant(_) => {}
            }
        }
        page.content
    }

    /// Remembers the content of the last capture of a URL.
    pub(super) fn note_last(&mut self, url: &PageUrl, content: u64) {
        let Some(last) = &mut self.last_contents else { return };
        let key = stable_hash128(url.as_str().as_bytes());
        if last.len() < self.limits.originals_max || last.contains_key(&key) {
            last.insert(key, content);
        }
    }

    /// The content of the last capture of a URL in this file, if it is remembered.
    pub(super) fn last_content(&self, url: &PageUrl) -> Option<u64> {
        let key = stable_hash128(url.as_str().as_bytes());
        self.last_contents.as_ref()?.get(&key).copied()
    }

    /// The page that `revisit` refers to by one of these fields, the first that names a page.
    pub(super) fn find(&self, revisit: Record<'_>, fields: &[Field]) -> Result<Option<Known>, HeadError> {
        for field in fields {
            if let Some(known) = key(revisit, *field)?.and_then(|key| self.known.get(&key)) {
                return Ok(Some(*known));
            }
        }
        Ok(None)
    }

    /// Reads the record of a page again; none if it cannot be reached.
    pub(super) fn read(&mut self, page: Known) -> Result<Option<Record<'_>>, Reason> {
        let Some(mark) = page.mark else { return Ok(None) };
        let records = match &mut self.records {
            Some(records) => records,
            none => none.insert(Records::new(self.form, self.place.open(&self.limits)?, self.limits)),
        };
        let found = records.read_at(mark)?.then(|| records.record());
        Ok(found)
    }
}

/// The hash of a digest or an id. Neither looks like the other.
fn key(record: Record<'_>, field: Field) -> Result<Option<u128>, HeadError> {
    Ok(record.get(field)?.map(|value| stable_hash128(value.as_bytes())))
}
