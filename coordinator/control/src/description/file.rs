//! The file of a cluster. Every machine has a copy of it beside the secret.
//!
//! If the cluster has a log, the file says only how to reach the log. META stores everything else, so that an
//! old copy of the file cannot mislead a process. Without a log, the file contains the whole description.
//!
//! The file is TOML of at most [`BYTES_MAX`] bytes. Errors name the line of an unknown, repeated or invalid
//! field.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use doppel_model::pairwise::Policy;
use doppel_model::tables::TablesHash;
use doppel_protocol::WinnerOrder;
use doppel_snapshot::create_directories;
use doppel_terminal::destination::directory_of;
use doppel_terminal::toml_file::{self, TomlFileError};
use doppel_wire::{NodeName, Secret, SecretError};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::description::{Description, Tier1Node, Tier2Node, is_address, is_id};
use crate::log::check_servers;

/// Largest accepted file, in bytes: enough for hundreds of nodes.
const BYTES_MAX: u64 = 256 << 10;

/// The file of a cluster as it was read, with the secret beside it.
#[derive(Debug, Clone)]
pub struct ClusterFile {
    /// Path of the file.
    pub path: PathBuf,
    /// Unique id of the cluster.
    pub id: Arc<str>,
    pub(crate) secret: Secret,
    /// Contents of the file, without the id.
    pub contents: ClusterFileContents,
}

/// The contents of the file of a cluster, which depend on whether the cluster has a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClusterFileContents {
    /// The whole description, because the cluster has no log.
    All(Description),
    /// The way to the log, which stores the description in META.
    LogLocation(LogLocation),
}

/// The way to the log of a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LogLocation {
    /// URLs of the servers, such as `nats://10.0.0.1:4222`.
    pub servers: Vec<String>,
    /// Addresses of nodes for processes that read this cluster file, such as the near end of a tunnel. They
    /// replace the addresses in the description.
    pub reach: BTreeMap<NodeName, String>,
}

/// Why the file of a cluster cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The file cannot be read, or is not valid TOML.
    #[error(transparent)]
    Toml(#[from] TomlFileError),
    /// The file has a value that cannot be used.
    #[error("{}: {reason}", path.display())]
    Content {
        /// Path of the cluster file.
        path: PathBuf,
        /// Which value it is, and why it cannot be used.
        reason: String,
    },
    /// The secret file beside the cluster file cannot be used.
    #[error(transparent)]
    Secret(#[from] SecretError),
}

/// The file of a cluster without a log, as TOML.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Whole {
    cluster: String,
    /// Name of the file with the secret, beside this file.
    secret: PathBuf,
    policy: Policy,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tables: Option<TablesHash>,
    shards: u16,
    ranges: u16,
    #[serde(default)]
    winners: WinnerOrder,
    /// Always `None`, because a file with `log` is read as [`Pointing`]. The field exists so that serde lists
    /// `log` among the expected fields.
    #[serde(default, skip_serializing)]
    #[expect(
        dead_code,
        reason = "serde lists `log` among the expected fields when somebody has mistyped it"
    )]
    log: Option<Servers>,
    tier1: Vec<Tier1Node>,
    tier2: Vec<Tier2Node>,
}

/// The file of a cluster with a log, as TOML.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Pointing {
    cluster: String,
    secret: PathBuf,
    log: Servers,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    reach: BTreeMap<NodeName, String>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Servers {
    servers: Vec<String>,
}

impl ClusterFile {
    /// Reads the file and the secret beside it.
    ///
    /// # Errors
    /// If the file or the secret cannot be used; the message names the file, the line and the reason.
    pub fn read(path: &Path) -> Result<Self, FileError> {
        let failed = |source| TomlFileError::Io { path: path.to_owned(), source };
        let mut text = String::new();
        let read = File::open(path).and_then(|file| file.take(BYTES_MAX + 1).read_to_string(&mut text));
        read.map_err(failed)?;
        if text.len() as u64 > BYTES_MAX {
            return Err(TomlFileError::TooLarge { path: path.to_owned(), max: BYTES_MAX }.into());
        }
        let (secret, contents) = if parse::<toml::Table>(path, &text)?.contains_key("log") {
            let Pointing { cluster, secret, log: Servers { servers }, reach } = parse(path, &text)?;
            (secret, (cluster, ClusterFileContents::LogLocation(LogLocation { servers, reach })))
        } else {
            let Whole { cluster, secret, policy, tables, shards, ranges, winners, log: _, tier1, tier2 } =
                parse(path, &text)?;
            let id = cluster.clone();
            let (secret_mark, log) = (None, None);
            let description = Description {
                cluster,
                secret_mark,
                policy,
                tables,
                shards,
                ranges,
                winners,
                log,
                tier1,
                tier2,
            };
            (secret, (id, ClusterFileContents::All(description)))
        };
        let (id, contents) = contents;
        let checked = match &contents {
            ClusterFileContents::All(description) => description.check(),
            ClusterFileContents::LogLocation(way) => way.check(&id),
        };
        checked.map_err(|reason| FileError::Content { path: path.to_owned(), reason })?;
        let secret = Secret::read(&path.parent().unwrap_or(Path::new("")).join(secret))?;
        Ok(Self { path: path.to_owned(), id: id.into(), secret, contents })
    }

    /// URLs of the servers of the log. `None` if the cluster has no log.
    pub fn servers(&self) -> Option<&[String]> {
        match &self.contents {
            ClusterFileContents::All(_) => None,
            ClusterFileContents::LogLocation(way) => Some(&way.servers),
        }
    }

    /// Addresses at which this machine reaches some nodes, in place of those in the description.
    pub(crate) fn reach(&self) -> BTreeMap<NodeName, String> {
        match &self.contents {
            ClusterFileContents::All(_) => BTreeMap::new(),
            ClusterFileContents::LogLocation(way) => way.reach.clone(),
        }
    }
}

fn parse<T: DeserializeOwned>(path: &Path, text: &str) -> Result<T, FileError> {
    toml_file::of_bytes(path, text.as_bytes(), toml_file::parse).map_err(FileError::from)
}

impl LogLocation {
    fn check(&self, id: &str) -> Result<(), String> {
        if !is_id(id) {
            return Err("cluster: 32 hex digits are expected, as `doppel init` draws them".to_owned());
        }
        check_servers(&self.servers)?;
        match self.reach.iter().find(|(_, address)| !is_address(address)) {
            Some((name, address)) => {
                Err(format!("reach: {name}: {address:?} is no address such as 10.0.0.7:7801"))
            }
            None => Ok(()),
        }
    }
}

/// The files that describe a new cluster and store its secret.
#[derive(Debug)]
pub struct NewFiles<'f> {
    /// Path of the file of the cluster.
    pub path: &'f Path,
    /// Name of the file of the secret, beside the file of the cluster.
    pub secret: &'f Path,
}

impl NewFiles<'_> {
    /// Whether at least one of the two files exists already.
    pub fn are_there(&self) -> bool {
        self.path.exists() || self.path.with_file_name(self.secret).exists()
    }

    /// Whether only the file of the secret exists, for example because an earlier [`Self::create`] was
    /// interrupted.
    pub fn is_only_the_secret_there(&self) -> bool {
        !self.path.exists() && self.path.with_file_name(self.secret).exists()
    }

    /// Writes and removes a temporary file, to find out whether the files can be created.
    ///
    /// # Errors
    /// If the directory cannot be created or the temporary file cannot be written.
    pub fn try_to(&self) -> io::Result<()> {
        let dir = self.dir();
        create_directories(dir)?;
        let mut file = tempfile::NamedTempFile::new_in(dir)?;
        // A full disk has no room for this file either.
        io::Write::write_all(&mut file, &[b'#'; 4_096])?;
        file.as_file().sync_all()
    }

    fn dir(&self) -> &Path {
        directory_of(self.path)
    }

    /// Writes the cluster file and the secret file, readable by their owner alone. Existing files are never
    /// replaced.
    ///
    /// # Errors
    /// If one of the files exists, or a file or its directory cannot be written.
    pub fn create(&self, cluster: &str, contents: &ClusterFileContents, secret: &str) -> io::Result<()> {
        let dir = self.dir();
        create_directories(dir)?;
        let put = |path: &Path, text: &str| {
            // A temporary file is readable by its owner alone from the beginning.
            let mut file = tempfile::NamedTempFile::new_in(dir)?;
            io::Write::write_all(&mut file, text.as_bytes())?;
            file.as_file().sync_all()?;
            file.persist_noclobber(path)?;
            Ok::<(), io::Error>(())
        };
        if self.are_there() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let (about, text) = self.text(cluster, contents)?;
        put(&dir.join(self.secret), &format!("{secret}\n"))?;
        put(self.path, &format!("# {about}\n{text}"))?;
        File::open(dir)?.sync_all()
    }

    fn text(&self, cluster: &str, contents: &ClusterFileContents) -> io::Result<(&'static str, String)> {
        let (cluster, secret) = (cluster.to_owned(), self.secret.to_owned());
        match contents.clone() {
            ClusterFileContents::All(Description {
                policy,
                tables,
                shards,
                ranges,
                winners,
                tier1,
                tier2,
                ..
            }) => {
                let log = None;
                let whole =
                    Whole { cluster, secret, policy, tables, shards, ranges, winners, log, tier1, tier2 };
                let text = toml::to_string(&whole).map_err(io::Error::other)?;
                Ok(("A cluster of Doppel. Every process reads a copy of this file and of the secret.", text))
            }
            ClusterFileContents::LogLocation(LogLocation { servers, reach }) => {
                let pointing = Pointing { cluster, secret, log: Servers { servers }, reach };
                let text = toml::to_string(&pointing).map_err(io::Error::other)?;
                let about = "How to reach a cluster of Doppel. Every process reads a copy of this file and of the \
                             secret. The log stores everything else: see `doppel cluster show --cluster FILE`.";
                Ok((about, text))
            }
        }
    }
}
