//! Finds the records that revisits refer to, by payload digest or by record id.
//!
//! Crawlers store a payload once, and write a revisit when another URL returned the same bytes. Only offsets
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
use doppel_model::stable_hash128;

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

/// The offsets of the payloads of a file.
pub(super) struct Originals {
    place: Whereabouts,
    form: Form,
    limits: Limits,
    /// Maps the hash of a payload digest, or of a record id, to the mark of its record.
    marks: HashMap<u128, u64>,
    /// A second reader of the file, opened at the first revisit that needs it.
    records: Option<Records>,
}

impl Originals {
    pub(super) fn new(form: Form, place: Whereabouts, limits: Limits) -> Self {
        Self { place, form, limits, marks: HashMap::new(), records: None }
    }

    /// Where the file is.
    pub(super) fn place(&self) -> &Whereabouts {
        &self.place
    }

    /// Remembers a record by its payload digest and its id, unless the limit is reached.
    pub(super) fn remember(&mut self, record: Record<'_>) -> Result<(), HeadError> {
        let Some(mark) = record.mark else { return Ok(()) };
        for field in [Field::PayloadDigest, Field::RecordId] {
            if let Some(key) = key(record, field)?
                && self.marks.len() < self.limits.originals_max
            {
                self.marks.entry(key).or_insert(mark);
            }
        }
        Ok(())
    }

    /// The record with the payload that `revisit` refers to, if it was remembered.
    pub(super) fn find(&mut self, revisit: Record<'_>) -> Result<Option<Record<'_>>, Reason> {
        self.find_by(&[Field::PayloadDigest, Field::RefersTo], revisit)
    }

    /// The record whose id `revisit` names, if it was remembered.
    pub(super) fn find_by_id(&mut self, revisit: Record<'_>) -> Result<Option<Record<'_>>, Reason> {
        self.find_by(&[Field::RefersTo], revisit)
    }

    fn find_by(&mut self, fields: &[Field], revisit: Record<'_>) -> Result<Option<Record<'_>>, Reason> {
        let mut keys = fields.iter().copied();
        let known = keys.try_fold(None, |known, field| {
            Ok::<_, HeadError>(known.or(key(revisit, field)?.and_then(|key| self.marks.get(&key))))
        })?;
        let Some(mark) = known else { return Ok(None) };
        let records = match &mut self.records {
            Some(records) => records,
            none => none.insert(Records::new(self.form, self.place.open(&self.limits)?, self.limits)),
        };
        let found = records.read_at(*mark)?.then(|| records.record());
        Ok(found)
    }
}

/// The hash of a digest or an id. Neither looks like the other.
fn key(record: Record<'_>, field: Field) -> Result<Option<u128>, HeadError> {
    Ok(record.get(field)?.map(|value| stable_hash128(value.as_bytes())))
}
