//! A log in memory with the faults of a real log: it refuses, does not answer, answers too late, and loses
//! its tail.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;

use crate::log::{AppendError, Extent, LogEntry, LogError, Sequence, SharedLog};
use crate::reports::Reports;

/// A simulated fault of a call. Each append takes the first planned fault. A read takes the first planned
/// fault only if the fault is [`Away`](Self::Away). Other calls take no fault. A call that takes no fault
/// behaves as in a real log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFault {
    /// An append is carried out, and its answer is lost.
    AnswerLost,
    /// An append is lost on its way to the log.
    CallLost,
    /// An append is delayed until after the next append or read, and has no answer.
    CallLate,
    /// An append or a read fails before it is sent.
    Away,
    /// An append is carried out, but the answer states the sequence number after the entry's own.
    Misplaced,
}

/// A log in memory. Clones share one log.
#[derive(Debug, Clone, Default)]
pub struct MemoryLog(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    grew: Condvar,
    reports: Reports,
}

#[derive(Debug, Default)]
struct State {
    /// Sequence number before the first remaining entry.
    trimmed: u64,
    entries: VecDeque<Bytes>,
    faults: VecDeque<LogFault>,
    /// Appends that arrive after the next append or read.
    late_appends: Vec<(Sequence, Bytes)>,
    /// Last entry that the lagging leader shows; `None` if the leader shows all entries.
    shown_through: Option<Sequence>,
    is_missing: bool,
    bytes_max: Option<u64>,
    /// Announced entries: correct ones, and entries that the log has lost since. Some announcements are
    /// missing.
    announced: BTreeMap<u64, Bytes>,
    /// Number of reports that will be lost.
    reports_lost: u32,
}

/// Name of the log in errors.
const NAME: &str = "memory";

impl State {
    fn end(&self) -> Sequence {
        Sequence(self.trimmed + self.entries.len() as u64)
    }

    /// Returns the last entry that the leader shows.
    fn shown(&self) -> Sequence {
        self.shown_through.map_or(self.end(), |behind| behind.min(self.end()))
    }

    fn append(&mut self, expected: Sequence, entry: &Bytes) -> Result<Sequence, AppendError> {
        if expected != self.end() || self.shown() != self.end() {
            return Err(AppendError::Refused);
        }
        let bytes = self.entries.iter().map(Bytes::len).sum::<usize>() + entry.len();
        if self.bytes_max.is_some_and(|max| bytes as u64 > max) {
            let (log, why) = (NAME.to_owned(), "it has reached its size limit".to_owned());
            return Err(AppendError::Failed(LogError::Full { log, why }));
        }
        self.entries.push_back(entry.clone());
        // Reusing a sequence number sends no announcement.
        if self.announced.insert(self.end().0, entry.clone()).is_some() {
            self.announced.remove(&self.end().0);
        }
        Ok(self.end())
    }

    fn check(&self) -> Result<(), LogError> {
        if self.is_missing { Err(LogError::Missing { log: NAME.to_owned() }) } else { Ok(()) }
    }

    /// Carries out the delayed appends. An append whose position is taken by then adds nothing.
    fn deliver_late_appends(&mut self) {
        for (expected, entry) in std::mem::take(&mut self.late_appends) {
            // No caller waits for the answer.
            let _ = self.append(expected, &entry);
        }
    }
}

fn unavailable(why: &str) -> LogError {
    LogError::Unavailable { log: NAME.to_owned(), why: why.to_owned() }
}

impl MemoryLog {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Plans faults for the next calls, after the faults that are already planned.
    pub fn plan(&self, faults: impl IntoIterator<Item = LogFault>) {
        self.state().faults.extend(faults);
    }

    /// Discards the planned faults and delivers delayed appends.
    pub fn heal(&self) {
        let mut state = self.state();
        state.faults.clear();
        state.deliver_late_appends();
        self.0.grew.notify_all();
    }

    /// Loses the entries after a position. Real servers lose entries if they acknowledge before writing to
    /// disk, and then lose power.
    pub fn lose_tail(&self, after: Sequence) {
        let mut state = self.state();
        let kept = after.0.saturating_sub(state.trimmed);
        state.entries.truncate(usize::try_from(kept).unwrap_or(usize::MAX));
        // Delayed appends are lost as well.
        state.late_appends.clear();
    }

    /// Loses the next `reports` reports of readers.
    pub fn lose_reports(&self, reports: u32) {
        self.state().reports_lost = reports;
    }

    /// Sets the size in bytes above which the log refuses entries.
    pub fn set_bytes_max(&self, bytes_max: Option<u64>) {
        self.state().bytes_max = bytes_max;
    }

    /// Simulates a leader that lags behind: it shows the entries up to `behind` and refuses appends. `None`
    /// means that it has caught up.
    pub fn lag(&self, behind: Option<Sequence>) {
        self.state().shown_through = behind;
    }

    /// Withdraws the announcement of an entry.
    pub fn lose_news(&self, of: Sequence) {
        self.state().announced.remove(&of.0);
    }

    /// Makes the log disappear or reappear.
    pub fn set_missing(&self, is_missing: bool) {
        self.state().is_missing = is_missing;
    }
}

impl SharedLog for MemoryLog {
    fn append(&self, expected: Sequence, entry: &Bytes) -> Result<Sequence, AppendError> {
        let mut state = self.state();
        state.check()?;
        let fault = state.faults.pop_front();
        let answer = match fault {
            Some(LogFault::Away) => Err(AppendError::Failed(unavailable("the simulated log is away"))),
            Some(LogFault::CallLost) => {
                Err(AppendError::Unknown(unavailable("the simulated answer was lost")))
            }
            Some(LogFault::CallLate) => {
                state.deliver_late_appends();
                state.late_appends.push((expected, entry.clone()));
                return Err(AppendError::Unknown(unavailable("the simulated answer was lost")));
            }
            Some(LogFault::AnswerLost) => {
                let _ = state.append(expected, entry);
                Err(AppendError::Unknown(unavailable("the simulated answer was lost")))
            }
            Some(LogFault::Misplaced) => state.append(expected, entry).map(Sequence::next),
            None => state.append(expected, entry),
        };
        state.deliver_late_appends();
        self.0.grew.notify_all();
        answer
    }

    fn read(&self, after: Sequence, bytes: usize) -> Result<Vec<LogEntry>, LogError> {
        let mut state = self.state();
        state.check()?;
        if state.faults.front() == Some(&LogFault::Away) {
            state.faults.pop_front();
            return Err(unavailable("the simulated log is away"));
        }
        if after.0 < state.trimmed {
            let (log, first) = (NAME.to_owned(), Sequence(state.trimmed + 1));
            return Err(LogError::Trimmed { log, after, first });
        }
        let (mut entries, mut read) = (Vec::new(), 0);
        let skipped = usize::try_from(after.0 - state.trimmed).unwrap_or(usize::MAX);
        for (sequence, bytes_of) in (after.0 + 1..).zip(state.entries.iter().skip(skipped)) {
            if sequence > state.shown().0 || read >= bytes && !entries.is_empty() {
                break;
            }
            read += bytes_of.len();
            entries.push(LogEntry { sequence: Sequence(sequence), bytes: bytes_of.clone() });
        }
        state.deliver_late_appends();
        Ok(entries)
    }

    fn told(&self, after: Sequence) -> Vec<LogEntry> {
        let state = self.state();
        let next = (after.0 + 1..).zip(state.announced.range(after.0 + 1..));
        let next = next.take_while(|(place, (sequence, _))| place == *sequence);
        next.map(|(place, (_, bytes))| LogEntry { sequence: Sequence(place), bytes: bytes.clone() }).collect()
    }

    fn extent(&self) -> Result<Extent, LogError> {
        let state = self.state();
        state.check()?;
        let bytes = state.entries.iter().map(|entry| entry.len() as u64).sum();
        Ok(Extent { trimmed: Sequence(state.trimmed), end: state.shown(), bytes, bytes_max: state.bytes_max })
    }

    fn wait(&self, after: Sequence, limit: Duration) {
        let state = self.state();
        drop(self.0.grew.wait_timeout_while(state, limit, |state| state.end() <= after));
    }

    fn report(&self, reader: &str, report: &Bytes) {
        {
            let mut state = self.state();
            if state.reports_lost > 0 {
                state.reports_lost -= 1;
                return;
            }
        }
        self.0.reports.put(reader, report.clone());
    }

    fn await_report(&self, limit: Duration, is_wanted: &dyn Fn(&str, &Bytes) -> bool) -> bool {
        self.0.reports.wait(limit, is_wanted)
    }

    fn trim(&self, through: Sequence) -> Result<(), LogError> {
        let mut state = self.state();
        state.check()?;
        while state.trimmed < through.0 && state.entries.len() > 1 {
            state.entries.pop_front();
            state.trimmed += 1;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::append_surely;

    #[test]
    fn the_memory_log_conforms() {
        crate::conformance::run(&mut || MemoryLog::default());
    }

    #[test]
    fn a_late_append_arrives_after_the_next_call_if_its_position_is_free() {
        let log = MemoryLog::default();
        let [a, b] = ["a", "b"].map(|text| Bytes::from_static(text.as_bytes()));
        log.plan([LogFault::CallLate]);
        assert!(matches!(log.append(Sequence(0), &a), Err(AppendError::Unknown(_))));
        assert_eq!(log.read(Sequence(0), 100), Ok(Vec::new()));
        assert_eq!(log.end(), Ok(Sequence(1)));
        log.plan([LogFault::CallLate]);
        assert!(log.append(Sequence(1), &a).is_err());
        assert_eq!(log.append(Sequence(1), &b), Ok(Sequence(2)));
        assert_eq!(log.end(), Ok(Sequence(2)));
        let texts: Vec<Bytes> = log.read(Sequence(0), 100).unwrap().into_iter().map(|e| e.bytes).collect();
        assert_eq!(texts, [a, b]);
    }

    /// The refusal is due to the log's own earlier entry, which a lagging leader does not show.
    #[test]
    fn an_append_that_may_have_succeeded_is_unknown_and_not_refused() {
        let (log, entry) = (MemoryLog::default(), Bytes::from_static(b"a"));
        log.plan([LogFault::AnswerLost].into_iter().chain([LogFault::Away; 1_000]));
        let limit = Duration::from_millis(400);
        let appended = std::thread::scope(|scope| {
            let append = scope.spawn(|| append_surely(&log, Sequence(0), &entry, limit));
            while log.end() != Ok(Sequence(1)) {
                std::thread::yield_now();
            }
            log.lag(Some(Sequence(0)));
            log.heal();
            append.join().unwrap()
        });
        assert!(matches!(appended, Err(AppendError::Unknown(_))), "{appended:?}");
        log.lag(None);
        assert_eq!(append_surely(&log, Sequence(0), &entry, Duration::ZERO), Ok(Sequence(1)));
        let other = append_surely(&log, Sequence(0), &Bytes::from_static(b"b"), Duration::ZERO);
        assert_eq!(other, Err(AppendError::Refused));
    }

    #[test]
    fn an_append_that_may_still_succeed_is_unknown_and_not_failed() {
        let (log, entry) = (MemoryLog::default(), Bytes::from_static(b"a"));
        log.set_bytes_max(Some(0));
        let limit = Duration::from_secs(5);
        let full = append_surely(&log, Sequence(0), &entry, limit);
        assert!(matches!(full, Err(AppendError::Failed(LogError::Full { .. }))), "{full:?}");
        log.plan([LogFault::CallLate]);
        let unknown = append_surely(&log, Sequence(0), &entry, limit);
        assert!(matches!(unknown, Err(AppendError::Unknown(_))), "{unknown:?}");
    }

    #[test]
    fn the_log_loses_its_tail() {
        let log = MemoryLog::default();
        for place in 0..4 {
            log.append(Sequence(place), &Bytes::from(vec![place as u8])).unwrap();
        }
        log.trim(Sequence(1)).unwrap();
        log.lose_tail(Sequence(3));
        assert_eq!(log.end(), Ok(Sequence(3)));
        log.set_missing(true);
        assert_eq!(log.end(), Err(LogError::Missing { log: NAME.to_owned() }));
    }
}
