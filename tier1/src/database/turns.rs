//! Turns of a commit that reads rows and of the thread that moves them.
//!
//! The store serves no read while it takes a batch of rows, and whoever reads one row after the other would wait for a batch at each.
//! A commit that is to be short has the mover wait between two batches until it has read everything.
//!
//! Invariants: a batch is not begun while a commit reads; a commit waits for one batch at most; and between two commits that read a
//! batch that waits has its turn.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

#[derive(Default)]
pub(super) struct Turns {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Commits that read.
    reading: usize,
    /// A batch is under way.
    writing: bool,
    /// Batches that wait for a commit.
    waiting: usize,
    /// A commit has ended for which a batch waits: it is the batch's turn.
    due: bool,
}

/// While it is there, no rows are moved. Who holds it does not wait for the mover.
pub(crate) struct Undisturbed(Arc<Turns>);

impl Turns {
    /// Waits for the end of the batch whose turn it is.
    pub(super) fn read(self: &Arc<Self>) -> Undisturbed {
        let ended = self.changed.wait_while(self.state(), |state| state.writing || state.due);
        ended.unwrap_or_else(PoisonError::into_inner).reading += 1;
        Undisturbed(Arc::clone(self))
    }

    /// Puts rows in the store once no commit reads.
    pub(super) fn write<T>(&self, put: impl FnOnce() -> T) -> T {
        let mut state = self.state();
        state.waiting += 1;
        let mut free =
            self.changed.wait_while(state, |state| state.reading > 0).unwrap_or_else(PoisonError::into_inner);
        free.waiting -= 1;
        (free.writing, free.due) = (true, false);
        drop(free);
        let ends = Writing(self);
        let done = put();
        drop(ends);
        done
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Undisturbed {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.reading -= 1;
        state.due = state.reading == 0 && state.waiting > 0;
        drop(state);
        self.0.changed.notify_all();
    }
}

/// A batch, which ends also by a panic of the store.
struct Writing<'t>(&'t Turns);

impl Drop for Writing<'_> {
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
    fn nothing_is_written_while_somebody_reads() {
        let turns = Arc::new(Turns::default());
        let (writing, writes, done) = (AtomicBool::new(false), AtomicUsize::new(0), AtomicBool::new(false));
        thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(Ordering::SeqCst) {
                    turns.write(|| {
                        writing.store(true, Ordering::SeqCst);
                        thread::yield_now();
                        writing.store(false, Ordering::SeqCst);
                        writes.fetch_add(1, Ordering::SeqCst);
                    });
                }
            });
            for _ in 0..2_000 {
                let undisturbed = turns.read();
                let before = writes.load(Ordering::SeqCst);
                for _ in 0..3 {
                    assert!(!writing.load(Ordering::SeqCst));
                    thread::yield_now();
                }
                assert_eq!(writes.load(Ordering::SeqCst), before);
                drop(undisturbed);
            }
            done.store(true, Ordering::SeqCst);
        });
        let before = writes.load(Ordering::SeqCst);
        turns.write(|| writes.fetch_add(1, Ordering::SeqCst));
        assert_eq!(writes.load(Ordering::SeqCst), before + 1);
    }

    #[test]
    fn a_batch_has_its_turn_between_two_commits() {
        let turns = Arc::new(Turns::default());
        let writes = AtomicUsize::new(0);
        thread::scope(|scope| {
            let first = turns.read();
            scope.spawn(|| turns.write(|| writes.fetch_add(1, Ordering::SeqCst)));
            while turns.state().waiting == 0 {
                thread::yield_now();
            }
            drop(first);
            // Though it asks at once.
            let second = turns.read();
            assert_eq!(writes.load(Ordering::SeqCst), 1);
            drop(second);
        });
    }

    #[test]
    fn a_batch_that_panics_ends() {
        let turns = Arc::new(Turns::default());
        let panicked = thread::scope(|scope| {
            scope.spawn(|| turns.write(|| std::panic::resume_unwind(Box::new("broken")))).join().is_err()
        });
        assert!(panicked);
        drop(turns.read());
    }
}
