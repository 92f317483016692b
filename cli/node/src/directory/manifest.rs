//! `manifest.json`: what a data directory is, fixed when it is created.
//!
//! Groups are a function of the threshold and the tokeniser, winners one of the order of rules, and records
//! are placed by the number of shards, so all of them belong to the directory and not to the command line.
//! The manifest is complete or absent: it is written aside, fsynced, renamed, and the directory is fsynced, before anything else is
//! created but for the tables that it names. These are on disk before it, so that a collection has them from its first
//! moment on. It is never replaced: processes that create a directory at once take turns, one does, and the others open what
//! it made. It carries a checksum.

mod error;
mod of_cluster;

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::path::Path;

use doppel_model::pairwise::Policy;
use doppel_model::tables::{Tables, TablesHash};
use doppel_model::{random_number, stable_hash64};
use doppel_protocol::{RangeMap, WinnerOrder};
use doppel_snapshot::create_directories;
use doppel_terminal::atomic_file::{self, ExistingFile};
use doppel_text::TOKENISER_VERSION;
use serde::{Deserialize, Serialize};

use crate::directory::policy_tables::{self, PolicyTablesError};
pub use error::ManifestError;

/// The layout of the data directory that this program reads and writes.
const FORMAT: u32 = 8;
/// Name of the manifest in a data directory.
pub const NAME: &str = "manifest.json";
/// Where everything is while a directory is made as a whole.
pub(crate) const UNFINISHED: &str = "unfinished";
/// How the names begin under which it is written.
const ASIDE: &str = "manifest.json.new";

/// Whether a command that makes the directory as a whole has not come to its end.
pub(crate) fn is_unfinished(dir: &Path) -> bool {
    dir.join(UNFINISHED).is_dir() && !dir.join(NAME).exists()
}

/// Refuses a path at which there is something that is no directory.
///
/// # Errors
/// When there is such a thing.
pub fn require_directory(dir: &Path) -> Result<(), ManifestError> {
    let is_other = fs::metadata(dir).is_ok_and(|there| !there.is_dir());
    if is_other { Err(ManifestError::NoDirectory(dir.to_owned())) } else { Ok(()) }
}

/// Whether a name is that of a manifest whose writing was interrupted.
pub(crate) fn is_aside(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(ASIDE.as_bytes())
}

/// What a data directory is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// Layout version.
    format: u32,
    /// 16 hex digits, drawn at random: names the collection in feed cursors.
    collection: String,
    /// The pairwise function, with its parameters.
    pub policy: Policy,
    /// The version of the tokeniser that its signatures depend on.
    tokeniser: u16,
    /// Tier-1 shards.
    pub shards: u16,
    /// Their ranges.
    pub ranges: u16,
    /// By which rules winners are elected; the default is not written.
    #[serde(default, skip_serializing_if = "is_default")]
    pub winners: WinnerOrder,
    /// The tables of its policy, if that reads any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tables: Option<TablesHash>,
}

fn is_default(order: &WinnerOrder) -> bool {
    *order == WinnerOrder::DEFAULT
}

/// What the command line asks for; none leaves what the directory has.
#[derive(Debug, Clone, Copy, Default)]
pub struct ManifestRequest {
    /// `--policy` and `--tau`.
    pub policy: Option<Policy>,
    /// Whether the policy is asked for by `--tau` alone.
    pub by_tau: bool,
    /// The tables of `--policy-tables`.
    pub tables: Option<TablesHash>,
    /// `--shards`.
    pub shards: Option<u16>,
    /// `--ranges`.
    pub ranges: Option<u16>,
    /// The rules of the file of `--winners`.
    pub winners: Option<WinnerOrder>,
}

/// What a new directory has unless something else is asked for.
#[derive(Debug, Clone, Copy)]
pub struct Defaults {
    /// Shards, or as many as there are ranges if that is more.
    pub shards: u16,
    /// Ranges.
    pub ranges: u16,
}

/// The file: the manifest and a checksum of its own compact JSON.
#[derive(Serialize, Deserialize)]
struct Sealed {
    manifest: serde_json::Value,
    checksum: String,
}

impl Manifest {
    /// That of a collection to be made with `wanted` and the defaults given.
    ///
    /// # Errors
    /// When the numbers do not go together.
    pub fn new(wanted: ManifestRequest, defaults: Defaults) -> Result<Self, ManifestError> {
        let map = Self::map_of(wanted, defaults)?;
        let policy = wanted.policy.unwrap_or_default();
        policy_tables::check(policy, wanted.tables.is_some())?;
        Ok(Self {
            format: FORMAT,
            collection: format!("{:016x}", random_number()),
            policy,
            tokeniser: TOKENISER_VERSION,
            shards: map.shards(),
            ranges: map.count() as u16,
            winners: wanted.winners.unwrap_or_default(),
            tables: wanted.tables,
        })
    }

    /// Opens the directory's manifest, or creates directory and manifest with `wanted` and the
    /// defaults given. The tables that are wanted are elsewhere.
    ///
    /// # Errors
    /// When the directory is another program's, the manifest is damaged or of another version, or
    /// `wanted` contradicts it.
    pub(crate) fn open_or_create(
        dir: &Path,
        wanted: ManifestRequest,
        defaults: Defaults,
    ) -> Result<Self, ManifestError> {
        Self::open_or_create_with(dir, wanted, defaults, None)
    }

    /// The same; a directory that is created has the tables that are wanted, too.
    ///
    /// # Errors
    /// The same.
    pub(crate) fn open_or_create_with(
        dir: &Path,
        wanted: ManifestRequest,
        defaults: Defaults,
        tables: Option<&Tables>,
    ) -> Result<Self, ManifestError> {
        require_directory(dir)?;
        let path = dir.join(NAME);
        loop {
            match fs::read(&path) {
                Ok(bytes) => {
                    let manifest = Self::read(&bytes, &path)?;
                    manifest.check(dir, wanted)?;
                    return Ok(manifest);
                }
                Err(e) if e.kind() == io::ErrorKind::NotFound => {
                    if let Some(created) = Self::create(dir, wanted, defaults, tables)? {
                        return Ok(created);
                    }
                }
                Err(source) => return Err(ManifestError::Io { action: "read", path, source }),
            }
        }
    }

    /// Whether a collection can be made with `wanted` and the defaults given, or the directory has one like that. Nothing is written.
    /// Tables are not looked at: they may be learnt later.
    ///
    /// # Errors
    /// Those of [`open_or_create`](Self::open_or_create).
    pub fn try_for(dir: &Path, wanted: ManifestRequest, defaults: Defaults) -> Result<(), ManifestError> {
        require_directory(dir)?;
        let path = dir.join(NAME);
        match fs::read(&path) {
            Ok(bytes) => Self::read(&bytes, &path)?.check(dir, wanted),
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                Self::map_of(wanted, defaults)?;
                if dir.exists() {
                    is_free(dir, wanted.policy.unwrap_or_default().reads_tables())?;
                }
                Ok(())
            }
            Err(source) => Err(ManifestError::Io { action: "read", path, source }),
        }
    }

    /// The shards and ranges of a new collection.
    ///
    /// # Errors
    /// When the numbers do not go together.
    pub fn map_of(wanted: ManifestRequest, defaults: Defaults) -> Result<RangeMap, ManifestError> {
        let ranges = wanted.ranges.unwrap_or(defaults.ranges);
        Ok(RangeMap::new(wanted.shards.unwrap_or(defaults.shards.max(ranges)), ranges)?)
    }

    /// Opens the manifest of a directory that is there, and makes none.
    ///
    /// # Errors
    /// When there is none, or it is damaged or of another version.
    pub fn open(dir: &Path) -> Result<Self, ManifestError> {
        require_directory(dir)?;
        let path = dir.join(NAME);
        match fs::read(&path) {
            Ok(bytes) => Self::read(&bytes, &path),
            Err(e) if e.kind() == io::ErrorKind::NotFound && is_unfinished(dir) => {
                Err(ManifestError::Unfinished(dir.to_owned()))
            }
            Err(e) if e.kind() == io::ErrorKind::NotFound => Err(ManifestError::Missing(dir.to_owned())),
            Err(source) => Err(ManifestError::Io { action: "read", path, source }),
        }
    }

    /// Makes the directory a data directory, when all else is in it.
    ///
    /// # Errors
    /// When it has a manifest already, or cannot be written.
    pub(crate) fn install(&self, dir: &Path) -> Result<(), ManifestError> {
        let path = dir.join(NAME);
        self.write(dir, &path).map_err(|source| ManifestError::Io { action: "write", path, source })
    }

    /// Which range has which shards.
    ///
    /// # Errors
    /// When the numbers do not go together.
    pub fn map(&self) -> Result<RangeMap, ManifestError> {
        Ok(RangeMap::new(self.shards, self.ranges)?)
    }

    /// The collection's number.
    pub fn collection(&self) -> u64 {
        stable_hash64(self.collection.as_bytes())
    }

    /// Creates the manifest; none where another process was faster.
    fn create(
        dir: &Path,
        wanted: ManifestRequest,
        defaults: Defaults,
        tables: Option<&Tables>,
    ) -> Result<Option<Self>, ManifestError> {
        let failed = |action, path: &Path| {
            let path = path.to_owned();
            move |source| ManifestError::Io { action, path, source }
        };
        let path = dir.join(NAME);
        let manifest = Self::new(wanted, defaults)?;
        create_directories(dir).map_err(failed("create", dir))?;
        // Another process could replace the tables of this one.
        let _alone = alone(dir).map_err(failed("open", dir))?;
        if !is_free(dir, manifest.tables.is_some())? {
            return Ok(None);
        }
        if let Some(tables) = tables {
            policy_tables::keep(&dir.join(policy_tables::NAME), tables)?;
        }
        match manifest.write(dir, &path) {
            Ok(()) => Ok(Some(manifest)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(None),
            Err(error) => Err(failed("write", &path)(error)),
        }
    }

    fn write(&self, dir: &Path, path: &Path) -> io::Result<()> {
        atomic_file::write(path, ASIDE, self.seal()?.as_bytes(), ExistingFile::Keep)?;
        // The name of the directory must be durable, too.
        dir.canonicalize()?.parent().map_or(Ok(()), |parent| File::open(parent)?.sync_all())
    }

    /// The file.
    ///
    /// # Errors
    /// None that is known.
    pub fn seal(&self) -> io::Result<String> {
        let manifest = serde_json::to_value(self)?;
        let checksum = checksum(&manifest);
        Ok(serde_json::to_string_pretty(&Sealed { manifest, checksum })? + "\n")
    }

    /// Reads a file; `path` is where it is from.
    ///
    /// # Errors
    /// When it is damaged or of another version.
    pub fn read(bytes: &[u8], path: &Path) -> Result<Self, ManifestError> {
        let damaged = |reason: String| ManifestError::Damaged { path: path.to_owned(), reason };
        let Sealed { manifest, checksum: sealed } =
            serde_json::from_slice(bytes).map_err(|e| damaged(e.to_string()))?;
        if sealed != checksum(&manifest) {
            return Err(damaged("its checksum does not fit".to_owned()));
        }
        // Another format may have other fields, so its number is read before the rest.
        match manifest.get("format").and_then(serde_json::Value::as_u64) {
            Some(found) if found == u64::from(FORMAT) => {}
            Some(found) => return Err(ManifestError::Format { path: path.to_owned(), found }),
            None => return Err(damaged("it names no format".to_owned())),
        }
        let manifest: Self = serde_json::from_value(manifest).map_err(|e| damaged(e.to_string()))?;
        manifest.map()?;
        if manifest.policy.reads_tables() != manifest.tables.is_some() {
            return Err(damaged(format!("the policy {} and its tables do not go together", manifest.policy)));
        }
        if manifest.tokeniser != TOKENISER_VERSION {
            let (path, found) = (path.to_owned(), manifest.tokeniser);
            return Err(ManifestError::Tokeniser { path, found, expected: TOKENISER_VERSION });
        }
        Ok(manifest)
    }

    fn check(&self, dir: &Path, wanted: ManifestRequest) -> Result<(), ManifestError> {
        let by_tau = wanted.by_tau;
        let conflict = |option, has: String, wanted: String| {
            let leave = if option == "policy" && by_tau { "tau" } else { option };
            Err(ManifestError::Conflict { path: dir.to_owned(), option, has, wanted, leave })
        };
        match wanted {
            ManifestRequest { policy: Some(policy), .. } if policy != self.policy => {
                conflict("policy", self.policy.to_string(), policy.to_string())
            }
            ManifestRequest { tables: Some(wanted), .. } if self.tables != Some(wanted) => {
                Err(match self.tables {
                    None => PolicyTablesError::Unread(self.policy.name()).into(),
                    Some(has) if policy_tables::are_there(dir, has) => {
                        ManifestError::Tables { path: dir.to_owned(), has, wanted }
                    }
                    Some(has) => ManifestError::OtherTables { path: dir.to_owned(), has, wanted },
                })
            }
            ManifestRequest { shards: Some(shards), .. } if shards != self.shards => {
                conflict("shards", self.shards.to_string(), shards.to_string())
            }
            ManifestRequest { ranges: Some(ranges), .. } if ranges != self.ranges => {
                conflict("ranges", self.ranges.to_string(), ranges.to_string())
            }
            ManifestRequest { winners: Some(winners), .. } if winners != self.winners => {
                Err(ManifestError::Winners { path: dir.to_owned(), has: self.winners, wanted: winners })
            }
            _ => Ok(()),
        }
    }
}

/// Whether a manifest can be created in a directory: there is nothing in it but what is left of one that was not, and with
/// `has_tables` the tables, which are there before the manifest that names them. Otherwise another process has created it.
///
/// # Errors
/// When the directory is another program's.
fn is_free(dir: &Path, has_tables: bool) -> Result<bool, ManifestError> {
    let failed = |action, path: &Path| {
        let path = path.to_owned();
        move |source| ManifestError::Io { action, path, source }
    };
    for entry in fs::read_dir(dir).map_err(failed("list", dir))? {
        let name = entry.map_err(failed("list", dir))?.file_name();
        let is_of_tables = has_tables && policy_tables::is_name(&name);
        if !is_aside(&name) && !is_of_tables && name != "lost+found" {
            // A process that was faster made the manifest before all else.
            let path = dir.join(NAME);
            return match path.try_exists().map_err(failed("read", &path))? {
                true => Ok(false),
                false if is_unfinished(dir) => Err(ManifestError::Unfinished(dir.to_owned())),
                false => Err(ManifestError::Foreign(dir.to_owned())),
            };
        }
    }
    Ok(true)
}

/// Waits until no other process creates a manifest in a directory, and keeps others waiting as long as the result lives.
fn alone(dir: &Path) -> io::Result<File> {
    let opened = File::open(dir)?;
    // Some file systems have no locks of directories. Without one only two first commands at once, with tables that differ, get into
    // each other's way.
    let _ = opened.lock();
    Ok(opened)
}

fn checksum(manifest: &serde_json::Value) -> String {
    format!("{:016x}", stable_hash64(manifest.to_string().as_bytes()))
}

#[cfg(test)]
mod tests;
