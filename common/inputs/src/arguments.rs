//! The inputs of a command, as arguments of the command line.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use clap::Args;
use doppel_terminal::destination::refuse_input;
use doppel_terminal::exit::Failure;

use crate::records::RecordArgs;
use crate::sources::{self, Sources};
use crate::spool::Spool;

/// The inputs that a command reads, and the options for them.
#[derive(Debug, Default, Args)]
pub struct InputArgs {
    /// Files, directories and patterns to read. A file is WARC, WET, ARC, WACZ, JSON lines, CSV, TSV, Parquet
    /// or Arrow. A directory contains such files, or HTML, text and Markdown files. A pattern in quotes, such
    /// as 'data/**/*.jsonl.zst', names all files that match it, and - is standard input (docs/reference/formats.md).
    /// Several inputs are successive crawls, in the order given. In a directory with HTML pages, crawl files
    /// are not read, only counted. The URL of a page is used as it is spelt, without the fragment: another
    /// case of the host or a default port makes another page.
    #[arg(value_name = "INPUT", required = true)]
    pub inputs: Vec<PathBuf>,
    /// Also end with code 5 if a record could not be read.
    #[arg(long)]
    pub strict: bool,
    /// Which fields the records have, and what happens to bad records.
    #[command(flatten)]
    pub records: RecordArgs,
    /// Limit on what is read of all inputs together. `None` reads everything.
    #[arg(skip)]
    pub at_most: Option<AtMost>,
    /// Sources that the inputs name. Empty until the inputs are first resolved.
    #[arg(skip)]
    found: OnceLock<Sources>,
}

/// Limit on what is read of all inputs together. Each input has an equal share. Inputs leave the unused part
/// of their share to the inputs after them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AtMost {
    /// Number of pages, redirects, and deaths.
    pub records: u64,
    /// Number of bytes of HTML and text.
    pub bytes: u64,
}

impl AtMost {
    /// Share of the next input if `inputs` inputs are left to read, including the next one.
    pub fn share(self, inputs: usize) -> Self {
        let inputs = inputs.max(1) as u64;
        Self { records: self.records.div_ceil(inputs), bytes: self.bytes.div_ceil(inputs) }
    }

    /// Rest of the limit after `read` was read.
    pub fn less(self, read: Self) -> Self {
        Self {
            records: self.records.saturating_sub(read.records),
            bytes: self.bytes.saturating_sub(read.bytes),
        }
    }

    /// Whether `read` reaches the limit, so that there is no room for a further record.
    pub fn is_used_up(self, read: Self) -> bool {
        read.records >= self.records || read.bytes >= self.bytes
    }
}

impl InputArgs {
    /// Creates the arguments for these inputs and options, without a limit on what is read.
    #[must_use]
    pub fn new(inputs: Vec<PathBuf>, strict: bool, records: RecordArgs) -> Self {
        Self { inputs, strict, records, at_most: None, found: OnceLock::new() }
    }

    /// Sources that the inputs name. The first call resolves the inputs, so that all passes of a command read
    /// the same sources.
    ///
    /// # Errors
    /// The errors of [`sources::sources`].
    pub fn sources(&self) -> anyhow::Result<&Sources> {
        if let Some(found) = self.found.get() {
            return Ok(found);
        }
        let mut found = sources::sources(&self.inputs)?;
        if self.records.fields.judges_records {
            found.give_distinct_names();
        }
        Ok(self.found.get_or_init(|| found))
    }

    /// Copies standard input and named pipes to files, for a command that reads its inputs several times.
    /// `None` if no source needs a copy.
    ///
    /// # Errors
    /// The errors of [`Self::sources`] and of [`Spool::of`].
    pub fn spool(&mut self) -> anyhow::Result<Option<Spool>> {
        self.sources()?;
        self.found.get_mut().map_or(Ok(None), |sources| Spool::of(&mut sources.all))
    }

    /// Refuses an output path that names a file to be read. If an input does not exist, the result is `Ok`:
    /// the reader reports the missing input before the command writes anything.
    ///
    /// # Errors
    /// [`Failure::Usage`] if the output would replace an input.
    pub fn refuse_output(&self, option: &str, path: &Path) -> Result<(), Failure> {
        if sources::is_standard(path) {
            // `-` means standard output here and standard input there, so the two never collide.
            return Ok(());
        }
        refuse_input(option, path, &self.inputs)?;
        self.sources().map_or(Ok(()), |sources| sources.refuse_output(option, path))
    }
}

impl From<Vec<PathBuf>> for InputArgs {
    /// Creates the arguments for these inputs as if no option were given.
    fn from(inputs: Vec<PathBuf>) -> Self {
        Self::new(inputs, false, RecordArgs::default())
    }
}
