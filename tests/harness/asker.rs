//! Sends status queries in the background of a test, and measures their latency.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::Server;

/// The pause between an answer and the next query.
const PAUSE: Duration = Duration::from_millis(2);

/// Repeatedly queries the status of pages.
pub struct Asker {
    stop: Arc<AtomicBool>,
    thread: thread::JoinHandle<Vec<Duration>>,
}

impl Asker {
    /// Queries the page `page(n)` for n = 0, 1, 2, ... All of these pages must be `unique`.
    pub fn start(server: &Server, page: impl Fn(u64) -> String + Send + 'static) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (url, stopped) = (server.url.clone(), Arc::clone(&stop));
        let thread = thread::spawn(move || {
            let client = reqwest::blocking::Client::new();
            let mut times = Vec::new();
            while !stopped.load(Ordering::Relaxed) {
                let page = page(times.len() as u64);
                let began = Instant::now();
                let answer = client.get(format!("{url}/v1/status")).query(&[("url", &page)]).send().unwrap();
                assert_eq!(answer.status(), 200);
                let answer: Value = answer.json().unwrap();
                times.push(began.elapsed());
                assert_eq!(answer["status"], "unique", "{answer}");
                thread::sleep(PAUSE);
            }
            times
        });
        Self { stop, thread }
    }

    /// Stops, and returns the 99th percentile of the latencies, in milliseconds.
    pub fn stop(self) -> f64 {
        self.stop.store(true, Ordering::Relaxed);
        let mut times = self.thread.join().unwrap();
        times.sort_unstable();
        times[times.len() * 99 / 100].as_secs_f64() * 1_000.0
    }
}
