//! The plan on disk: a line that says what it is, and the plan.

use std::fs;
use std::io;
use std::path::Path;

use doppel_model::stable_hash64;
use doppel_partitioning::Plan;
use serde::{Deserialize, Serialize};

use super::replace::replace;
use crate::error::Error;

/// The version of the file.
const VERSION: u32 = 4;

/// When and for what a map was learned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LearnedFrom {
    /// Contents stored then.
    pub(crate) contents: usize,
    /// Partitions asked for; the map may have fewer.
    pub(crate) partitions: u32,
}

/// The first line.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Head {
    doppel_partition_map: u32,
    learned: LearnedFrom,
    /// XXH3-64 of the second line.
    checksum: String,
}

/// The stored map; none when there is none. A damaged one is reported and left out.
pub(crate) fn read(path: &Path) -> Option<(Plan, LearnedFrom)> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
        Err(error) => {
            tracing::warn!(path = %path.display(), %error, "cannot read the partition map; it is learned anew");
            return None;
        }
    };
    parse(&text)
        .map_err(|error| {
            tracing::warn!(path = %path.display(), %error, "the partition map is damaged; it is learned anew");
        })
        .ok()
}

/// Why a map file cannot be used; none for a sound one.
pub(crate) fn damage(path: &Path) -> io::Result<Option<String>> {
    let text = fs::read(path)?;
    Ok(match String::from_utf8(text) {
        Ok(text) => parse(&text).err().map(|unusable| unusable.to_string()),
        Err(error) => Some(error.to_string()),
    })
}

fn parse(text: &str) -> Result<(Plan, LearnedFrom), Unusable> {
    let (head, map) = text.split_once('\n').ok_or(Unusable::Short)?;
    let head: Head = serde_json::from_str(head)?;
    if head.doppel_partition_map != VERSION {
        return Err(Unusable::Version(head.doppel_partition_map));
    }
    if head.checksum != checksum(map) {
        return Err(Unusable::Checksum);
    }
    Ok((serde_json::from_str(map)?, head.learned))
}

/// Stores a plan in one step: after a crash there is the one before or this one.
pub(crate) fn write(path: &Path, plan: &Plan, learned: LearnedFrom) -> Result<(), Error> {
    let fail = |e| Error::io("write the partition map", path, e);
    let map = serde_json::to_string(plan).map_err(|e| fail(e.into()))?;
    let head = Head { doppel_partition_map: VERSION, learned, checksum: checksum(&map) };
    let head = serde_json::to_string(&head).map_err(|e| fail(e.into()))?;
    replace(path, &format!("{head}\n{map}")).map_err(fail)
}

fn checksum(map: &str) -> String {
    format!("{:016x}", stable_hash64(map.as_bytes()))
}

/// Why a stored map is not used.
#[derive(Debug, thiserror::Error)]
enum Unusable {
    #[error("it has one line and not two")]
    Short,
    #[error("it is of version {0}, this reads {VERSION}")]
    Version(u32),
    #[error("the checksum does not match")]
    Checksum,
    #[error(transparent)]
    Json(#[from] serde_json::Error),
}

#[cfg(test)]
mod tests {
    use super::*;
    use doppel_model::Tau;
    use doppel_partitioning::PartitionMap;

    #[test]
    fn round_trip_and_damage() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("map.json");
        assert_eq!(read(&path), None);
        let map = PartitionMap::one(3, Tau::DEFAULT).unwrap();
        let (plan, learned) = (Plan::on_first(map, 2).unwrap(), LearnedFrom { contents: 7, partitions: 4 });
        write(&path, &plan, learned).unwrap();
        assert_eq!(read(&path), Some((plan, learned)));
        let sound = fs::read(&path).unwrap();
        for at in (0..sound.len()).step_by(97).chain([sound.len() - 1]) {
            let mut bytes = sound.clone();
            bytes[at] ^= 1;
            fs::write(&path, &bytes).unwrap();
            assert_eq!(read(&path), None, "byte {at}");
            fs::write(&path, &sound[..at]).unwrap();
            assert_eq!(read(&path), None, "cut at {at}");
        }
    }
}
