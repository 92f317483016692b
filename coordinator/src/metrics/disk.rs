//! Disk metrics: the space that the directories of this process use, and the free space of their file
//! systems.

use std::fmt;

use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;
use walkdir::WalkDir;

use super::question::Question;
use crate::app::services::Directory;

/// Space of a directory at one time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Room {
    name: &'static str,
    /// Bytes of the files in the directory. `None` if other processes also use the directory.
    used: Option<u64>,
    /// Free bytes and total bytes of the file system. `None` if they are not known.
    disk: Option<(u64, u64)>,
}

/// Selects a figure of a directory.
type Figure = fn(&Room) -> Option<u64>;

/// Creates the question that measures the directories. Measuring may take long if a directory has many files
/// or a disk does not respond.
pub(super) fn question(directories: Vec<Directory>) -> Question<Vec<Room>> {
    Question::new(move || directories.iter().map(look).collect())
}

/// Writes the samples of the directories.
pub(super) fn encode(out: &mut DescriptorEncoder<'_>, rooms: &[Room]) -> fmt::Result {
    let figures: [(&str, &str, Figure); 3] = [
        ("doppel_disk_used_bytes", "Size of the files in a directory of this process", |room| room.used),
        ("doppel_disk_free_bytes", "Free space of the file system that contains the directory", |room| {
            Some(room.disk?.0)
        }),
        ("doppel_disk_size_bytes", "Size of the file system that contains the directory", |room| {
            Some(room.disk?.1)
        }),
    ];
    for (name, help, figure) in figures {
        let mut family = out.encode_descriptor(name, help, None, MetricType::Gauge)?;
        for room in rooms {
            let Some(bytes) = figure(room) else { continue };
            ConstGauge::new(bytes).encode(family.encode_family(&[("directory", room.name)])?)?;
        }
    }
    Ok(())
}

/// Measures a directory. Files that cannot be read are skipped, because files can disappear meanwhile.
fn look(Directory { name, path, is_own }: &Directory) -> Room {
    let files =
        || WalkDir::new(path).into_iter().filter_map(Result::ok).filter_map(|entry| entry.metadata().ok());
    let used = is_own.then(|| files().filter(std::fs::Metadata::is_file).map(|file| file.len()).sum());
    let disk = rustix::fs::statvfs(path).ok();
    Room { name, used, disk: disk.map(|disk| (disk.f_bavail * disk.f_frsize, disk.f_blocks * disk.f_frsize)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_as_large_as_its_files() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("below")).unwrap();
        std::fs::write(dir.path().join("one"), [0; 1_000]).unwrap();
        std::fs::write(dir.path().join("below/two"), [0; 234]).unwrap();
        let of = |path: std::path::PathBuf, is_own| look(&Directory { name: "tier1", path, is_own });
        let room = of(dir.path().to_owned(), true);
        let (free, size) = room.disk.unwrap();
        assert!(room.used == Some(1_234) && 0 < free && free <= size, "{room:?}");
        let lost = of(dir.path().join("lost"), true);
        assert_eq!((lost.used, lost.disk), (Some(0), None));
        assert_eq!(of(dir.path().to_owned(), false).used, None, "it has files of others");
    }
}
