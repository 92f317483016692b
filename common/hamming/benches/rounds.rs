//! Measures ways beside each other: round after round each way once, in processor time of all threads.
//!
//! What else runs on the machine then disturbs all ways alike, and takes cache and frequency, but not time.

use std::hint::black_box;

use rustix::time::{ClockId, clock_gettime};

/// A way to be measured: its name, and what does some items of work and returns their number.
pub(crate) struct Way<'a> {
    pub(crate) name: String,
    pub(crate) work: Box<dyn FnMut() -> usize + 'a>,
}

impl<'a> Way<'a> {
    pub(crate) fn new(name: impl Into<String>, work: impl FnMut() -> usize + 'a) -> Self {
        Self { name: name.into(), work: Box::new(work) }
    }
}

/// Prints the nanoseconds of an item for each way: the best round, the median, and the median as a ratio to the first way.
pub(crate) fn measure(title: &str, rounds: usize, mut ways: Vec<Way<'_>>) {
    let mut times = vec![Vec::new(); ways.len()];
    // The first round warms up and does not count.
    for round in 0..=rounds {
        for (way, times) in ways.iter_mut().zip(&mut times) {
            let before = nanoseconds();
            let items = black_box((way.work)());
            if round > 0 {
                times.push((nanoseconds() - before) / items as f64);
            }
        }
    }
    println!("\n{title}\n{:44} {:>12} {:>12} {:>8} {:>12}", "", "best ns", "median ns", "ratio", "million/s");
    let mut first = None;
    for (way, mut times) in ways.iter().zip(times) {
        times.sort_by(f64::total_cmp);
        let median = times[times.len() / 2];
        let ratio = median / *first.get_or_insert(median);
        println!("{:44} {:12.1} {median:12.1} {ratio:8.2} {:12.1}", way.name, times[0], 1e3 / median);
    }
}

fn nanoseconds() -> f64 {
    let spent = clock_gettime(ClockId::ProcessCPUTime);
    spent.tv_sec as f64 * 1e9 + spent.tv_nsec as f64
}
