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

/// For whom a thread gives way where all processors are busy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GiveWay {
    /// Those that answer questions come first; it gets about half of the time that one of them gets.
    ToAnswers = 3,
    /// All others come first; it gets about a tenth. For work that nobody waits for from one millisecond to the next.
    ToAll = 10,
}

/// Has the calling thread give way from now on. Does nothing but on Linux, where alone a thread has a niceness of its own.
pub fn give_way(way: GiveWay) {
    #[cfg(target_os = "linux")]
    // Without a process it is the calling thread: setpriority(2), "C library/kernel differences".
    if let Err(error) = rustix::process::setpriority_process(None, way as i32) {
        tracing::debug!(%error, "a thread keeps its priority");
    }
    #[cfg(not(target_os = "linux"))]
    let _ = way;
}

#[cfg(test)]
mod tests {
    #[test]
    #[cfg(target_os = "linux")]
    fn a_thread_gives_way_alone() {
        let niceness = || rustix::process::getpriority_process(None).unwrap();
        let own = niceness();
        for way in [super::GiveWay::ToAnswers, super::GiveWay::ToAll] {
            let other = std::thread::spawn(move || {
                super::give_way(way);
                niceness()
            });
            // One that was started with more keeps it.
            assert_eq!(other.join().unwrap(), own.max(way as i32));
        }
        assert_eq!(niceness(), own);
    }
}
