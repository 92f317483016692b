//! Finds the records that revisits refer to, by payload digest or by record id.
//!
//! Crawlers store a payload once, and write a revisit when another URL returned the same bytes. Only offsets and numbers
//! are kept in memory, and only those of records that can be reached by one seek.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use super::form::Form;
use super::head::Field;
use super::record::{Record, Records};
use crate::error::HeadError;
use crate::error::Reason;
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

    /// The place of an offset of the file, or of the file that it is in.
    pub(super) fn offset(&self, offset: u64) -> u64 {
        match self {
            Self::Path(_) => offset,
            Self::Part(part) => part.offset(offset),
        }
    }
}

/// A record with a payload.
#[derive(Clone, Copy)]
struct Known {
    mark: u64,
    /// How many pages come before it in the file.
    number: u64,
}

/// The record that a revisit refers to.
pub(super) struct Original<'r> {
    pub(super) record: Record<'r>,
    /// How many pages come before it in the file.
    pub(super) number: u64,
}

/// The offsets of the payloads of a file.
pub(super) struct Originals {
    place: Whereabouts,
    form: Form,
    limits: Limits,
    /// Maps the hash of a payload digest, or of a record id, to its record.
    known: HashMap<u128, Known>,
    /// Maps the hash of a URL to the number of its last page, where a page keeps its content if a revisit finds it unchanged.
    present: Option<HashMap<u128, u64>>,
    /// A second reader of the file, opened at the first revisit that needs it.
    records: Option<Records>,
}

impl Originals {
    /// `judges_records`: whether several pages of one URL stay apart.
    pub(super) fn new(form: Form, place: Whereabouts, limits: Limits, judges_records: bool) -> Self {
        let present = (!judges_records).then(HashMap::new);
        Self { place, form, limits, known: HashMap::new(), present, records: None }
    }

    /// Whether several pages of one URL stay apart.
    pub(super) fn judges_records(&self) -> bool {
        self.present.is_none()
    }

    /// Where the file is.
    pub(super) fn place(&self) -> &Whereabouts {
        &self.place
    }

    /// Remembers a page with a payload by its digest and its id, unless the limit is reached. So many pages come before it.
    pub(super) fn remember(&mut self, record: Record<'_>, number: u64) -> Result<(), HeadError> {
        let Some(mark) = record.mark else { return Ok(()) };
        for field in [Field::PayloadDigest, Field::RecordId] {
            if let Some(key) = key(record, field)?
                && self.known.len() < self.limits.originals_max
            {
                self.known.entry(key).or_insert(Known { mark, number });
            }
        }
        Ok(())
    }

    /// Remembers that a page is the last one of its URL.
    pub(super) fn note_present(&mut self, url: &PageUrl, number: u64) {
        let Some(present) = &mut self.present else { return };
        let key = stable_hash128(url.as_str().as_bytes());
        if present.len() < self.limits.originals_max || present.contains_key(&key) {
            present.insert(key, number);
        }
    }

    /// Whether no page of this URL is known to come after the original, which is one.
    pub(super) fn is_present(&self, url: &PageUrl, number: u64) -> bool {
        let key = stable_hash128(url.as_str().as_bytes());
        self.present.as_ref().and_then(|present| present.get(&key)).is_none_or(|last| *last == number)
    }

    /// The record with the payload that `revisit` refers to, if it was remembered.
    pub(super) fn find(&mut self, revisit: Record<'_>) -> Result<Option<Original<'_>>, Reason> {
        self.find_by(&[Field::PayloadDigest, Field::RefersTo], revisit)
    }

    /// The record whose id `revisit` names, if it was remembered.
    pub(super) fn find_by_id(&mut self, revisit: Record<'_>) -> Result<Option<Original<'_>>, Reason> {
        self.find_by(&[Field::RefersTo], revisit)
    }

    fn find_by(&mut self, fields: &[Field], revisit: Record<'_>) -> Result<Option<Original<'_>>, Reason> {
        let mut keys = fields.iter().copied();
        let known = keys.try_fold(None, |known, field| {
            Ok::<_, HeadError>(known.or(key(revisit, field)?.and_then(|key| self.known.get(&key))))
        })?;
        let Some(Known { mark, number }) = known.copied() else { return Ok(None) };
        let records = match &mut self.records {
            Some(records) => records,
            none => none.insert(Records::new(self.form, self.place.open(&self.limits)?, self.limits)),
        };
        let found = records.read_at(mark)?.then(|| Original { record: records.record(), number });
        Ok(found)
    }
}

/// The hash of a digest or an id. Neither looks like the other.
fn key(record: Record<'_>, field: Field) -> Result<Option<u128>, HeadError> {
    Ok(record.get(field)?.map(|value| stable_hash128(value.as_bytes())))
}
