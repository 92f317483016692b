//! The directory of a node, and the file in it that names the owner.
//!
//! `node.json` names the node and the cluster to which the directory belongs. The file is written before
//! anything else and never replaced. A restarted node therefore recognises its own directory and refuses the
//! directory of another node.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use doppel_snapshot::create_directories;
use doppel_wire::{Identity, NodeName};
use serde::{Deserialize, Serialize};

/// Name of the file that names the owner.
const NAME: &str = "node.json";

/// Name of the collection's directory in the directory of a node of tier 1.
pub const COLLECTION: &str = "collection";

/// Whether a node accepts a directory with a collection that was restored from a backup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Restored {
    /// The node takes the directory of the backup as its own.
    Taken,
    /// The node refuses the directory of a backup.
    Refused,
}

/// The node that owns a directory: contents of `node.json`.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    cluster: String,
    role: String,
    node: NodeName,
}

/// Why a node cannot use a directory.
#[derive(Debug, thiserror::Error)]
pub enum NodeDirError {
    /// A file of the directory cannot be read or written.
    #[error("cannot use {}", path.display())]
    Io {
        /// Path of the file that cannot be read or written.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The directory has other files in it.
    #[error("{} is not empty and has no {NAME}; name an empty directory, or one of this node", .0.display())]
    Foreign(PathBuf),
    /// The directory was restored from a backup, and no node has taken it yet.
    #[error(
        "{}/{COLLECTION} was restored from a backup, and cannot be used in a cluster with a log, where a node copies its \
         ranges from the others and the log: start it on an empty directory (docs/guides/grow-and-repair-a-cluster.md says \
         where a backup can be restored)", .0.display()
    )]
    Restored(PathBuf),
    /// The file that names the owner is damaged.
    #[error("{} cannot be read: {reason}", path.display())]
    Damaged {
        /// Path of the damaged file.
        path: PathBuf,
        /// Why the file cannot be read.
        reason: String,
    },
    /// The directory belongs to another node.
    #[error(
        "{} belongs to {} node {} of cluster {}, and this is {} node {} of cluster {}; name this node's own \
         directory, or an empty one", dir.display(), found.role, found.node, found.cluster, own.role, own.node, own.cluster
    )]
    Another {
        /// The directory that belongs to another node.
        dir: PathBuf,
        /// The node that owns the directory.
        found: Box<Owner>,
        /// The node that wants to use the directory.
        own: Box<Owner>,
    },
}

/// Claims a directory for a node, or checks that the directory belongs to it already.
///
/// A restored collection in the directory is accepted only with [`Restored::Taken`], for a node without
/// another source of its data.
///
/// # Errors
/// If the directory belongs to another node or another program, or cannot be used.
pub fn claim(dir: &Path, own: &Identity, role: &'static str, restored: Restored) -> Result<(), NodeDirError> {
    let path = dir.join(NAME);
    let failed = |source| NodeDirError::Io { path: dir.to_owned(), source };
    create_directories(dir).map_err(failed)?;
    let owner = Owner { cluster: own.cluster.to_string(), role: role.to_owned(), node: own.node.clone() };
    let found = match fs::read(&path) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            for entry in fs::read_dir(dir).map_err(failed)? {
                let name = entry.map_err(failed)?.file_name();
                let is_restored = role == "tier-1" && name == COLLECTION;
                if is_restored && restored == Restored::Refused {
                    return Err(NodeDirError::Restored(dir.to_owned()));
                }
                if name != "lost+found" && !is_restored && !name.as_encoded_bytes().starts_with(b".tmp") {
                    return Err(NodeDirError::Foreign(dir.to_owned()));
                }
            }
            return write(dir, &path, &owner).map_err(failed);
        }
        Err(error) => return Err(failed(error)),
    };
    let found: Owner = serde_json::from_slice(&found)
        .map_err(|error| NodeDirError::Damaged { path, reason: error.to_string() })?;
    if found == owner {
        return Ok(());
    }
    Err(NodeDirError::Another { dir: dir.to_owned(), found: Box::new(found), own: Box::new(owner) })
}

/// Whether a directory is the collection of a node of tier 1.
pub fn is_collection(dir: &Path) -> bool {
    let Ok(dir) = fs::canonicalize(dir) else { return false };
    dir.file_name().is_some_and(|name| name == COLLECTION)
        && dir.parent().is_some_and(|node| node.join(NAME).is_file())
}

fn write(dir: &Path, path: &Path, owner: &Owner) -> io::Result<()> {
    let mut file = tempfile::NamedTempFile::new_in(dir)?;
    file.write_all(&serde_json::to_vec(owner)?)?;
    file.as_file().sync_all()?;
    file.persist_noclobber(path)?;
    File::open(dir)?.sync_all()
}

#[cfg(test)]
mod tests {
    use doppel_wire::Secret;

    use super::*;

    fn identity(cluster: &str, node: &str) -> Identity {
        let secret = Secret::new(&"s".repeat(32)).unwrap();
        Identity { cluster: cluster.into(), node: node.parse().unwrap(), secret }
    }

    #[test]
    fn a_node_accepts_its_own_directory_and_refuses_others() {
        let home = tempfile::tempdir().unwrap();
        let dir = home.path().join("node");
        let own = identity("one", "index-1");
        claim(&dir, &own, "tier-2", Restored::Refused).unwrap();
        claim(&dir, &own, "tier-2", Restored::Refused).unwrap();
        for (other, role) in [
            (identity("two", "index-1"), "tier-2"),
            (identity("one", "index-2"), "tier-2"),
            (identity("one", "index-1"), "tier-1"),
        ] {
            let refused = claim(&dir, &other, role, Restored::Taken).unwrap_err().to_string();
            assert!(
                refused.contains("belongs to tier-2 node index-1 of cluster one, and this is"),
                "{refused}"
            );
        }
        fs::write(home.path().join("file"), "").unwrap();
        assert!(matches!(
            claim(home.path(), &own, "tier-2", Restored::Refused),
            Err(NodeDirError::Foreign(_))
        ));
        fs::write(dir.join(NAME), "{").unwrap();
        assert!(matches!(claim(&dir, &own, "tier-2", Restored::Refused), Err(NodeDirError::Damaged { .. })));
    }

    #[test]
    fn a_restored_collection_is_refused_in_a_cluster_with_a_log() {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir(home.path().join(COLLECTION)).unwrap();
        let own = identity("one", "record-1");
        let refused = claim(home.path(), &own, "tier-1", Restored::Refused).unwrap_err().to_string();
        assert!(refused.contains("was restored from a backup"), "{refused}");
        claim(home.path(), &own, "tier-1", Restored::Taken).unwrap();
        // From then on, the directory belongs to the node.
        claim(home.path(), &own, "tier-1", Restored::Refused).unwrap();
    }
}
