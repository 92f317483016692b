//! A gate between commits that read rows and the batches of the thread that moves rows.
//!
//! sled serves no read while it applies a batch. A commit that reads one row after another could wait for a
//! batch at each read. A commit that must be short therefore pauses the mover between two batches, until it
//! has read everything.
//!
//! Invariants:
//! - No batch starts while a commit reads.
//! - A commit waits for at most one batch.
//! - A waiting batch runs between two commits that read.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

#[derive(Default)]
pub(super) struct BatchGate {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Number of commits that read now.
    reading: usize,
    /// Whether a batch is under way.
    writing: bool,
    /// Number of batches that wait for a commit.
    waiting: usize,
    /// Whether a commit has ended while a batch waited, so that the batch is next.
    due: bool,
}

/// While this exists, no batch starts. The holder must not wait for the mover.
pub(crate) struct BatchPause(Arc<BatchGate>);

impl BatchGate {
    /// Waits for the batch that is under way or next, then prevents further batches.
    pub(super) fn pause(self: &Arc<Self>) -> BatchPause {
        let ended = self.changed.wait_while(self.state(), |state| state.writing || state.due);
        ended.unwrap_or_else(PoisonError::into_inner).reading += 1;
        BatchPause(Arc::clone(self))
    }

    /// Runs a batch as soon as no commit reads.
    pub(super) fn run_batch<T>(&self, put: impl FnOnce() -> T) -> T {
        let mut state = self.state();
        state.waiting += 1;
        let mut free =
            self.changed.wait_while(state, |state| state.reading > 0).unwrap_or_else(PoisonError::into_inner);
        free.waiting -= 1;
        (free.writing, free.due) = (true, false);
        drop(free);
        let ends = RunningBatch(self);
        let done = put();
        drop(ends);
        done
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for BatchPause {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.reading -= 1;
        state.due = state.reading == 0 && state.waiting > 0;
        drop(state);
        self.0.changed.notify_all();
    }
}

/// A batch that is under way. Dropping this ends the batch, also after a panic of the store.
struct RunningBatch<'t>(&'t BatchGate);

impl Drop for RunningBatch<'_> {
    fn drop(&mut self) {
        self.0.state().writing = false;
        self.0.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use std::thread;

    use super::*;

    #[test]
    fn no_batch_runs_while_a_commit_reads() {
        let gate = Arc::new(BatchGate::default());
        let (writing, writes, done) = (AtomicBool::new(false), AtomicUsize::new(0), AtomicBool::new(false));
        thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(Ordering::SeqCst) {
                    gate.run_batch(|| {
                        writing.store(true, Ordering::SeqCst);
                        thread::yield_now();
                        writing.store(false, Ordering::SeqCst);
                        writes.fetch_add(1, Ordering::SeqCst);
                    });
                }
            });
            for _ in 0..2_000 {
                let pause = gate.pause();
                let before = writes.load(Ordering::SeqCst);
                for _ in 0..3 {
                    assert!(!writing.load(Ordering::SeqCst));
                    thread::yield_now();
                }
                assert_eq!(writes.load(Ordering::SeqCst), before);
                drop(pause);
            }
            done.store(true, Ordering::SeqCst);
        });
        let before = writes.load(Ordering::SeqCst);
        gate.run_batch(|| writes.fetch_add(1, Ordering::SeqCst));
        assert_eq!(writes.load(Ordering::SeqCst), before + 1);
    }

    #[test]
    fn a_waiting_batch_runs_between_two_commits() {
        let gate = Arc::new(BatchGate::default());
        let writes = AtomicUsize::new(0);
        thread::scope(|scope| {
            let first = gate.pause();
            scope.spawn(|| gate.run_batch(|| writes.fetch_add(1, Ordering::SeqCst)));
            while gate.state().waiting == 0 {
                thread::yield_now();
            }
            drop(first);
            // The second commit asks at once, but the batch comes first.
            let second = gate.pause();
            assert_eq!(writes.load(Ordering::SeqCst), 1);
            drop(second);
        });
    }

    #[test]
    fn a_batch_that_panics_is_over() {
        let gate = Arc::new(BatchGate::default());
        let panicked = thread::scope(|scope| {
            scope.spawn(|| gate.run_batch(|| std::panic::resume_unwind(Box::new("broken")))).join().is_err()
        });
        assert!(panicked);
        drop(gate.pause());
    }
}
