//! Number of cores, and processor time. Unlike elapsed time, processor time shows the cost of work even if
//! other programs run at the same time.

use std::num::NonZero;
use std::thread;

use rustix::time::{ClockId, clock_gettime};

/// Number of cores that this process may use, at least one.
#[must_use]
pub fn cores() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get)
}

/// Seconds that all threads of this process have spent on processors so far, including threads that have
/// ended.
#[must_use]
pub fn seconds() -> f64 {
    read(ClockId::ProcessCPUTime)
}

/// Seconds that this thread has spent on processors so far.
pub fn thread_seconds() -> f64 {
    read(ClockId::ThreadCPUTime)
}

fn read(clock: ClockId) -> f64 {
    let spent = clock_gettime(clock);
    spent.tv_sec as f64 + spent.tv_nsec as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn work_of_a_thread_that_has_ended_counts() {
        let before = seconds();
        let work = || {
            let (begin, mut number) = (Instant::now(), 1_u64);
            while begin.elapsed().as_millis() < 100 {
                number = std::hint::black_box(number.wrapping_mul(3));
            }
        };
        thread::spawn(work).join().unwrap();
        // Other programs may have used most of the processor meanwhile.
        assert!(seconds() - before > 0.002);
    }
}
