//! A small file system that a test fills.
//!
//! The file system exists in the mount namespace of a process that does nothing else, so that a server on it
//! may end and start again. Other processes reach the file system through the root directory of that process
//! in `/proc`.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A small file system. Dropping it unmounts the file system.
pub struct SmallDisk {
    holder: Child,
    /// Options of `nsenter` with which a process enters the namespace.
    enter: &'static [&'static str],
    path: PathBuf,
}

type Options = &'static [&'static str];

/// The options of `unshare` that make a mount namespace, and those of `nsenter` that enter it. Tries as root
/// first, then as root of a new user namespace. `None` if neither is allowed.
fn namespace() -> Option<(Options, Options)> {
    let may = |(options, _): &(Options, Options)| {
        let mut command = Command::new("unshare");
        command.args(*options).args(["sh", "-c", "mount -t tmpfs tmpfs /mnt"]);
        command.stderr(Stdio::null()).status().is_ok_and(|status| status.success())
    };
    let ways: [(Options, Options); 2] = [
        (&["--mount"], &["--mount"]),
        (&["--user", "--map-root-user", "--mount"], &["--user", "--preserve-credentials", "--mount"]),
    ];
    ways.into_iter().find(may)
}

impl SmallDisk {
    /// Mounts a file system of `bytes` bytes over the directory `at`. If the system does not allow that,
    /// prints so and returns `None`.
    pub fn make(at: &Path, bytes: u64) -> Option<Self> {
        let Some((make, enter)) = namespace() else {
            println!("this system does not let a process mount a file system");
            return None;
        };
        let mut command = Command::new("unshare");
        command.args(make).args(["sh", "-c"]);
        // The holder process ends when its standard input closes.
        command.arg(format!("mount -t tmpfs -o size={bytes} tmpfs \"$1\" && echo made && exec cat"));
        command.arg("sh").arg(at).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut holder = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(holder.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "made\n");
        let root = PathBuf::from(format!("/proc/{}/root", holder.id()));
        Some(Self { holder, enter, path: root.join(at.strip_prefix("/").unwrap()) })
    }

    /// A command whose process sees the file system at the directory where it was mounted.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new("nsenter");
        command.arg("--target").arg(self.holder.id().to_string()).args(self.enter).arg(program);
        command
    }

    /// The path under which other processes reach the file system.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Fills the file system to its last byte.
    pub fn fill(&self) {
        let mut file = File::options().create(true).append(true).open(self.ballast()).unwrap();
        for bytes in [1 << 20, 1 << 12, 1] {
            let some = vec![0x55; bytes];
            while file.write_all(&some).is_ok() {}
        }
    }

    /// Frees the space that [`fill`](Self::fill) took.
    pub fn empty(&self) {
        fs::remove_file(self.ballast()).unwrap();
    }

    fn ballast(&self) -> PathBuf {
        self.path.join("ballast")
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}
