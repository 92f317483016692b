//! Tables of a policy: reads them from a file, learns them from crawls, and keeps them in a data directory.
//!
//! If the policy of a collection reads tables, the manifest has their hash, and the data directory has them
//! in the file [`NAME`]. The collection is always opened with these tables, because signatures made with
//! other tables cannot be compared with its own. The tables are written before the manifest. A process that
//! is killed between leaves an empty directory or one with tables alone, in which the next process begins
//! anew. If the file is missing or damaged, for example after `doppel restore`, giving the same tables
//! restores it.
//!
//! In a cluster, the description has the hash. Only coordinators make signatures, so only they need the file.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use anyhow::anyhow;
use doppel_crawls::FetchedPage;
use doppel_inputs::arguments::InputArgs;
use doppel_inputs::processor;
use doppel_inputs::reading::crawl::content_bytes;
use doppel_inputs::reading::page_batches::{BatchSize, read_batches};
use doppel_inputs::records::unusable::UnusablePages;
use doppel_inputs::tally::{self, Tally};
use doppel_model::pairwise::{Policy, Signer};
use doppel_model::tables::{CONTENT_TERMS_MAX, FILE_BYTES_MAX, Tables, TablesError, TablesHash, TermSample};
use doppel_terminal::atomic_file::{self, ExistingFile};
use doppel_terminal::exit::Failure;
use doppel_text::Extractor;

use crate::args::PolicyArgs;

/// Name of the file in a data directory.
pub const NAME: &str = "policy-tables";
/// Prefix of the temporary names under which the file is written.
const ASIDE: &str = "policy-tables.new";
/// Size of the batches that threads read. The order of words does not matter, so threads may finish in any
/// order.
const BATCH: BatchSize = BatchSize { pages: 256, bytes: 4 << 20 };

/// Why the tables that a policy needs cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PolicyTablesError {
    /// The operating system reports an error.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// The action that failed.
        action: &'static str,
        /// The path of the file.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The file is no valid file of tables.
    #[error("{}: {reason}", path.display())]
    File {
        /// Path of the invalid file.
        path: PathBuf,
        /// Why the file is invalid.
        reason: TablesError,
    },
    /// The file has tables of another policy.
    #[error(
        "{} has tables of {of}, not of {policy}; learn others with `doppel policy-tables INPUT... --policy {policy} --out FILE`",
        path.display()
    )]
    Another {
        /// Path of the file with tables of another policy.
        path: PathBuf,
        /// Policy whose tables the file has.
        of: String,
        /// Policy that the command line names.
        policy: &'static str,
    },
    /// The policy cannot read these tables.
    #[error("--policy-tables: {0}")]
    Unreadable(TablesError),
    /// The policy needs tables.
    #[error(
        "the policy {0} needs tables of the words in the collection: learn them from pages like those to come, with `doppel \
         policy-tables INPUT... --policy {0} --out FILE`, and give --policy-tables FILE"
    )]
    Needed(&'static str),
    /// The policy reads no tables, but a file was given.
    #[error("the policy {0} reads no tables: leave --policy-tables away")]
    Unread(&'static str),
    /// The tables of a collection are missing or unusable, and were not given.
    #[error(
        "{} {found}, and no page can be read without it: give the tables of this collection with \
         --policy-tables FILE; their hash is {hash}", path.display()
    )]
    Missing {
        /// Path of the file in the data directory.
        path: PathBuf,
        /// Problem of the file, such as `is missing`.
        found: String,
        /// Hash of the tables of the collection.
        hash: TablesHash,
    },
    /// The tables of a cluster were not given.
    #[error(
        "the policy {policy} of this cluster reads tables: give --policy-tables FILE, the file that `doppel init` was given; its \
         hash is {has}"
    )]
    NotGiven {
        /// The policy.
        policy: &'static str,
        /// Hash of the tables of the cluster.
        has: TablesHash,
    },
    /// The given tables are not the tables of the cluster.
    #[error(
        "the tables of the cluster are {has}, and those of --policy-tables are {given}: give this process the file that `doppel init` was given"
    )]
    Unlike {
        /// Hash of the tables of the cluster.
        has: TablesHash,
        /// Hash of the tables in the file of `--policy-tables`.
        given: TablesHash,
    },
}

impl PolicyTablesError {
    /// Whether the arguments contradict each other, independently of the files on disk.
    pub fn is_usage(&self) -> bool {
        matches!(self, Self::Needed(_) | Self::Unread(_) | Self::Another { .. } | Self::Unreadable(_))
    }
}

// The message contains the text of the `TablesError`, so the error is no source as well.
impl From<TablesError> for PolicyTablesError {
    fn from(error: TablesError) -> Self {
        Self::Unreadable(error)
    }
}

/// Checks that tables are given if and only if the policy reads tables.
///
/// # Errors
/// If the policy needs tables and has none, or has tables that it does not read.
pub fn check(policy: Policy, has_tables: bool) -> Result<(), PolicyTablesError> {
    match (policy.reads_tables(), has_tables) {
        (true, false) => Err(PolicyTablesError::Needed(policy.name())),
        (false, true) => Err(PolicyTablesError::Unread(policy.name())),
        _ => Ok(()),
    }
}

/// Reads a file of tables.
///
/// # Errors
/// If the file cannot be read or used; the message names the file and the reason.
pub fn read(path: &Path) -> Result<Arc<Tables>, PolicyTablesError> {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes));
    read.map_err(|source| PolicyTablesError::Io { action: "read", path: path.to_owned(), source })?;
    let tables = Tables::from_file(&bytes);
    tables.map(Arc::new).map_err(|reason| PolicyTablesError::File { path: path.to_owned(), reason })
}

/// Reads the tables of `--policy-tables`, if the option is given.
///
/// # Errors
/// If the file cannot be used, or its tables belong to another policy than the one that the options name.
pub fn from_args(args: &PolicyArgs) -> anyhow::Result<Option<Arc<Tables>>> {
    let Some(path) = &args.policy_tables else { return Ok(None) };
    let tables = read(path)?;
    if let Some(policy) = args.policy()? {
        check(policy, true)?;
        if tables.policy() != policy.name() {
            let (path, of) = (path.clone(), tables.policy().to_owned());
            return Err(PolicyTablesError::Another { path, of, policy: policy.name() }.into());
        }
    }
    Ok(Some(tables))
}

/// Creates a signer of a policy with its tables.
///
/// # Errors
/// If the policy and the tables contradict each other.
pub fn signer(policy: Policy, tables: Option<Arc<Tables>>) -> Result<Signer, PolicyTablesError> {
    check(policy, tables.is_some())?;
    match tables {
        None => Ok(Signer::new(policy)),
        Some(tables) => Ok(Signer::with_tables(policy, tables)?),
    }
}

/// Creates a signer of a collection in a data directory, whose manifest has `policy` and the hash `has`. If
/// the file is missing or unusable, `given` replaces it, provided that its hash is the same.
///
/// # Errors
/// If the tables of the collection are neither in the directory nor given, or cannot be written.
pub(crate) fn signer_of_directory(
    dir: &Path,
    (policy, has): (Policy, Option<TablesHash>),
    given: Option<Arc<Tables>>,
) -> Result<Signer, PolicyTablesError> {
    let Some(hash) = has else { return signer(policy, None) };
    let path = dir.join(NAME);
    let found = match read(&path) {
        Ok(tables) if tables.hash() == hash => return signer(policy, Some(tables)),
        Ok(tables) => format!("has other tables, {}", tables.hash()),
        Err(PolicyTablesError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
            "is missing".to_owned()
        }
        Err(PolicyTablesError::Io { source, .. }) => format!("cannot be read ({source})"),
        Err(PolicyTablesError::File { reason, .. }) => format!("cannot be used ({reason})"),
        Err(error) => format!("cannot be used ({error})"),
    };
    let Some(tables) = given.filter(|given| given.hash() == hash) else {
        return Err(PolicyTablesError::Missing { path, found, hash });
    };
    write(&path, &tables)?;
    signer(policy, Some(tables))
}

/// Whether a directory has the tables that its manifest names.
pub fn has_named_tables(dir: &Path, has: TablesHash) -> bool {
    read(&dir.join(NAME)).is_ok_and(|tables| tables.hash() == has)
}

/// Whether a directory has no file of tables, as after `doppel restore` and in the directories of a cluster.
pub fn is_missing(dir: &Path) -> bool {
    !dir.join(NAME).exists()
}

/// The problem of the file in a directory whose manifest names these tables. `None` if the file is sound or
/// [missing](is_missing).
pub fn damage(dir: &Path, has: Option<TablesHash>) -> Option<String> {
    let has = has?;
    match read(&dir.join(NAME)) {
        Ok(tables) if tables.hash() == has => None,
        Ok(tables) => Some(format!("{NAME} has {}, and the collection {has}", tables.hash())),
        Err(PolicyTablesError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => None,
        Err(error) => Some(error.to_string()),
    }
}

/// Creates a signer of a cluster, whose description has `policy` and the hash `has`.
///
/// # Errors
/// If the cluster has tables, and they are not given or others are.
pub fn signer_of_cluster(
    (policy, has): (Policy, Option<TablesHash>),
    given: Option<Arc<Tables>>,
) -> Result<Signer, PolicyTablesError> {
    match (has, given.as_deref().map(Tables::hash)) {
        (Some(has), Some(given)) if has != given => Err(PolicyTablesError::Unlike { has, given }),
        (Some(has), None) => Err(PolicyTablesError::NotGiven { policy: policy.name(), has }),
        _ => signer(policy, given),
    }
}

/// Writes the file of a directory, unless it exists with the same tables.
///
/// # Errors
/// If the file cannot be written.
pub(crate) fn write_unless_present(path: &Path, tables: &Tables) -> Result<(), PolicyTablesError> {
    if read(path).is_ok_and(|there| there.hash() == tables.hash()) { Ok(()) } else { write(path, tables) }
}

/// Writes the file of a directory atomically.
///
/// # Errors
/// If the file cannot be written.
pub fn write(path: &Path, tables: &Tables) -> Result<(), PolicyTablesError> {
    let written = atomic_file::write(path, ASIDE, &tables.to_file(), ExistingFile::Replace);
    written.map_err(|source| PolicyTablesError::Io { action: "write", path: path.to_owned(), source })
}

/// Whether a name in a directory is the name of the file, or a temporary name of it.
pub(crate) fn is_name(name: &OsStr) -> bool {
    name == NAME || is_aside(name)
}

/// Whether a name is a temporary name of the file.
pub(crate) fn is_aside(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(ASIDE.as_bytes())
}

/// Learns the tables of a policy from crawls.
///
/// Tables without a word are refused, because they would weigh all words alike for the whole life of the
/// collection.
///
/// # Errors
/// See [`sample`]; also if no word occurs in two contents.
pub fn learn(inputs: &InputArgs, policy: Policy, tell: bool) -> anyhow::Result<(Tables, Tally)> {
    let failed = tell.then(|| Mutex::new(UnusablePages::of(inputs)));
    let (sample, mut tally) = sample_noting(inputs, (tell, failed.as_ref()), |_| ())?;
    if let Some(failed) = failed {
        tally.without(failed.into_inner().unwrap_or_else(PoisonError::into_inner));
    }
    let tables = Tables::learn(policy.name(), &sample);
    let Some(why) = why_empty(&tables) else { return Ok((tables, tally)) };
    tally.verdict(inputs.strict, 0)?;
    let text = format!(
        "{why}, so {} can learn nothing from the input, and its tables could never change; give more pages, or \
         tables that were learnt before with --policy-tables FILE, or take a policy without tables, such as jaccard",
        policy.name()
    );
    Err(Failure::BadInput(text).into())
}

/// The reason why tables have no word. `None` if they have words.
pub fn why_empty(tables: &Tables) -> Option<String> {
    match (tables.terms(), tables.contents()) {
        (0, 0) => Some(format!("no page of the input has a word, or all have more than {CONTENT_TERMS_MAX}")),
        (0, _) => Some("no word is in two contents of the input".to_owned()),
        _ => None,
    }
}

/// Reads the words of crawls on all cores. The tables of any policy can be learnt from them.
///
/// Redirects and dead pages have no words. Bad records are counted and reported. Pages on which the extractor
/// fails are only reported when the command reads them again for its own work. `also` gets every page, in the
/// order of the inputs.
///
/// # Errors
/// If an input cannot be opened, or a thread cannot be started.
pub fn sample(inputs: &InputArgs, also: impl FnMut(&FetchedPage)) -> anyhow::Result<(TermSample, Tally)> {
    sample_noting(inputs, (true, None), also)
}

/// Like [`sample`], but reports bad records only with `tell`, and notes in `failed` the pages on which the
/// extractor fails.
fn sample_noting(
    inputs: &InputArgs,
    (tell, failed): (bool, Option<&Mutex<UnusablePages>>),
    mut also: impl FnMut(&FetchedPage),
) -> anyhow::Result<(TermSample, Tally)> {
    let sample = Mutex::new(TermSample::new());
    let threads = processor::cores();
    let (sender, batches) = sync_channel::<Vec<FetchedPage>>(threads);
    let batches = Mutex::new(batches);
    let tally = thread::scope(|scope| {
        for number in 0..threads {
            let learner = thread::Builder::new().name(format!("learn-{number}"));
            learner.spawn_scoped(scope, || read_words(&batches, &sample, failed))?;
        }
        let tally = read_batches(inputs, ("learning", tell), BATCH, |batch| {
            batch.iter().for_each(&mut also);
            sender.send(batch).map_err(|_| anyhow!("all threads that read words have ended"))
        })?;
        drop(sender);
        anyhow::Ok(tally)
    })?;
    Ok((sample.into_inner().unwrap_or_else(PoisonError::into_inner), tally))
}

/// Adds the words of pages to the sample until the channel closes.
fn read_words(
    batches: &Mutex<Receiver<Vec<FetchedPage>>>,
    sample: &Mutex<TermSample>,
    failed: Option<&Mutex<UnusablePages>>,
) {
    let mut extractor = Extractor::default();
    let next = || batches.lock().unwrap_or_else(PoisonError::into_inner).recv();
    let mut own = Vec::new();
    while let Ok(batch) = next() {
        for page in batch {
            let read = extractor.guarded(|extractor| take_words(extractor, &page, sample, &mut own));
            if let (None, Some(failed)) = (read, failed) {
                let page = (&page.url, content_bytes(&page));
                failed.lock().unwrap_or_else(PoisonError::into_inner).note(
                    tally::FAILED,
                    page,
                    &tally::FAILED,
                );
            }
        }
    }
}

fn take_words(extractor: &mut Extractor, page: &FetchedPage, sample: &Mutex<TermSample>, own: &mut Vec<u64>) {
    let words = page.body.raw_content().and_then(|raw| extractor.terms(&page.url, raw));
    let Some(words) = words else { return };
    let sample = || sample.lock().unwrap_or_else(PoisonError::into_inner);
    if sample().wants(words.content) {
        own.clear();
        own.extend(words.terms);
        // Sort before taking the lock again.
        own.sort_unstable();
        own.dedup();
        sample().add(words.content, own);
    }
}
