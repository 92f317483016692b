//! A small file system of its own, which a test fills.
//!
//! It is in the mount namespace of a process that does nothing else, so a server on it may end and start again. Others reach it
//! through that process's root.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// The file system. It goes when this is dropped.
pub struct SmallDisk {
    holder: Child,
    /// How a process gets into its namespace.
    enter: &'static [&'static str],
    path: PathBuf,
}

type Options = &'static [&'static str];

/// How a process gets a mount namespace here, and how another one enters it: as root, or as root of a user namespace.
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
    /// Makes one of so many bytes, in the place of a directory. None where a process may not have one, which it prints.
    pub fn make(at: &Path, bytes: u64) -> Option<Self> {
        let Some((make, enter)) = namespace() else {
            println!("no process may have a file system of its own here");
            return None;
        };
        let mut command = Command::new("unshare");
        command.args(make).args(["sh", "-c"]);
        // It ends with its input.
        command.arg(format!("mount -t tmpfs -o size={bytes} tmpfs \"$1\" && echo made && exec cat"));
        command.arg("sh").arg(at).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut holder = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(holder.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "made\n");
        let root = PathBuf::from(format!("/proc/{}/root", holder.id()));
        Some(Self { holder, enter, path: root.join(at.strip_prefix("/").unwrap()) })
    }

    /// A command whose process has it in its own place.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new("nsenter");
        command.arg("--target").arg(self.holder.id().to_string()).args(self.enter).arg(program);
        command
    }

    /// Where other processes find it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Takes all that is free.
    pub fn fill(&self) {
        let mut file = File::options().create(true).append(true).open(self.ballast()).unwrap();
        for bytes in [1 << 20, 1 << 12, 1] {
            let some = vec![0x55; bytes];
            while file.write_all(&some).is_ok() {}
        }
    }

    /// Makes room again.
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
