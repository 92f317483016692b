//! `manifest.json`: what a data directory is, fixed when it is created.
//!
//! Groups are a function of the threshold and the tokeniser, winners one of the order of rules, and records
//! are placed by the number of shards, so all of them belong to the directory and not to the command line.
//! The manifest is the first file written and is complete or absent: it is written aside, fsynced, renamed,
//! and the directory is fsynced, before anything else is created. It is never replaced: of several processes
//! that create a directory at once one does, and the others open what it made. It carries a checksum.

use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use doppel_model::{Tau, stable_hash64};
use doppel_protocol::WinnerOrder;
use doppel_text::TOKENISER_VERSION;
use doppel_tier1::{RangeMap, RangeMapError};
use serde::{Deserialize, Serialize};

/// The layout of the data directory that this program reads and writes.
const FORMAT: u32 = 2;
/// The one before it: all shards in one database, in `tier1` itself. A backup of it has the same rows.
const FORMAT_WITHOUT_RANGES: u64 = 1;
/// Words of a shingle in the policy `jaccard`.
const SHINGLE_WORDS: u32 = 5;
pub(crate) const NAME: &str = "manifest.json";
/// How the names begin under which it is written.
const ASIDE: &str = "manifest.json.new";
/// What it is created with, less the umask.
const PERMISSIONS: u32 = 0o666;

/// Whether a name is that of a manifest whose writing was interrupted.
pub(crate) fn is_aside(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(ASIDE.as_bytes())
}

/// What a data directory is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Manifest {
    /// Layout version.
    format: u32,
    /// 16 hex digits, drawn at random: names the collection in feed cursors.
    collection: String,
    /// The pairwise function.
    pub(crate) policy: PolicyRecord,
    /// Tier-1 shards.
    pub(crate) shards: u16,
    /// Their ranges.
    pub(crate) ranges: u16,
    /// By which rules winners are elected; the default is not written.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) winners: WinnerOrder,
}

fn is_default(order: &WinnerOrder) -> bool {
    *order == WinnerOrder::DEFAULT
}

/// The pairwise function and all that its signatures depend on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PolicyRecord {
    name: String,
    /// The threshold.
    pub(crate) tau: Tau,
    shingle_words: u32,
    tokeniser: u16,
}

/// What the command line asks for; none leaves what the directory has.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Wanted {
    /// `--tau`.
    pub(crate) tau: Option<Tau>,
    /// `--shards`.
    pub(crate) shards: Option<u16>,
    /// `--ranges`.
    pub(crate) ranges: Option<u16>,
    /// The rules of the file of `--winners`.
    pub(crate) winners: Option<WinnerOrder>,
}

/// What a new directory has unless something else is asked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Defaults {
    /// Shards, or as many as there are ranges if that is more.
    pub(crate) shards: u16,
    /// Ranges.
    pub(crate) ranges: u16,
}

/// Why a data directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ManifestError {
    /// The operating system said no.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On which path.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// Files, and no manifest.
    #[error("{} is not empty and has no {NAME}; name an empty directory, or one that Doppel made", .0.display())]
    Foreign(PathBuf),
    /// No data directory.
    #[error("{} has no {NAME}; name a directory that Doppel made", .0.display())]
    Missing(PathBuf),
    /// Not what was written.
    #[error("{} is damaged ({reason}); restore it from a backup of the directory", path.display())]
    Damaged {
        /// The manifest.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// Another program version's.
    #[error("{} has format {found}, and this program reads format {FORMAT}; use the program that made it", path.display())]
    Format {
        /// The manifest.
        path: PathBuf,
        /// Its format.
        found: u64,
    },
    /// An earlier layout, and the way out of it.
    #[error(
        "{} has format {FORMAT_WITHOUT_RANGES}, and this program reads format {FORMAT}; back it up with the program that \
         made it and restore the backup with this one, or load the pages into a new directory",
        path.display()
    )]
    WithoutRanges {
        /// The manifest.
        path: PathBuf,
    },
    /// Numbers of shards and ranges that do not go together.
    #[error("{0}: give another --ranges or --shards")]
    Ranges(#[from] RangeMapError),
    /// Another pairwise function than this program has.
    #[error(
        "{} was made for policy {found}, and this program has {expected}; make a new directory and load the pages again",
        path.display()
    )]
    Policy {
        /// The manifest.
        path: PathBuf,
        /// Its policy.
        found: String,
        /// This program's.
        expected: String,
    },
    /// The command line contradicts it.
    #[error(
        "{} was made with --{option} {has}, not {wanted}; leave --{option} away, or make a new directory",
        path.display()
    )]
    Conflict {
        /// The data directory.
        path: PathBuf,
        /// The option's name.
        option: &'static str,
        /// What the directory has.
        has: String,
        /// What was asked for.
        wanted: String,
    },
    /// The file of `--winners` contradicts it.
    #[error(
        "{} elects its winners by {has}, not by {wanted}; leave the rules out of the --winners file, or make a new directory",
        path.display()
    )]
    Winners {
        /// The data directory.
        path: PathBuf,
        /// What the directory has.
        has: WinnerOrder,
        /// What was asked for.
        wanted: WinnerOrder,
    },
}

/// The file: the manifest and a checksum of its own compact JSON.
#[derive(Serialize, Deserialize)]
struct Sealed {
    manifest: serde_json::Value,
    checksum: String,
}

impl Manifest {
    /// Opens the directory's manifest, or creates directory and manifest with `wanted` and the
    /// defaults given.
    ///
    /// # Errors
    /// When the directory is another program's, the manifest is damaged or of another version, or
    /// `wanted` contradicts it.
    pub(crate) fn open_or_create(
        dir: &Path,
        wanted: Wanted,
        defaults: Defaults,
    ) -> Result<Self, ManifestError> {
        let path = dir.join(NAME);
        loop {
            match fs::read(&path) {
                Ok(bytes) => {
                    let manifest = Self::read(&bytes, &path)?;
                    manifest.check(dir, wanted)?;
                    return Ok(manifest);
                }
                Err(e) if e.kind() == io::ErrorKind::NotFound => {
                    if let Some(created) = Self::create(dir, wanted, defaults)? {
                        return Ok(created);
                    }
                }
                Err(source) => return Err(ManifestError::Io { action: "read", path, source }),
            }
        }
    }

    /// Opens the manifest of a directory that is there, and makes none.
    ///
    /// # Errors
    /// When there is none, or it is damaged or of another version.
    pub(crate) fn open(dir: &Path) -> Result<Self, ManifestError> {
        let path = dir.join(NAME);
        match fs::read(&path) {
            Ok(bytes) => Self::read(&bytes, &path),
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
    pub(crate) fn map(&self) -> Result<RangeMap, ManifestError> {
        Ok(RangeMap::new(self.shards, self.ranges)?)
    }

    /// The collection's number.
    pub(crate) fn collection(&self) -> u64 {
        stable_hash64(self.collection.as_bytes())
    }

    /// Creates the manifest; none where another process was faster.
    fn create(dir: &Path, wanted: Wanted, defaults: Defaults) -> Result<Option<Self>, ManifestError> {
        let failed = |action, path: &Path| {
            let path = path.to_owned();
            move |source| ManifestError::Io { action, path, source }
        };
        let path = dir.join(NAME);
        let ranges = wanted.ranges.unwrap_or(defaults.ranges);
        let map = RangeMap::new(wanted.shards.unwrap_or(defaults.shards.max(ranges)), ranges)?;
        fs::create_dir_all(dir).map_err(failed("create", dir))?;
        for entry in fs::read_dir(dir).map_err(failed("list", dir))? {
            let name = entry.map_err(failed("list", dir))?.file_name();
            if !is_aside(&name) && name != "lost+found" {
                // Whoever was faster made the manifest first, and then the rest.
                let faster = path.try_exists().map_err(failed("read", &path))?;
                return if faster { Ok(None) } else { Err(ManifestError::Foreign(dir.to_owned())) };
            }
        }
        let manifest = Self {
            format: FORMAT,
            collection: format!("{:016x}", random()),
            policy: PolicyRecord::current(wanted.tau.unwrap_or(Tau::DEFAULT)),
            shards: map.shards(),
            ranges,
            winners: wanted.winners.unwrap_or_default(),
        };
        match manifest.write(dir, &path) {
            Ok(()) => Ok(Some(manifest)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(None),
            Err(error) => Err(failed("write", &path)(error)),
        }
    }

    fn write(&self, dir: &Path, path: &Path) -> io::Result<()> {
        let mut aside = tempfile::Builder::new();
        aside.prefix(ASIDE).permissions(Permissions::from_mode(PERMISSIONS));
        let mut file = aside.tempfile_in(dir)?;
        file.write_all(self.seal()?.as_bytes())?;
        file.as_file().sync_all()?;
        file.persist_noclobber(path)?;
        File::open(dir)?.sync_all()?;
        // The directory's own name lasts, too.
        dir.canonicalize()?.parent().map_or(Ok(()), |parent| File::open(parent)?.sync_all())
    }

    /// The file.
    ///
    /// # Errors
    /// None that is known.
    pub(crate) fn seal(&self) -> io::Result<String> {
        let manifest = serde_json::to_value(self)?;
        let checksum = checksum(&manifest);
        Ok(serde_json::to_string_pretty(&Sealed { manifest, checksum })? + "\n")
    }

    /// Reads what a backup has of it. The rows of a directory without ranges are those of one range.
    ///
    /// # Errors
    /// When it is damaged or of another version.
    pub(crate) fn of_backup(bytes: &[u8], path: &Path) -> Result<Self, ManifestError> {
        let mut manifest = Self::unseal(bytes, path)?;
        if let Some(fields) = manifest.as_object_mut()
            && fields.get("format").and_then(serde_json::Value::as_u64) == Some(FORMAT_WITHOUT_RANGES)
        {
            fields.insert("format".to_owned(), FORMAT.into());
            fields.insert("ranges".to_owned(), 1.into());
        }
        Self::parse(manifest, path)
    }

    /// Reads a file; `path` is where it is from.
    ///
    /// # Errors
    /// When it is damaged or of another version.
    pub(crate) fn read(bytes: &[u8], path: &Path) -> Result<Self, ManifestError> {
        Self::parse(Self::unseal(bytes, path)?, path)
    }

    fn unseal(bytes: &[u8], path: &Path) -> Result<serde_json::Value, ManifestError> {
        let damaged = |reason: String| ManifestError::Damaged { path: path.to_owned(), reason };
        let sealed: Sealed = serde_json::from_slice(bytes).map_err(|e| damaged(e.to_string()))?;
        if sealed.checksum != checksum(&sealed.manifest) {
            return Err(damaged("its checksum does not fit".to_owned()));
        }
        Ok(sealed.manifest)
    }

    fn parse(manifest: serde_json::Value, path: &Path) -> Result<Self, ManifestError> {
        let damaged = |reason: String| ManifestError::Damaged { path: path.to_owned(), reason };
        // Another format may have other fields, so its number is read before the rest.
        match manifest.get("format").and_then(serde_json::Value::as_u64) {
            Some(found) if found == u64::from(FORMAT) => {}
            Some(FORMAT_WITHOUT_RANGES) => {
                return Err(ManifestError::WithoutRanges { path: path.to_owned() });
            }
            Some(found) => return Err(ManifestError::Format { path: path.to_owned(), found }),
            None => return Err(damaged("it names no format".to_owned())),
        }
        let manifest: Self = serde_json::from_value(manifest).map_err(|e| damaged(e.to_string()))?;
        manifest.map()?;
        let expected = PolicyRecord::current(manifest.policy.tau);
        if manifest.policy != expected {
            return Err(ManifestError::Policy {
                path: path.to_owned(),
                found: manifest.policy.to_string(),
                expected: expected.to_string(),
            });
        }
        Ok(manifest)
    }

    fn check(&self, dir: &Path, wanted: Wanted) -> Result<(), ManifestError> {
        let conflict = |option, has: String, wanted: String| {
            Err(ManifestError::Conflict { path: dir.to_owned(), option, has, wanted })
        };
        match wanted {
            Wanted { tau: Some(tau), .. } if tau != self.policy.tau => {
                conflict("tau", self.policy.tau.to_string(), tau.to_string())
            }
            Wanted { shards: Some(shards), .. } if shards != self.shards => {
                conflict("shards", self.shards.to_string(), shards.to_string())
            }
            Wanted { ranges: Some(ranges), .. } if ranges != self.ranges => {
                conflict("ranges", self.ranges.to_string(), ranges.to_string())
            }
            Wanted { winners: Some(winners), .. } if winners != self.winners => {
                Err(ManifestError::Winners { path: dir.to_owned(), has: self.winners, wanted: winners })
            }
            _ => Ok(()),
        }
    }
}

impl PolicyRecord {
    fn current(tau: Tau) -> Self {
        Self { name: "jaccard".to_owned(), tau, shingle_words: SHINGLE_WORDS, tokeniser: TOKENISER_VERSION }
    }
}

impl std::fmt::Display for PolicyRecord {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { name, tau, shingle_words, tokeniser } = self;
        write!(f, "{name} (tau {tau}, {shingle_words}-word shingles, tokeniser version {tokeniser})")
    }
}

fn checksum(manifest: &serde_json::Value) -> String {
    format!("{:016x}", stable_hash64(manifest.to_string().as_bytes()))
}

/// 64 random bits: the keys of a fresh standard hasher.
fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

#[cfg(test)]
mod tests {
    use doppel_protocol::Rule;

    use super::*;

    fn wanted(tau: &str, shards: u16) -> Wanted {
        Wanted { tau: Some(tau.parse().unwrap()), shards: Some(shards), ..Wanted::default() }
    }

    const DEFAULTS: Defaults = Defaults { shards: 4, ranges: 1 };

    #[test]
    fn created_once_then_kept() {
        let home = tempfile::tempdir().unwrap();
        let dir = home.path().join("a/b");
        let made = Manifest::open_or_create(&dir, wanted("0.9", 3), DEFAULTS).unwrap();
        assert_eq!(Manifest::open_or_create(&dir, Wanted::default(), DEFAULTS).unwrap(), made);
        assert_eq!(Manifest::open_or_create(&dir, wanted("0.90", 3), DEFAULTS).unwrap(), made);
        assert_eq!((made.policy.tau.to_string().as_str(), made.shards), ("0.9", 3));
        let tau = Manifest::open_or_create(&dir, wanted("0.8", 3), DEFAULTS).unwrap_err();
        assert!(tau.to_string().contains("made with --tau 0.9, not 0.8"), "{tau}");
        let shards = Manifest::open_or_create(&dir, wanted("0.9", 4), DEFAULTS).unwrap_err();
        assert!(shards.to_string().contains("made with --shards 3, not 4"), "{shards}");
    }

    #[test]
    fn ranges_are_kept_and_bring_their_shards() {
        let home = tempfile::tempdir().unwrap();
        let open = |name: &str, shards, ranges| {
            let wanted = Wanted { shards, ranges, ..Wanted::default() };
            Manifest::open_or_create(&home.path().join(name), wanted, DEFAULTS)
        };
        let counts = |manifest: Manifest| (manifest.shards, manifest.ranges);
        assert_eq!(counts(open("usual", None, None).unwrap()), (4, 1));
        assert_eq!(counts(open("more", None, Some(6)).unwrap()), (6, 6));
        assert_eq!(counts(open("both", Some(9), Some(2)).unwrap()), (9, 2));
        assert_eq!(counts(open("both", None, None).unwrap()), (9, 2));
        let conflict = open("both", None, Some(3)).unwrap_err().to_string();
        assert!(conflict.contains("made with --ranges 2, not 3"), "{conflict}");
        let many = open("many", Some(2), Some(3)).unwrap_err().to_string();
        assert!(many.starts_with("3 ranges of 2 shards"), "{many}");
        assert!(!home.path().join("many").exists());
    }

    #[test]
    fn a_backup_of_the_layout_without_ranges_is_one_range() {
        let dir = tempfile::tempdir().unwrap();
        let made = Manifest::open_or_create(dir.path(), Wanted::default(), DEFAULTS).unwrap();
        let mut manifest = serde_json::to_value(&made).unwrap();
        let fields = manifest.as_object_mut().unwrap();
        fields.insert("format".to_owned(), 1.into());
        fields.remove("ranges");
        let bytes = serde_json::to_vec(&Sealed { checksum: checksum(&manifest), manifest }).unwrap();
        let path = Path::new("a");
        assert_eq!(Manifest::of_backup(&bytes, path).unwrap(), made);
        assert!(matches!(Manifest::read(&bytes, path), Err(ManifestError::WithoutRanges { .. })));
    }

    #[test]
    fn the_order_of_winners_is_kept_and_the_usual_one_not_written() {
        let home = tempfile::tempdir().unwrap();
        let [usual, other] = ["usual", "other"].map(|name| home.path().join(name));
        let order = WinnerOrder::new(&[Rule::Https, Rule::FirstSeen]).unwrap();
        let by = |winners| Wanted { winners: Some(winners), ..Wanted::default() };
        let open = |dir, wanted| Manifest::open_or_create(dir, wanted, DEFAULTS);
        assert_eq!(open(&usual, by(WinnerOrder::DEFAULT)).unwrap().winners, WinnerOrder::DEFAULT);
        assert!(!fs::read_to_string(usual.join(NAME)).unwrap().contains("winners"));
        assert_eq!(open(&other, by(order)).unwrap().winners, order);
        assert_eq!(open(&other, by(order)).unwrap(), open(&other, Wanted::default()).unwrap());
        let conflict = open(&other, by(WinnerOrder::DEFAULT)).unwrap_err().to_string();
        assert!(conflict.contains("by https, first_seen, url, not by popularity, "), "{conflict}");
        assert!(matches!(open(&usual, by(order)), Err(ManifestError::Winners { .. })));
    }

    /// Whoever opens a directory that others create at the same moment gets the one manifest there is, or
    /// is told that it is not what was wanted.
    #[test]
    fn one_of_many_creations_at_once_counts() {
        const AT_ONCE: u16 = 8;
        for _ in 0..50 {
            let home = tempfile::tempdir().unwrap();
            let dir = home.path().join("data");
            let barrier = std::sync::Barrier::new(usize::from(AT_ONCE));
            let open = |shards| {
                barrier.wait();
                let opened = Manifest::open_or_create(&dir, wanted("0.8", shards), DEFAULTS);
                // Its next steps leave other files.
                opened.inspect(|_| fs::create_dir_all(dir.join("tier1")).unwrap())
            };
            let opened: Vec<_> = std::thread::scope(|scope| {
                let threads: Vec<_> = (1..=AT_ONCE).map(|shards| scope.spawn(move || open(shards))).collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).collect()
            });
            let kept = Manifest::open_or_create(&dir, Wanted::default(), DEFAULTS).unwrap();
            let right = |opened: &Result<Manifest, ManifestError>| match opened {
                Ok(manifest) => *manifest == kept,
                Err(error) => matches!(error, ManifestError::Conflict { option: "shards", .. }),
            };
            assert!(opened.iter().all(right), "{kept:?} is kept: {opened:?}");
            assert_eq!(opened.iter().filter(|opened| opened.is_ok()).count(), 1);
            assert_eq!(fs::read_dir(&dir).unwrap().count(), 2);
        }
    }

    #[test]
    fn an_interrupted_creation_is_done_again() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join(ASIDE), b"{\"mani").unwrap();
        assert!(Manifest::open_or_create(dir.path(), Wanted::default(), DEFAULTS).is_ok());
    }

    #[test]
    fn a_directory_of_something_else_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("photo.jpg"), b"").unwrap();
        let error = Manifest::open_or_create(dir.path(), Wanted::default(), DEFAULTS).unwrap_err();
        assert!(matches!(error, ManifestError::Foreign(_)), "{error}");
    }

    #[test]
    fn every_damaged_byte_is_noticed() {
        let dir = tempfile::tempdir().unwrap();
        let made = Manifest::open_or_create(dir.path(), Wanted::default(), DEFAULTS).unwrap();
        let path = dir.path().join(NAME);
        let sound = fs::read(&path).unwrap();
        for at in 0..sound.len() {
            let mut bytes = sound.clone();
            bytes[at] ^= 1;
            // White space and the fields' order carry nothing, so some changes may be harmless.
            if let Ok(read) = Manifest::read(&bytes, &path) {
                assert_eq!(read, made, "byte {at}");
            }
            assert!(Manifest::read(&sound[..at], &path).is_err() || at + 1 == sound.len());
        }
    }

    #[test]
    fn other_versions_are_named() {
        let path = Path::new("d/manifest.json");
        let read = |manifest: serde_json::Value| {
            let sealed = Sealed { checksum: checksum(&manifest), manifest };
            Manifest::read(&serde_json::to_vec(&sealed).unwrap(), path).unwrap_err()
        };
        let newer = read(serde_json::json!({"format": 3, "more": true}));
        assert!(matches!(newer, ManifestError::Format { found: 3, .. }), "{newer}");
        let older = read(serde_json::json!({"format": 1, "shards": 4}));
        assert!(
            older.to_string().contains("format 1, and this program reads format 2; back it up"),
            "{older}"
        );
        let mut other = PolicyRecord::current(Tau::DEFAULT);
        other.tokeniser += 1;
        let manifest = Manifest {
            format: FORMAT,
            collection: String::new(),
            policy: other,
            shards: 1,
            ranges: 1,
            winners: WinnerOrder::DEFAULT,
        };
        let policy = read(serde_json::to_value(&manifest).unwrap());
        assert!(matches!(policy, ManifestError::Policy { .. }), "{policy}");
    }
}
