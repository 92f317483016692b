//! Reports of readers about their progress: the last report of each reader.
//!
//! Reports may be lost, late, or repeated. Therefore each report is complete in itself, and a reader repeats
//! its report.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;

/// Maximum number of readers whose reports are stored. Reports of further readers are ignored. A log has only
/// a few readers.
const READERS_MAX: usize = 64;

/// Maximum length of a reader's name and of a report, each in bytes. Longer reports are ignored.
const BYTES_MAX: usize = 512;

/// The last report of each reader.
#[derive(Debug, Default)]
pub(crate) struct Reports {
    last: Mutex<BTreeMap<String, Bytes>>,
    changed: Condvar,
}

impl Reports {
    /// Stores the last report of a reader.
    pub(crate) fn put(&self, reader: &str, report: Bytes) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let has_room = last.len() < READERS_MAX || last.contains_key(reader);
        if !has_room || reader.len().max(report.len()) > BYTES_MAX {
            return;
        }
        last.insert(reader.to_owned(), report);
        self.changed.notify_all();
    }

    /// Waits at most `limit` until a stored report satisfies `is_wanted`. Returns whether there is such a
    /// report.
    pub(crate) fn wait(&self, limit: Duration, is_wanted: &dyn Fn(&str, &Bytes) -> bool) -> bool {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let is_satisfied =
            |last: &BTreeMap<String, Bytes>| last.iter().any(|(reader, report)| is_wanted(reader, report));
        let waited = self.changed.wait_timeout_while(last, limit, |last| !is_satisfied(last));
        is_satisfied(&waited.unwrap_or_else(PoisonError::into_inner).0)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::thread;

    use super::*;

    fn has_report(reports: &Reports, limit: Duration, reader: &str, wanted: &'static str) -> bool {
        reports.wait(limit, &|by, report| by == reader && *report == wanted)
    }

    #[test]
    fn the_last_report_of_each_reader_counts_and_wakes_a_waiting_caller() {
        let reports = Arc::new(Reports::default());
        for (reader, report) in [("a", "1"), ("b", "1"), ("a", "2")] {
            reports.put(reader, Bytes::from_static(report.as_bytes()));
        }
        assert!(
            has_report(&reports, Duration::ZERO, "a", "2") && has_report(&reports, Duration::ZERO, "b", "1")
        );
        assert!(!has_report(&reports, Duration::from_millis(1), "a", "1"));
        let waits = {
            let reports = Arc::clone(&reports);
            thread::spawn(move || has_report(&reports, Duration::from_secs(30), "b", "3"))
        };
        reports.put("b", Bytes::from_static(b"3"));
        assert!(waits.join().unwrap());
    }

    #[test]
    fn reports_of_too_many_readers_are_ignored() {
        let reports = Reports::default();
        let long = "x".repeat(BYTES_MAX + 1);
        reports.put(&long, Bytes::new());
        (0..READERS_MAX + 9).for_each(|reader| reports.put(&reader.to_string(), Bytes::new()));
        assert_eq!(reports.last.lock().unwrap().len(), READERS_MAX);
        reports.put("0", Bytes::from_static(b"still"));
        assert!(has_report(&reports, Duration::ZERO, "0", "still"));
    }
}
