//! The temporary directory of a run that keeps nothing: removed at the end, and when the run is
//! interrupted.

use std::path::Path;
use std::thread;
use std::time::Duration;

use anyhow::Context;
use tempfile::TempDir;
use tokio::signal::unix::{SignalKind, signal};

/// What a shell calls a program that SIGINT ended.
const INTERRUPTED: i32 = 130;
/// The engine goes on writing while the directory is removed, so one try may not do.
const TRIES: usize = 20;

/// A directory that goes with the process.
pub(crate) struct Scratch(TempDir);

impl Scratch {
    /// Makes the directory, and from now on ends the process on SIGINT or SIGTERM by removing it.
    ///
    /// # Errors
    /// When there is no room for it.
    pub(crate) fn new() -> anyhow::Result<Self> {
        let dir = tempfile::Builder::new().prefix("doppel-").tempdir();
        let dir = dir.context("cannot make a temporary directory")?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
        let path = dir.path().to_owned();
        let (mut interrupt, mut terminate) = {
            let _inside = runtime.enter();
            (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?)
        };
        thread::Builder::new().name("interrupt".to_owned()).spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                }
            });
            remove(&path);
            std::process::exit(INTERRUPTED);
        })?;
        Ok(Self(dir))
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }
}

fn remove(path: &Path) {
    for _ in 0..TRIES {
        if std::fs::remove_dir_all(path).is_ok() {
            return;
        }
        thread::sleep(Duration::from_millis(20));
    }
    eprintln!("doppel: {} could not be removed", path.display());
}
