//! Interruption by a signal: removes the temporary directory and the unfinished file of the run, and says a last word.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};

/// What a shell calls a program that SIGINT ended.
const INTERRUPTED: i32 = 130;
/// The engine goes on writing while its directory is removed, so one try may not be enough.
const TRIES: usize = 20;

/// What an interruption finds.
#[derive(Debug, Default)]
struct Unfinished {
    /// To be removed.
    paths: Vec<PathBuf>,
    /// To be said.
    words: Option<&'static str>,
}

/// None before signals are waited for.
static UNFINISHED: Mutex<Option<Unfinished>> = Mutex::new(None);

/// Makes a file or directory that is removed, if it is still there, when SIGINT, SIGTERM or SIGHUP ends
/// the process, which they do from now on. There is no moment in which it would be forgotten.
///
/// # Errors
/// When signals cannot be waited for, or what `make` fails with.
pub fn removable<T: AsRef<Path>>(make: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let mut unfinished = unfinished();
    let unfinished = waited_for(&mut unfinished)?;
    let made = make()?;
    unfinished.paths.push(made.as_ref().to_owned());
    Ok(made)
}

/// Forgets what was made, because it has another name now, or has gone.
pub fn forget(path: &Path) {
    if let Some(unfinished) = unfinished().as_mut() {
        unfinished.paths.retain(|unfinished| unfinished != path);
    }
}

/// Says `words` when one of these signals ends the process.
///
/// # Errors
/// When signals cannot be waited for.
pub fn announce(words: &'static str) -> io::Result<()> {
    waited_for(&mut unfinished())?.words = Some(words);
    Ok(())
}

/// Takes a step that no interruption falls into: one that comes before it ends the process, and one that comes meanwhile waits for its end, and
/// says `words`. Nothing is made [removable](removable) or [forgotten](forget) in it.
///
/// # Errors
/// What `step` fails with.
pub fn kept_out<T, E>(step: impl FnOnce() -> Result<T, E>, words: &'static str) -> Result<T, E> {
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

/// Waits for a signal in the background.
fn wait() -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    // This is known only until a handler is set.
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
        // Held to the end, so that nothing more is made.
        let unfinished = unfinished();
        for unfinished in unfinished.iter() {
            unfinished.paths.iter().for_each(|path| remove(path));
            if let Some(words) = unfinished.words {
                // If stderr cannot be written, there is no other place to say it.
                let _ = writeln!(io::stderr(), "doppel: {words}");
            }
        }
        std::process::exit(INTERRUPTED);
    })?;
    Ok(())
}

/// Whether the process was started by `nohup` or the like. Where the system does not say, it was not.
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
    eprintln!("doppel: {} could not be removed", path.display());
}
