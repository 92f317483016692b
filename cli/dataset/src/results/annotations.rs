//! Annotations of records, stored in a temporary file until the records are copied.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::FileExt;

use anyhow::Context;
use doppel_crawls::copy::{Annotation, RecordName};
use doppel_protocol::Line;
use serde::{Deserialize, Serialize};

/// Annotation of the record of a page, without the reason of its removal.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct PageAnnotation {
    group: Option<String>,
    winner: Option<String>,
    /// File and id of the winner's record.
    winner_record: (Option<String>, Option<String>),
    duplicate_of: Option<String>,
    duplicate_of_record: (Option<String>, Option<String>),
    similarity: Option<f64>,
}

impl PageAnnotation {
    /// Creates the annotation from a line, with the names of the records of the winner and of the kept page.
    pub(super) fn of(line: Line, (winner_record, duplicate_of_record): (RecordName, RecordName)) -> Self {
        let Line { group, winner, duplicate_of, similarity, .. } = line;
        let parts = |name: RecordName| (name.file, name.id);
        Self {
            group: group.map(|group| group.to_string()),
            winner: winner.map(|winner| winner.as_str().to_owned()),
            winner_record: parts(winner_record),
            duplicate_of: duplicate_of.map(|of| of.as_str().to_owned()),
            duplicate_of_record: parts(duplicate_of_record),
            similarity,
        }
    }

    pub(super) fn with_reason(self, reason: Option<&'static str>) -> Annotation {
        let Self { group, winner, winner_record, duplicate_of, duplicate_of_record, similarity } = self;
        let name = |(file, id)| RecordName { file, id };
        let (winner_record, duplicate_of_record) = (name(winner_record), name(duplicate_of_record));
        Annotation { group, winner, winner_record, duplicate_of, duplicate_of_record, similarity, reason }
    }
}

/// All annotations: a temporary file, and the offset in it for each record.
#[derive(Debug)]
pub(super) struct Annotations {
    places: Vec<u64>,
    file: File,
}

/// Offset of a record without an annotation.
const NOWHERE: u64 = u64::MAX;

pub(super) struct AnnotationsWriter {
    places: Vec<u64>,
    out: BufWriter<File>,
    end: u64,
}

impl AnnotationsWriter {
    pub(super) fn new(records: usize) -> anyhow::Result<Self> {
        let file = tempfile::tempfile().context("cannot make a temporary file")?;
        Ok(Self { places: vec![NOWHERE; records], out: BufWriter::new(file), end: 0 })
    }

    pub(super) fn add(&mut self, record: u64, annotation: &PageAnnotation) -> io::Result<()> {
        let text = serde_json::to_vec(annotation)?;
        let length = u32::try_from(text.len()).map_err(io::Error::other)?;
        self.out.write_all(&length.to_le_bytes())?;
        self.out.write_all(&text)?;
        if let Some(place) = usize::try_from(record).ok().and_then(|at| self.places.get_mut(at)) {
            *place = self.end;
        }
        self.end += 4 + u64::from(length);
        Ok(())
    }

    pub(super) fn finish(self) -> io::Result<Annotations> {
        let file = self.out.into_inner().map_err(io::IntoInnerError::into_error)?;
        Ok(Annotations { places: self.places, file })
    }
}

impl Annotations {
    pub(super) fn get(&self, record: u64) -> io::Result<Option<PageAnnotation>> {
        let place = usize::try_from(record).ok().and_then(|at| self.places.get(at)).copied();
        let Some(place) = place.filter(|place| *place != NOWHERE) else { return Ok(None) };
        let mut length = [0; 4];
        self.file.read_exact_at(&mut length, place)?;
        let mut text = vec![0; u32::from_le_bytes(length) as usize];
        self.file.read_exact_at(&mut text, place + 4)?;
        Ok(Some(serde_json::from_slice(&text)?))
    }
}
