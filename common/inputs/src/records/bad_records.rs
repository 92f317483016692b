//! Writes the file of bad records, with one line of JSON for each. A line is written as soon as the reader
//! meets the record, so the file is complete no matter how the run ends.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use anyhow::Context;
use doppel_crawls::{FieldError, FieldProblem, HeadError, InputError, Reason};
use serde::Serialize;

use crate::records::position_fields::PositionFields;
use crate::sources::Sources;
use doppel_terminal::exit::Failure;
use doppel_terminal::output::say;

/// The file of bad records, which all clones share. It is created when the inputs are opened for the first
/// time.
#[derive(Debug, Clone)]
pub struct BadFile {
    path: PathBuf,
    file: Arc<OnceLock<Mutex<Writing>>>,
}

/// The open file, and whether writing has failed.
#[derive(Debug)]
struct Writing {
    file: File,
    /// Error of the line that could not be written. No line is written after it.
    failed: Option<io::Error>,
}

/// A line of the file of bad records.
#[derive(Debug, Default, Serialize)]
struct Line<'e> {
    /// File or directory that contains the record.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    #[serde(flatten)]
    position: PositionFields,
    /// Number of unpacked bytes that the reader skipped to continue behind the record.
    #[serde(skip_serializing_if = "Option::is_none")]
    skipped_bytes: Option<u64>,
    /// URL of a page that was read but could not be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<&'e str>,
    /// Kind under which the summary counts the record.
    kind: &'e str,
    /// Reason why the record is bad.
    reason: String,
    /// The record itself, if it is a line of UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    record: Option<&'e str>,
    /// The record itself, if it is a line that is not UTF-8: two hexadecimal digits per byte.
    #[serde(skip_serializing_if = "Option::is_none")]
    record_hex: Option<String>,
}

impl From<OsString> for BadFile {
    fn from(path: OsString) -> Self {
        Self { path: path.into(), file: Arc::default() }
    }
}

impl BadFile {
    /// Path of the file of bad records.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Creates the file, unless an earlier call has created it.
    ///
    /// # Errors
    /// If the path is `-` or an input, or if the file cannot be written.
    pub fn begin(&self, inputs: &Sources) -> anyhow::Result<()> {
        if self.path == Path::new("-") {
            return Err(Failure::Usage("--bad names a file; standard output is not for it".to_owned()).into());
        }
        inputs.refuse_output("--bad", &self.path)?;
        if self.file.get().is_some() {
            return Ok(());
        }
        let file =
            File::create(&self.path).with_context(|| format!("cannot write {}", self.path.display()))?;
        let _is_made = self.file.set(Mutex::new(Writing { file, failed: None }));
        Ok(())
    }

    /// Writes a line for a record that could not be read.
    pub fn note(&self, kind: &str, error: &InputError) {
        let mut line = Line {
            kind,
            reason: error.reason.to_string(),
            skipped_bytes: Some(error.skipped).filter(|bytes| *bytes > 0),
            file: Some(error.path.display().to_string()),
            position: error.position.into(),
            ..Line::default()
        };
        match error.line.as_deref().map(|record| (record, str::from_utf8(record))) {
            Some((_, Ok(record))) => line.record = Some(record),
            Some((record, Err(_))) => {
                line.record_hex = Some(record.iter().map(|byte| format!("{byte:02x}")).collect());
            }
            None => {}
        }
        self.write(&line);
    }

    /// Writes a line for a page that was read but could not be used.
    pub fn note_page(&self, kind: &str, url: &str, reason: String) {
        self.write(&Line { url: Some(url), kind, reason, ..Line::default() });
    }

    /// Writes a line with a single call, so that the file contains only whole lines. If that fails, prints
    /// the error once, and ignores all further lines.
    fn write(&self, line: &Line<'_>) {
        let Some(writing) = self.file.get() else { return };
        let mut writing = writing.lock().unwrap_or_else(PoisonError::into_inner);
        if writing.failed.is_some() {
            return;
        }
        let text = serde_json::to_vec(line).map(|mut text| {
            text.push(b'\n');
            text
        });
        let written = text.map_err(io::Error::from).and_then(|text| writing.file.write_all(&text));
        if let Err(error) = written {
            say!("doppel: cannot write {}: {error}; later bad records are missing", self.path.display());
            writing.failed = Some(error);
        }
    }

    /// Checks that all lines so far were written, and syncs them to disk.
    ///
    /// # Errors
    /// If a line could not be written, or the file cannot be synced. Every further call fails, too.
    pub fn check(&self) -> Result<(), Failure> {
        let Some(writing) = self.file.get() else { return Ok(()) };
        let mut writing = writing.lock().unwrap_or_else(PoisonError::into_inner);
        // A pipe or a device cannot be synced.
        let is_file = writing.file.metadata().is_ok_and(|there| there.is_file());
        if writing.failed.is_none() && is_file {
            writing.failed = writing.file.sync_all().err();
        }
        writing.failed.as_ref().map_or(Ok(()), |error| {
            let path = self.path.display();
            Err(Failure::IncompleteOutput(format!(
                "{path} does not have all bad records: it cannot be written: {error}; make room or name another file, and run the command \
                 again"
            )))
        })
    }
}

/// Kind under which the summary counts an error.
pub fn class(error: &InputError) -> &'static str {
    match error.reason {
        Reason::Io(_) => "unreadable",
        Reason::FileKind
        | Reason::Format
        | Reason::JsonArray
        | Reason::JsonOverLines
        | Reason::Comments
        | Reason::Utf16
        | Reason::PackedColumns
        | Reason::WithoutColumns
        | Reason::PageInPipe => "unknown format",
        Reason::Wacz(_) => "unreadable WACZ file",
        Reason::Truncated => "truncated",
        Reason::BehindDamage => "row behind damage",
        Reason::ZstdWindow { .. } => "zstd window above --zstd-window-max",
        Reason::Corrupt(_) => "corrupt compressed data",
        Reason::Expansion { .. } => "unpacks to implausibly much",
        Reason::Head(HeadError::OtherVersion(_)) => "WARC of another version",
        Reason::Head(_) | Reason::Length => "broken WARC or ARC record",
        Reason::TooLarge { .. } => "too large",
        Reason::Url(_) | Reason::Field(FieldError { problem: FieldProblem::Url(_), .. }) => "no page URL",
        Reason::Date(_) | Reason::Ahead(_) => "bad date",
        Reason::Http(_) | Reason::Encoding(_) => "broken HTTP response",
        Reason::Coding(_) | Reason::Codings(_) => "unsupported content encoding",
        Reason::NoText(_) => "binary or compressed data, not text",
        Reason::Item(_) => "JSON line that is no page",
        Reason::Cells { .. } => "row of another number of cells",
        Reason::BehindQuote { .. } | Reason::LongQuote { .. } | Reason::OpenQuote { .. } => {
            "row with a stray quote"
        }
        Reason::Annotated | Reason::NoAnnotations | Reason::NoAnnotationsInArc => "no place for annotations",
        Reason::Unwritable { .. } => "a type that is not written",
        Reason::Columns(_) => "broken Parquet or Arrow data",
        Reason::Field(_) => "record that is no page",
    }
}
