//! Cleanup when SIGINT, SIGTERM or SIGHUP interrupts a command. A thread waits for the first signal. The
//! thread removes the temporary directory and the unfinished file of the command, prints a last message, and
//! ends the process with code 130. If the process was started with SIGHUP ignored, as by `nohup`, SIGHUP does
//! not interrupt it.
//!
//! Invariant: the cleanup removes every registered path, or tells the user to remove it. The thread holds the
//! lock on the registered paths until the process ends, so no other thread can create a file that the cleanup
//! would miss.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};

/// Exit code that a shell reports for a program that SIGINT ended.
const INTERRUPTED: i32 = 130;
/// How often the cleanup tries to remove a path. The engine continues to write while its directory is
/// removed, so the first attempt may fail.
const TRIES: usize = 20;

/// Work that the cleanup does when a signal interrupts the command.
#[derive(Debug, Default)]
struct Unfinished {
    /// Files and directories to remove.
    paths: Vec<PathBuf>,
    /// Message to print on standard error.
    words: Option<&'static str>,
}

/// Cleanup work of this process. `None` until the process handles signals.
static UNFINISHED: Mutex<Option<Unfinished>> = Mutex::new(None);

/// Creates a file or directory with `make`, and registers it for removal. If SIGINT, SIGTERM or SIGHUP ends
/// the process while the path still exists, the path is removed. The first call makes the process handle
/// these signals. No signal can come between the creation and the registration, because both happen under one
/// lock.
///
/// # Errors
/// If the process cannot handle signals, or if `make` fails.
pub fn create_removable<T: AsRef<Path>>(make: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let mut unfinished = unfinished();
    let unfinished = waited_for(&mut unfinished)?;
    let made = make()?;
    unfinished.paths.push(made.as_ref().to_owned());
    Ok(made)
}

/// Removes a path from the registered ones, because the file was renamed or has been removed.
pub fn forget(path: &Path) {
    if let Some(unfinished) = unfinished().as_mut() {
        unfinished.paths.retain(|unfinished| unfinished != path);
    }
}

/// Sets the message to print when a signal ends the process. It replaces an earlier message.
///
/// # Errors
/// If the process cannot handle signals.
pub fn set_message(words: &'static str) -> io::Result<()> {
    waited_for(&mut unfinished())?.words = Some(words);
    Ok(())
}

/// Runs `step` so that no signal interrupts it. A signal that arrives before the step ends the process. A
/// signal that arrives during the step waits for its end. If the step succeeds, the interruption prints
/// `words`.
///
/// `step` must not call [`create_removable`] or [`forget`]: they would wait forever for the lock that this
/// function holds.
///
/// # Errors
/// The error of `step`, if it fails.
pub fn run_uninterrupted<T, E>(step: impl FnOnce() -> Result<T, E>, words: &'static str) -> Result<T, E> {
    let mut unfinished = unfinished();
    let done = step()?;
    if let Some(unfinished) = unfinished.as_mut() {
        unfinished.words = Some(words);
    }
    Ok(done)
}

fn waited_for(unfinished: &mut Option<Unfinished>) -> io::Result<&mut Unfinished> {
    match unfinished {
        Some(unfinished) => Ok(unfinished),
        none => {
            wait()?;
            Ok(none.insert(Unfinished::default()))
        }
    }
}

/// Starts to handle signals: a background thread waits for the first one.
fn wait() -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    // The system reports the inherited setting only until the process sets a handler.
    let keeps_on = ignores_hang_up();
    let (mut interrupt, mut terminate, mut hang_up) = {
        let _inside = runtime.enter();
        let (interrupt, terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
        (interrupt, terminate, signal(SignalKind::hangup())?)
    };
    thread::Builder::new().name("interrupt".to_owned()).spawn(move || {
        runtime.block_on(async {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
                _ = hang_up.recv(), if !keeps_on => {}
            }
        });
        // Holds the lock until the process ends, so that no other thread creates a file.
        let unfinished = unfinished();
        for unfinished in unfinished.iter() {
            unfinished.paths.iter().for_each(|path| remove(path));
            if let Some(words) = unfinished.words {
                // If standard error fails, there is no other place to report that.
                let _ = writeln!(io::stderr(), "doppel: {words}");
            }
        }
        std::process::exit(INTERRUPTED);
    })?;
    Ok(())
}

/// Whether the process ignores SIGHUP, for example because `nohup` started it. False if the system does not
/// tell.
fn ignores_hang_up() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    // Signal n is bit n - 1.
    mask.is_some_and(|mask| mask >> (SignalKind::hangup().as_raw_value() - 1) & 1 == 1)
}

fn unfinished() -> MutexGuard<'static, Option<Unfinished>> {
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
    eprintln!("doppel: cannot remove {}; remove it by hand", path.display());
}
