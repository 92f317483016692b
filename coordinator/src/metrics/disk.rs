//! Disk metrics: the space that the directories of this process use, and the free space of their file
//! systems.

use std::fmt;

use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;
use walkdir::WalkDir;

use super::background_query::BackgroundQuery;
use crate::app::services::MonitoredDirectory;

/// Space of a directory at one time.
#[derive(Debug, Clone, Copy)]
pub(super) struct DiskUsage {
    name: &'static str,
    /// Bytes of the files in the directory. `None` if other processes also use the directory.
    used: Option<u64>,
    /// Free bytes and total bytes of the file system. `None` if they are not known.
    disk: Option<(u64, u64)>,
}

/// Selects a figure of a directory.
type DiskFigure = fn(&DiskUsage) -> Option<u64>;

/// Creates the query that measures the directories. Measuring may take long if a directory has many files
/// or a disk does not respond.
pub(super) fn query(directories: Vec<MonitoredDirectory>) -> BackgroundQuery<Vec<DiskUsage>> {
    BackgroundQuery::new(move || directories.iter().map(measure).collect())
}

/// Writes the samples of the directories.
pub(super) fn encode(out: &mut DescriptorEncoder<'_>, usages: &[DiskUsage]) -> fmt::Result {
    let figures: [(&str, &str, DiskFigure); 3] = [
        ("doppel_disk_used_bytes", "Size of the files in a directory of this process", |usage| usage.used),
        ("doppel_disk_free_bytes", "Free space of the file system that contains the directory", |usage| {
            Some(usage.disk?.0)
        }),
        ("doppel_disk_size_bytes", "Size of the file system that contains the directory", |usage| {
            Some(usage.disk?.1)
        }),
    ];
    for (name, help, figure) in figures {
        let mut family = out.encode_descriptor(name, help, None, MetricType::Gauge)?;
        for usage in usages {
            let Some(bytes) = figure(usage) else { continue };
            ConstGauge::new(bytes).encode(family.encode_family(&[("directory", usage.name)])?)?;
        }
    }
    Ok(())
}

/// Measures a directory. Files that cannot be read are skipped, because files can disappear meanwhile.
fn measure(MonitoredDirectory { name, path, is_own }: &MonitoredDirectory) -> DiskUsage {
    let files =
        || WalkDir::new(path).into_iter().filter_map(Result::ok).filter_map(|entry| entry.metadata().ok());
    let used = is_own.then(|| files().filter(std::fs::Metadata::is_file).map(|file| file.len()).sum());
    let disk = rustix::fs::statvfs(path).ok();
    DiskUsage {
        name,
        used,
        disk: disk.map(|disk| (disk.f_bavail * disk.f_frsize, disk.f_blocks * disk.f_frsize)),
    }
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
        let of =
            |path: std::path::PathBuf, is_own| measure(&MonitoredDirectory { name: "tier1", path, is_own });
        let usage = of(dir.path().to_owned(), true);
        let (free, size) = usage.disk.unwrap();
        assert!(usage.used == Some(1_234) && 0 < free && free <= size, "{usage:?}");
        let lost = of(dir.path().join("lost"), true);
        assert_eq!((lost.used, lost.disk), (Some(0), None));
        assert_eq!(of(dir.path().to_owned(), false).used, None, "other processes also use the directory");
    }
}
