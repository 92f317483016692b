//! The directory of a node: its files, and whose they are.
//!
//! `node.json` says which node of which cluster has them. It is written before anything else is, and never replaced: a node
//! that comes back takes its place again, and another node's directory is refused.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use doppel_snapshot::create_directories;
use doppel_wire::{Identity, NodeName};
use serde::{Deserialize, Serialize};

/// The name of the file.
const NAME: &str = "node.json";

/// The collection of a node of tier 1, in its directory.
pub const COLLECTION: &str = "collection";

/// Whether a collection from a backup belongs to whoever is started on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Restored {
    /// The node takes the directory of the backup as its own.
    Taken,
    /// The node refuses the directory of a backup.
    Refused,
}

/// Whose directory it is.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    cluster: String,
    role: String,
    node: NodeName,
}

/// Why a directory is not that of the node.
#[derive(Debug, thiserror::Error)]
pub enum NodeDirError {
    /// A file of the directory cannot be read or written.
    #[error("cannot use {}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The directory has other files in it.
    #[error("{} is not empty and has no {NAME}; name an empty directory, or one of this node", .0.display())]
    Foreign(PathBuf),
    /// The directory was restored from a backup, and no node has taken it yet.
    #[error(
        "{}/{COLLECTION} was restored from a backup, and cannot be used in a cluster with a log, where a node copies its ranges \
         from the others and the log: start it on an empty directory (docs/guides/grow-and-repair-a-cluster.md says where a backup can be restored)", .0.display()
    )]
    Restored(PathBuf),
    /// The file that names the owner is damaged.
    #[error("{} cannot be read: {reason}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// The directory belongs to another node.
    #[error(
        "{} belongs to {} node {} of cluster {}, and this is {} node {} of cluster {}; name this node's own \
         directory, or an empty one", dir.display(), found.role, found.node, found.cluster, own.role, own.node, own.cluster
    )]
    Another {
        /// The directory.
        dir: PathBuf,
        /// The node that owns it.
        found: Box<Owner>,
        /// This node.
        own: Box<Owner>,
    },
}

/// Makes a directory that of a node, or finds that it is. A collection that was restored there is taken where the node has
/// no other source of what it is to have.
///
/// # Errors
/// When it is another node's or another program's, or cannot be used.
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
    fn a_node_takes_its_place_again_and_no_other_does() {
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
    fn a_restored_collection_is_refused_where_a_log_has_what_the_node_is_to_have() {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir(home.path().join(COLLECTION)).unwrap();
        let own = identity("one", "record-1");
        let refused = claim(home.path(), &own, "tier-1", Restored::Refused).unwrap_err().to_string();
        assert!(refused.contains("was restored from a backup"), "{refused}");
        claim(home.path(), &own, "tier-1", Restored::Taken).unwrap();
        // It is that of the node from then on.
        claim(home.path(), &own, "tier-1", Restored::Refused).unwrap();
    }
}
