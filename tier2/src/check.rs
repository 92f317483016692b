//! Checks the files of an index. The check never writes to them.
//!
//! Damage costs time, not data. At the next start the index fetches from tier 1 whatever its files lack. Only
//! the list of drained nodes and the rebalance requests are stored nowhere else. The check also reports
//! damage that the index can repair, because it may be a sign of a failing disk.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use doppel_model::NodeId;
use doppel_snapshot::create_directories;
use serde::Serialize;

use crate::error::Error;
use crate::node::SIGNATURES;
use crate::node::signatures::IN_TIER1;
use crate::node::signatures::file::{HEADER_BYTES, SignatureRecords};
use crate::node::snapshot::{self, SNAPSHOT};
use crate::router::persistence::{stored_plan, stored_requests};
use crate::setup::node_dir;
use crate::state_files::{PLAN, REQUESTS};

/// What the check of an index directory found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct IndexReport {
    /// Whether the directory exists.
    pub present: bool,
    /// Number of contents in the sound snapshots of all nodes. `None` if no node has one.
    pub snapshot_contents: Option<u64>,
    /// Number of sound signatures in the signature files. Signatures that are no longer in use count too.
    pub signatures: u64,
    /// Size of the checked files, in bytes.
    pub bytes: u64,
    /// One message for each damaged file: what is wrong, and what the next start will do.
    pub damage: Vec<String>,
}

/// Reads the files of the index in `dir` and reports damage. A missing file is not damage.
///
/// # Errors
/// Fails if a file cannot be read.
pub fn of_directory(dir: &Path) -> Result<IndexReport, Error> {
    let mut report = IndexReport { present: dir.is_dir(), ..IndexReport::default() };
    for node in (0..).map(|node| node_dir(NodeId(node))).take_while(|node| dir.join(node).is_dir()) {
        let path = dir.join(&node).join(SNAPSHOT);
        let fail = |e| Error::io("read the snapshot", &path, e);
        match snapshot::contents(&dir.join(&node)).map_err(fail)? {
            None => continue,
            Some(Ok(contents)) => *report.snapshot_contents.get_or_insert(0) += contents,
            Some(Err(damage)) => {
                report.damage.push(format!("{node}/{SNAPSHOT}: {damage}; the next start does without it"));
            }
        }
        report.bytes += fs::metadata(&path).map_err(fail)?.len();
    }
    for name in (0..).map(|node| format!("{}/{SIGNATURES}", node_dir(NodeId(node)))) {
        let path = dir.join(&name);
        let fail = |e| Error::io("read the signature file", &path, e);
        let Some(file) = missing_as_none(File::open(&path)).map_err(fail)? else {
            // Tier 1 stores the signatures of this node. The check of tier 1 covers them.
            if dir.join(&name).parent().is_some_and(|node| node.join(IN_TIER1).exists()) {
                continue;
            }
            break;
        };
        report.bytes += file.metadata().map_err(fail)?.len();
        let mut records = SignatureRecords::of(file).map_err(fail)?;
        report.signatures += (&mut records).map(|_| 1_u64).sum::<u64>();
        if let Some((offset, damage)) = records.damage() {
            report
                .damage
                .push(format!("{name} from byte {offset}: {damage}; the next start rebuilds the rest"));
        }
    }
    let path = dir.join(PLAN);
    let fail = |e| Error::io("read the partition map", &path, e);
    if let Some(metadata) = missing_as_none(fs::metadata(&path)).map_err(fail)? {
        report.bytes += metadata.len();
        let damage = stored_plan::damage(&fs::read(&path).map_err(fail)?);
        report.damage.extend(damage.map(|damage| format!("{PLAN}: {damage}; it will be learned anew")));
    }
    let requests = match missing_as_none(fs::read(dir.join(REQUESTS))) {
        Ok(requests) => requests.and_then(|requests| stored_requests::damage(&requests)),
        Err(error) => Some(error.to_string()),
    };
    let requests = requests.map(|damage| {
        format!("{REQUESTS}: {damage}; the next start puts it aside; request the rebalance again")
    });
    report.damage.extend(requests);
    Ok(report)
}

/// Whether `dir` holds no index, or an index that never stored a content.
#[must_use]
pub fn is_empty(dir: &Path) -> bool {
    let mut nodes = (0..).map(|node| dir.join(node_dir(NodeId(node)))).take_while(|node| node.is_dir());
    nodes.all(|node| {
        let own = fs::metadata(node.join(SIGNATURES)).is_ok_and(|file| file.len() > HEADER_BYTES);
        !own && !node.join(IN_TIER1).exists()
    })
}

/// Creates an index that has no contents, with a file that shows that tier 1 has contents. Because of the
/// file, [`is_empty`] is false. Returns once the file is on disk.
///
/// # Errors
/// Fails if a file or directory cannot be written.
pub fn mark(dir: &Path) -> io::Result<()> {
    let node = dir.join(node_dir(NodeId(0)));
    create_directories(&node)?;
    File::create(node.join(IN_TIER1))?.sync_all()?;
    [&node, dir].into_iter().try_for_each(|dir| File::open(dir)?.sync_all())
}

/// Turns the error `NotFound` into `None`.
fn missing_as_none<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_shows_that_tier1_has_contents() {
        let home = tempfile::tempdir().unwrap();
        let dir = home.path().join("tier2");
        assert!(is_empty(&dir));
        mark(&dir).unwrap();
        assert!(!is_empty(&dir));
        let report = of_directory(&dir).unwrap();
        assert_eq!((report.present, report.signatures, report.damage.len()), (true, 0, 0));
    }

    #[test]
    fn damage_is_named_with_its_file() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(of_directory(&dir.path().join("none")).unwrap(), IndexReport::default());
        let empty = of_directory(dir.path()).unwrap();
        assert_eq!((empty.present, empty.damage.len()), (true, 0));
        fs::create_dir(dir.path().join(node_dir(NodeId(0)))).unwrap();
        fs::write(dir.path().join(node_dir(NodeId(0))).join(SIGNATURES), b"doppel tier2 v1\nand then what")
            .unwrap();
        fs::write(dir.path().join(PLAN), b"{\xff").unwrap();
        let report = of_directory(dir.path()).unwrap();
        assert_eq!((report.signatures, report.bytes), (0, 16 + 13 + 2));
        assert!(report.damage[0].starts_with("node-0/signatures.dat from byte 16: "), "{report:?}");
        assert!(report.damage[1].starts_with("map.json: "), "{report:?}");
        // A directory with the name of the snapshot file makes the snapshot unreadable.
        fs::create_dir(dir.path().join(node_dir(NodeId(0))).join(SNAPSHOT)).unwrap();
        let report = of_directory(dir.path()).unwrap();
        assert!(report.damage[0].starts_with("node-0/snapshot.dat: it is a directory"), "{report:?}");
        assert_eq!(report.snapshot_contents, None);
    }
}
