//! Whether the files of an index are sound. Nothing is written.
//!
//! Damage costs time, not data: what is not in the files is fetched from tier 1 at the next start. Only the drained
//! nodes and the rebalance requests are stored nowhere else. Damage is reported all the same, because it may be a sign
//! of a failing disk.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use doppel_model::NodeId;
use doppel_snapshot::create_directories;
use serde::Serialize;

use crate::error::Error;
use crate::node::SIGNATURES;
use crate::node::file::{HEADER_BYTES, Records};
use crate::node::signatures::IN_TIER1;
use crate::node::snapshot::{self, SNAPSHOT};
use crate::router::{stored_plan, stored_requests};
use crate::setup::node_dir;
use crate::state_files::{PLAN, REQUESTS};

/// What the files have.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Whether there is an index.
    pub present: bool,
    /// Contents in the sound snapshots of all nodes; none where no node has one.
    pub snapshot_contents: Option<u64>,
    /// Sound signatures in files of the index, those no longer in use among them.
    pub signatures: u64,
    /// Bytes of the files.
    pub bytes: u64,
    /// What is wrong, by file, and what will become of it.
    pub damage: Vec<String>,
}

/// Reads the files of the index in `dir`. A missing file is not damage.
///
/// # Errors
/// When a file cannot be read.
pub fn of_directory(dir: &Path) -> Result<Report, Error> {
    let mut report = Report { present: dir.is_dir(), ..Report::default() };
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
        let Some(file) = found(File::open(&path)).map_err(fail)? else {
            // Where tier 1 keeps the signatures, they are checked with its rows.
            if dir.join(&name).parent().is_some_and(|node| node.join(IN_TIER1).exists()) {
                continue;
            }
            break;
        };
        report.bytes += file.metadata().map_err(fail)?.len();
        let mut records = Records::of(file).map_err(fail)?;
        report.signatures += (&mut records).map(|_| 1_u64).sum::<u64>();
        if let Some((offset, damage)) = records.damage() {
            report.damage.push(format!("{name} from byte {offset}: {damage}; it will be rebuilt"));
        }
    }
    let path = dir.join(PLAN);
    let fail = |e| Error::io("read the partition map", &path, e);
    if let Some(metadata) = found(fs::metadata(&path)).map_err(fail)? {
        report.bytes += metadata.len();
        let damage = stored_plan::damage(&fs::read(&path).map_err(fail)?);
        report.damage.extend(damage.map(|damage| format!("{PLAN}: {damage}; it will be learned anew")));
    }
    let requests = match found(fs::read(dir.join(REQUESTS))) {
        Ok(requests) => requests.and_then(|requests| stored_requests::damage(&requests)),
        Err(error) => Some(error.to_string()),
    };
    let requests =
        requests.map(|damage| format!("{REQUESTS}: {damage}; it will be put aside: request it again"));
    report.damage.extend(requests);
    Ok(report)
}

/// Whether there is no index in `dir`, or one that never had a content.
#[must_use]
pub fn is_empty(dir: &Path) -> bool {
    let mut nodes = (0..).map(|node| dir.join(node_dir(NodeId(node)))).take_while(|node| node.is_dir());
    nodes.all(|node| {
        let own = fs::metadata(node.join(SIGNATURES)).is_ok_and(|file| file.len() > HEADER_BYTES);
        !own && !node.join(IN_TIER1).exists()
    })
}

/// Makes an index without contents that shows that tier 1 has some. Returns when it is on disk.
///
/// # Errors
/// When it cannot be written.
pub fn mark(dir: &Path) -> io::Result<()> {
    let node = dir.join(node_dir(NodeId(0)));
    create_directories(&node)?;
    File::create(node.join(IN_TIER1))?.sync_all()?;
    [&node, dir].into_iter().try_for_each(|dir| File::open(dir)?.sync_all())
}

fn found<T>(result: io::Result<T>) -> io::Result<Option<T>> {
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
        assert_eq!(of_directory(&dir.path().join("none")).unwrap(), Report::default());
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
        // A directory has the name of the file.
        fs::create_dir(dir.path().join(node_dir(NodeId(0))).join(SNAPSHOT)).unwrap();
        let report = of_directory(dir.path()).unwrap();
        assert!(report.damage[0].starts_with("node-0/snapshot.dat: it is a directory"), "{report:?}");
        assert_eq!(report.snapshot_contents, None);
    }
}
