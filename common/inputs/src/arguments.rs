//! The inputs of a command, as arguments.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use clap::Args;
use doppel_terminal::destination::refuse_input;
use doppel_terminal::exit::Failure;

use crate::records::RecordArgs;
use crate::sources::{self, Sources};
use crate::spool::Spool;

/// Crawls to read.
#[derive(Debug, Default, Args)]
pub struct InputArgs {
    /// WARC, WET, ARC, WACZ, JSON lines, CSV, TSV, Parquet or Arrow files, directories of these, or directories of HTML, text and Markdown files; - is
    /// standard input, and a pattern in quotes such as 'data/**/*.jsonl.zst' all files that it matches (docs/FORMATS.md). Several are
    /// successive crawls, in the order given. Crawl files in a directory with HTML pages are not read, only counted. The URL of a page is taken as it is spelt, but for
    /// the fragment: another case of the host or a default port make another page.
    #[arg(value_name = "INPUT", required = true)]
    pub inputs: Vec<PathBuf>,
    /// End with code 5 when a record could not be read, too.
    #[arg(long)]
    pub strict: bool,
    /// What is in files of records.
    #[command(flatten)]
    pub records: RecordArgs,
    /// How much is read of them; all where nothing is said.
    #[arg(skip)]
    pub at_most: Option<AtMost>,
    /// What the inputs name, once that was looked for.
    #[arg(skip)]
    found: OnceLock<Sources>,
}

/// How much is read of all inputs together. Each has an equal share; what one does not need is for those after it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AtMost {
    /// Pages, redirects, and deaths.
    pub records: u64,
    /// Bytes of HTML and text.
    pub bytes: u64,
}

impl AtMost {
    /// The share of the next of so many inputs.
    pub fn share(self, inputs: usize) -> Self {
        let inputs = inputs.max(1) as u64;
        Self { records: self.records.div_ceil(inputs), bytes: self.bytes.div_ceil(inputs) }
    }

    /// The rest of the bound after `read` was read.
    pub fn less(self, read: Self) -> Self {
        Self {
            records: self.records.saturating_sub(read.records),
            bytes: self.bytes.saturating_sub(read.bytes),
        }
    }

    /// Whether so much leaves room for no further record.
    pub fn is_used_up(self, read: Self) -> bool {
        read.records >= self.records || read.bytes >= self.bytes
    }
}

impl InputArgs {
    /// These inputs, what is said of them, and of their records.
    #[must_use]
    pub fn new(inputs: Vec<PathBuf>, strict: bool, records: RecordArgs) -> Self {
        Self { inputs, strict, records, at_most: None, found: OnceLock::new() }
    }

    /// What the inputs name. It is looked for once, so that all readings of a run have the same.
    ///
    /// # Errors
    /// Those of [`sources::sources`].
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

    /// Copies what can be read only once, for a run that reads its inputs several times.
    ///
    /// # Errors
    /// Those of [`Self::sources`] and of [`Spool::of`].
    pub fn spool(&mut self) -> anyhow::Result<Option<Spool>> {
        self.sources()?;
        self.found.get_mut().map_or(Ok(None), |sources| Spool::of(&mut sources.all))
    }

    /// Refuses an output in the place of a file that is read. An input that is not there is told by who reads it, before anything is written.
    ///
    /// # Errors
    /// When it is one.
    pub fn refuse_output(&self, option: &str, path: &Path) -> Result<(), Failure> {
        if sources::is_standard(path) {
            // As an output it is another one than as an input.
            return Ok(());
        }
        refuse_input(option, path, &self.inputs)?;
        self.sources().map_or(Ok(()), |sources| sources.refuse_output(option, path))
    }
}

impl From<Vec<PathBuf>> for InputArgs {
    /// These inputs, and all else as without options.
    fn from(inputs: Vec<PathBuf>) -> Self {
        Self::new(inputs, false, RecordArgs::default())
    }
}
