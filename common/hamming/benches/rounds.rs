//! Compares the speed of several methods. Each round measures each method once, in processor time of all
//! threads.
//!
//! Other load on the machine then affects all methods equally. Such load takes cache and clock frequency, but
//! its processor time does not count.

use std::hint::black_box;

use rustix::time::{ClockId, clock_gettime};

/// A method to measure. `work` performs some items of work and returns the number of items.
pub(crate) struct BenchCase<'a> {
    pub(crate) name: String,
    pub(crate) work: Box<dyn FnMut() -> usize + 'a>,
}

impl<'a> BenchCase<'a> {
    pub(crate) fn new(name: impl Into<String>, work: impl FnMut() -> usize + 'a) -> Self {
        Self { name: name.into(), work: Box::new(work) }
    }
}

/// Prints the nanoseconds per item of each method: the best round, the median, and the ratio of the median to
/// the median of the first method.
pub(crate) fn measure(title: &str, rounds: usize, mut cases: Vec<BenchCase<'_>>) {
    let mut times = vec![Vec::new(); cases.len()];
    // The first round warms up the caches and does not count.
    for round in 0..=rounds {
        for (case, times) in cases.iter_mut().zip(&mut times) {
            let before = nanoseconds();
            let items = black_box((case.work)());
            if round > 0 {
                times.push((nanoseconds() - before) / items as f64);
            }
        }
    }
    println!("\n{title}\n{:44} {:>12} {:>12} {:>8} {:>12}", "", "best ns", "median ns", "ratio", "million/s");
    let mut first = None;
    for (case, mut times) in cases.iter().zip(times) {
        times.sort_by(f64::total_cmp);
        let median = times[times.len() / 2];
        let ratio = median / *first.get_or_insert(median);
        println!("{:44} {:12.1} {median:12.1} {ratio:8.2} {:12.1}", case.name, times[0], 1e3 / median);
    }
}

fn nanoseconds() -> f64 {
    let spent = clock_gettime(ClockId::ProcessCPUTime);
    spent.tv_sec as f64 * 1e9 + spent.tv_nsec as f64
}
