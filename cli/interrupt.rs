//! What an interrupted run takes with it: its temporary directory, and the file it has not finished.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};

/// What a shell calls a program that SIGINT ended.
const INTERRUPTED: i32 = 130;
/// The engine goes on writing while its directory is removed, so one try may not do.
const TRIES: usize = 20;

/// What is removed; none before signals are waited for.
static UNFINISHED: Mutex<Option<Vec<PathBuf>>> = Mutex::new(None);

/// Makes a file or directory that is removed, if it is still there, when SIGINT or SIGTERM ends the
/// process, which they do from now on. There is no moment in which it would be forgotten.
///
/// # Errors
/// When signals cannot be waited for, or what `make` fails with.
pub(crate) fn removable<T: AsRef<Path>>(make: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let mut unfinished = unfinished();
    let paths = match &mut *unfinished {
        Some(paths) => paths,
        none => {
            wait()?;
            none.insert(Vec::new())
        }
    };
    let made = make()?;
    paths.push(made.as_ref().to_owned());
    Ok(made)
}

/// Waits for a signal in the background.
fn wait() -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
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
        // Held to the end, so that nothing more is made.
        let unfinished = unfinished();
        unfinished.iter().flatten().for_each(|path| remove(path));
        std::process::exit(INTERRUPTED);
    })?;
    Ok(())
}

fn unfinished() -> MutexGuard<'static, Option<Vec<PathBuf>>> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

fn remove(path: &Path) {
    for _ in 0..TRIES {
        let removed = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
        if removed.is_ok() || !path.exists() {
            return;
        }
        thread::sleep(Duration::from_millis(20));
    }
    eprintln!("doppel: {} could not be removed", path.display());
}
