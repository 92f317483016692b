//! Starts threads that the process cannot run without, and lowers the priority of background threads.
//!
//! A panic in a vital thread must never leave the process running with half-changed state. [`spawn_vital`]
//! therefore aborts the process on a panic.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread::{Builder, JoinHandle};
use std::{io, process};

/// Starts a thread that other threads rely on. If `work` panics, the process aborts, because the thread's
/// state may be half changed. A restart rebuilds that state from what is durable.
///
/// # Errors
/// If the operating system cannot start a thread.
pub fn spawn_vital(name: String, work: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    Builder::new().name(name).spawn(|| {
        if catch_unwind(AssertUnwindSafe(work)).is_err() {
            process::abort();
        }
    })
}

/// How far [`lower_priority`] lowers the priority of a thread. The priority has an effect only while all
/// processors are busy. The number of each variant is the niceness of the thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoweredPriority {
    /// Threads that answer questions come first. This thread gets about half of the processor time of an
    /// answering thread.
    BelowAnswers = 3,
    /// All other threads come first. This thread gets about a tenth of the processor time of another thread.
    /// For background work, in which a delay of some milliseconds does no harm.
    BelowAll = 10,
}

/// Lowers the priority of the calling thread from now on. If the operating system refuses, the thread keeps
/// its present priority. Only Linux has a niceness for each thread; on other systems this function does
/// nothing.
pub fn lower_priority(priority: LoweredPriority) {
    #[cfg(target_os = "linux")]
    // Without a process id, `setpriority` acts on the calling thread: setpriority(2), "C library/kernel
    // differences".
    if let Err(error) = rustix::process::setpriority_process(None, priority as i32) {
        tracing::debug!(%error, "cannot lower the priority of a thread; it keeps its present priority");
    }
    #[cfg(not(target_os = "linux"))]
    let _ = priority;
}

#[cfg(test)]
mod tests {
    #[test]
    #[cfg(target_os = "linux")]
    fn lowering_the_priority_of_a_thread_affects_only_that_thread() {
        let niceness = || rustix::process::getpriority_process(None).unwrap();
        let own = niceness();
        for priority in [super::LoweredPriority::BelowAnswers, super::LoweredPriority::BelowAll] {
            let other = std::thread::spawn(move || {
                super::lower_priority(priority);
                niceness()
            });
            // A thread that started with a higher niceness keeps it.
            assert_eq!(other.join().unwrap(), own.max(priority as i32));
        }
        assert_eq!(niceness(), own);
    }
}
