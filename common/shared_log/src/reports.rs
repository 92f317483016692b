//! What the readers of a log have reported to have of it: the last word of each.
//!
//! Reports are news, which may be lost, late, or come twice. So one says all by itself, and a reader makes it again.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;

/// Readers that are listened to. A log has a few.
const READERS_MAX: usize = 64;

/// The longest name of a reader, and the longest report.
const BYTES_MAX: usize = 512;

/// The reports.
#[derive(Debug, Default)]
pub(crate) struct Reports {
    last: Mutex<BTreeMap<String, Bytes>>,
    came: Condvar,
}

impl Reports {
    /// Takes a report.
    pub(crate) fn put(&self, reader: &str, report: Bytes) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let has_room = last.len() < READERS_MAX || last.contains_key(reader);
        if !has_room || reader.len().max(report.len()) > BYTES_MAX {
            return;
        }
        last.insert(reader.to_owned(), report);
        self.came.notify_all();
    }

    /// Waits until there is one that is wanted, no longer than `limit`; whether there is.
    pub(crate) fn wait(&self, limit: Duration, is_wanted: &dyn Fn(&str, &Bytes) -> bool) -> bool {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let is_there =
            |last: &BTreeMap<String, Bytes>| last.iter().any(|(reader, report)| is_wanted(reader, report));
        let waited = self.came.wait_timeout_while(last, limit, |last| !is_there(last));
        is_there(&waited.unwrap_or_else(PoisonError::into_inner).0)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::thread;

    use super::*;

    fn is(reports: &Reports, limit: Duration, reader: &str, wanted: &'static str) -> bool {
        reports.wait(limit, &|by, report| by == reader && *report == wanted)
    }

    #[test]
    fn the_last_report_of_each_reader_counts_and_whoever_waits_is_woken() {
        let reports = Arc::new(Reports::default());
        for (reader, report) in [("a", "1"), ("b", "1"), ("a", "2")] {
            reports.put(reader, Bytes::from_static(report.as_bytes()));
        }
        assert!(is(&reports, Duration::ZERO, "a", "2") && is(&reports, Duration::ZERO, "b", "1"));
        assert!(!is(&reports, Duration::from_millis(1), "a", "1"));
        let waits = {
            let reports = Arc::clone(&reports);
            thread::spawn(move || is(&reports, Duration::from_secs(30), "b", "3"))
        };
        reports.put("b", Bytes::from_static(b"3"));
        assert!(waits.join().unwrap());
    }

    #[test]
    fn no_more_readers_are_kept_than_the_limit() {
        let reports = Reports::default();
        let long = "x".repeat(BYTES_MAX + 1);
        reports.put(&long, Bytes::new());
        (0..READERS_MAX + 9).for_each(|reader| reports.put(&reader.to_string(), Bytes::new()));
        assert_eq!(reports.last.lock().unwrap().len(), READERS_MAX);
        reports.put("0", Bytes::from_static(b"still"));
        assert!(is(&reports, Duration::ZERO, "0", "still"));
    }
}
