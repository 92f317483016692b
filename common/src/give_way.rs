//! Working threads make room for threads that answer.

use std::thread;

/// Called between two units of work, of at most about a millisecond each, by threads that work all the time: with all
/// cores busy, a question would wait for the end of somebody's time slice, which is several milliseconds.
pub fn give_way() {
    thread::yield_now();
}
