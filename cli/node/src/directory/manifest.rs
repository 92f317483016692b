//! `manifest.json`: the properties of a data directory that are fixed when it is created.
//!
//! Groups depend on the policy and the tokeniser, winners on the order of the rules, and the location of
//! records on the number of shards. All of these therefore belong to the directory, not to the command line.
//!
//! The manifest is complete or absent. It is written under a temporary name, fsynced and renamed, and then
//! the directory is fsynced. This happens before anything else is created, except for the tables that the
//! manifest names. The tables are on disk before the manifest, so that a collection always has them.
//!
//! The manifest is never replaced and carries a checksum. If several processes create a directory at once,
//! they take turns: one creates the manifest, and the others open it.

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

/// Version of the layout of the data directory that this program reads and writes.
const FORMAT: u32 = 8;
/// Name of the manifest in a data directory.
pub const NAME: &str = "manifest.json";
/// Name of the folder that contains all files until one command has written the whole directory.
pub(crate) const UNFINISHED: &str = "unfinished";
/// Prefix of the temporary names under which the manifest is written.
const ASIDE: &str = "manifest.json.new";

/// Whether a command that writes the whole directory has not finished.
pub(crate) fn is_unfinished(dir: &Path) -> bool {
    dir.join(UNFINISHED).is_dir() && !dir.join(NAME).exists()
}

/// Refuses a path that exists and is not a directory.
///
/// # Errors
/// [`ManifestError::NoDirectory`] in that case.
pub fn require_directory(dir: &Path) -> Result<(), ManifestError> {
    let is_other = fs::metadata(dir).is_ok_and(|there| !there.is_dir());
    if is_other { Err(ManifestError::NoDirectory(dir.to_owned())) } else { Ok(()) }
}

/// Whether a name is a temporary name of a manifest.
pub(crate) fn is_aside(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(ASIDE.as_bytes())
}

/// The fixed properties of a data directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// Layout version.
    format: u32,
    /// Id of the collection in feed cursors: 16 random hex digits.
    collection: String,
    /// Policy by which contents are compared, with its parameters.
    pub policy: Policy,
    /// Version of the tokeniser with which signatures are made.
    tokeniser: u16,
    /// Number of tier-1 shards.
    pub shards: u16,
    /// Number of ranges into which the shards are divided.
    pub ranges: u16,
    /// Rules by which winners are elected. The default is not written to the file.
    #[serde(default, skip_serializing_if = "is_default")]
    pub winners: WinnerOrder,
    /// Hash of the policy's tables, if the policy reads any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tables: Option<TablesHash>,
}

fn is_default(order: &WinnerOrder) -> bool {
    *order == WinnerOrder::DEFAULT
}

/// Properties that the command line asks for. `None` accepts what the directory has.
#[derive(Debug, Clone, Copy, Default)]
pub struct ManifestRequest {
    /// Policy that `--policy` or `--tau` names.
    pub policy: Option<Policy>,
    /// Whether `--tau` alone names the policy.
    pub by_tau: bool,
    /// Hash of the tables of `--policy-tables`.
    pub tables: Option<TablesHash>,
    /// Number of shards of `--shards`.
    pub shards: Option<u16>,
    /// Number of ranges of `--ranges`.
    pub ranges: Option<u16>,
    /// Rules in the file of `--winners`.
    pub winners: Option<WinnerOrder>,
}

/// Default properties of a new directory.
#[derive(Debug, Clone, Copy)]
pub struct Defaults {
    /// Number of shards, raised to the number of ranges if there are more ranges.
    pub shards: u16,
    /// Number of ranges of a new directory.
    pub ranges: u16,
}

/// Contents of the file: the manifest and a checksum of its compact JSON.
#[derive(Serialize, Deserialize)]
struct Sealed {
    manifest: serde_json::Value,
    checksum: String,
}

impl Manifest {
    /// The manifest of a new collection. `defaults` apply where `wanted` says nothing.
    ///
    /// # Errors
    /// If the numbers of shards and ranges, or the policy and the tables, contradict each other.
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

    /// Opens the manifest of a directory, or creates directory and manifest. `defaults` apply where `wanted`
    /// says nothing. The tables are not written to the directory.
    ///
    /// # Errors
    /// If the directory belongs to another program, the manifest is damaged or has another version, or
    /// `wanted` contradicts the manifest.
    pub(crate) fn open_or_create(
        dir: &Path,
        wanted: ManifestRequest,
        defaults: Defaults,
    ) -> Result<Self, ManifestError> {
        Self::open_or_create_with(dir, wanted, defaults, None)
    }

    /// Like [`open_or_create`](Self::open_or_create), but also writes the tables to a new directory.
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

    /// Checks that [`open_or_create`](Self::open_or_create) would succeed, without writing. The tables are
    /// not checked for a new collection, because they may be learnt later.
    ///
    /// # Errors
    /// See [`open_or_create`](Self::open_or_create).
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

    /// The division into shards and ranges of a new collection.
    ///
    /// # Errors
    /// If the numbers of shards and ranges contradict each other.
    pub fn map_of(wanted: ManifestRequest, defaults: Defaults) -> Result<RangeMap, ManifestError> {
        let ranges = wanted.ranges.unwrap_or(defaults.ranges);
        Ok(RangeMap::new(wanted.shards.unwrap_or(defaults.shards.max(ranges)), ranges)?)
    }

    /// Opens the manifest of an existing directory; never creates one.
    ///
    /// # Errors
    /// If there is no manifest, or it is damaged or has another version.
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

    /// Writes the manifest to a directory that has all other files. This makes it a data directory.
    /// Fails if the directory has a manifest already, or cannot be written.
    pub(crate) fn install(&self, dir: &Path) -> Result<(), ManifestError> {
        let path = dir.join(NAME);
        self.write(dir, &path).map_err(|source| ManifestError::Io { action: "write", path, source })
    }

    /// The division of the shards into ranges.
    ///
    /// # Errors
    /// If the numbers of shards and ranges contradict each other.
    pub fn map(&self) -> Result<RangeMap, ManifestError> {
        Ok(RangeMap::new(self.shards, self.ranges)?)
    }

    /// Number that identifies the collection in feed cursors.
    pub fn collection(&self) -> u64 {
        stable_hash64(self.collection.as_bytes())
    }

    /// Creates the manifest. Returns `None` if another process was faster.
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
        // Without the lock, another process could replace the tables that this one writes.
        let _alone = alone(dir).map_err(failed("open", dir))?;
        if !is_free(dir, manifest.tables.is_some())? {
            return Ok(None);
        }
        if let Some(tables) = tables {
            policy_tables::write_unless_present(&dir.join(policy_tables::NAME), tables)?;
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

    /// Text of the file, with the checksum.
    ///
    /// # Errors
    /// If the manifest cannot be written as JSON, which is not known to happen.
    pub fn seal(&self) -> io::Result<String> {
        let manifest = serde_json::to_value(self)?;
        let checksum = checksum(&manifest);
        Ok(serde_json::to_string_pretty(&Sealed { manifest, checksum })? + "\n")
    }

    /// Reads the bytes of a file. `path` is for the messages.
    ///
    /// # Errors
    /// If the file is damaged or has another version.
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
                    Some(has) if policy_tables::has_named_tables(dir, has) => {
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

/// Whether a manifest can be created in a directory.
///
/// The directory may contain only files of an interrupted creation and, with `has_tables`, the tables, which
/// are written before the manifest. `false` says that another process has created the manifest meanwhile.
///
/// # Errors
/// If the directory belongs to another program, or a command that writes it has not finished.
fn is_free(dir: &Path, has_tables: bool) -> Result<bool, ManifestError> {
    let failed = |action, path: &Path| {
        let path = path.to_owned();
        move |source| ManifestError::Io { action, path, source }
    };
    for entry in fs::read_dir(dir).map_err(failed("list", dir))? {
        let name = entry.map_err(failed("list", dir))?.file_name();
        let is_of_tables = has_tables && policy_tables::is_name(&name);
        if !is_aside(&name) && !is_of_tables && name != "lost+found" {
            // A faster process has written the manifest before all other files.
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

/// Locks a directory against other processes that create a manifest in it, until the result is dropped.
fn alone(dir: &Path) -> io::Result<File> {
    let opened = File::open(dir)?;
    // Without the lock, only two first commands at once with different tables can disturb each other.
    let _ = opened.lock();
    Ok(opened)
}

fn checksum(manifest: &serde_json::Value) -> String {
    format!("{:016x}", stable_hash64(manifest.to_string().as_bytes()))
}

#[cfg(test)]
mod tests;
