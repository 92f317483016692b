//! Threads without which a process cannot go on, and threads that give way to those that answer.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread::{Builder, JoinHandle};
use std::{io, process};

/// Starts a thread that others rely on. When it panics, the process ends: its state may be half changed, and a restart
/// makes it anew from what is durable.
///
/// # Errors
/// When the operating system gives no thread.
pub fn spawn_vital(name: String, work: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    Builder::new().name(name).spawn(|| {
        if catch_unwind(AssertUnwindSafe(work)).is_err() {
            process::abort();
        }
    })
}

/// The niceness of a thread that gives way. With it a thread has about a tenth of the weight of one with none.
#[cfg(target_os = "linux")]
const NICENESS: i32 = 10;

/// Has the calling thread give way to those of the usual priority: where all processors are busy, it gets about a tenth
/// of the time that one of them gets. For work that nobody waits for from one millisecond to the next. Does nothing but on
/// Linux, where alone a thread has a niceness of its own.
pub fn give_way() {
    #[cfg(target_os = "linux")]
    // Without a process it is the calling thread: setpriority(2), "C library/kernel differences".
    if let Err(error) = rustix::process::setpriority_process(None, NICENESS) {
        tracing::debug!(%error, "a thread keeps its priority");
    }
}

#[cfg(test)]
mod tests {
    #[test]
    #[cfg(target_os = "linux")]
    fn a_thread_gives_way_alone() {
        let niceness = || rustix::process::getpriority_process(None).unwrap();
        let own = niceness();
        let other = std::thread::spawn(move || {
            super::give_way();
            niceness()
        });
        // One that was started with more keeps it.
        assert_eq!(other.join().unwrap(), own.max(super::NICENESS));
        assert_eq!(niceness(), own);
    }
}
