//! The shared log of a range: an implementation for the simulation with the faults of a real log.
//!
//! The log refuses calls, loses calls and answers, is away for a while, and lets readers see entries that are
//! not acknowledged yet. An append without a waiting caller may land late, even if its place is taken: which
//! entries count must not depend on the comparison by the log. Like servers without power, the log also loses
//! its last entries together with the appends on their way.
//!
//! The log folds every entry that lands, so it knows which records count.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use bytes::Bytes;
use doppel_model::RangeId;
use doppel_protocol::LogPosition;
use doppel_shared_log::{AppendError, Extent, LogEntry, LogError, Sequence, SharedLog};
use doppel_tier1::Write;
use doppel_tier1::simulation::SimChain;

use super::random::Random;

/// The log. All clones share one log.
#[derive(Clone)]
pub(crate) struct SimLog(Arc<Shared>);

/// The log as one node reaches it.
pub(crate) struct LogConnection {
    log: SimLog,
    node: usize,
}

/// A node, and an action to run right before its next append.
type Rival = (usize, Box<dyn FnOnce() + Send>);

struct Shared {
    state: Mutex<State>,
    rival: Mutex<Option<Rival>>,
}

struct State {
    range: RangeId,
    entries: Vec<Bytes>,
    /// Number of entries that were acknowledged or read.
    visible: usize,
    /// Largest number of entries that the log ever had.
    longest: usize,
    /// Latest report of each reader.
    reports: BTreeMap<String, Bytes>,
    late: Vec<Late>,
    /// Number of next calls that get no answer.
    away: u32,
    /// One in this many calls fails; 0 for none.
    one_in: u64,
    random: Random,
    chain: SimChain,
    /// The records that count, by index.
    counted: BTreeMap<u64, LogPosition>,
    /// Numbers of the entries with which records end.
    ends: BTreeSet<usize>,
    /// A planted mistake: the node that continues before it knows the result of its append.
    hasty: Option<usize>,
}

/// An append whose caller no longer waits.
struct Late {
    by: usize,
    expected: Sequence,
    entry: Bytes,
    calls: u32,
    /// Whether it lands only if its place is free.
    is_compared: bool,
    /// Whether the node treats it as acknowledged.
    is_hasty: bool,
}

fn unavailable(why: &str) -> LogError {
    LogError::Unavailable { log: "simulated".to_owned(), why: why.to_owned() }
}

impl State {
    fn end(&self) -> Sequence {
        Sequence(self.entries.len() as u64)
    }

    fn push(&mut self, entry: &Bytes) {
        self.entries.push(entry.clone());
        self.longest = self.longest.max(self.entries.len());
        if let Some(position) = self.chain.fold(&LogEntry { sequence: self.end(), bytes: entry.clone() }) {
            self.counted.insert(position.index, position);
            self.ends.insert(self.entries.len());
        }
    }

    fn put(&mut self, expected: Sequence, entry: &Bytes) -> Result<Sequence, AppendError> {
        if expected != self.end() {
            return Err(AppendError::Refused);
        }
        self.push(entry);
        Ok(self.end())
    }

    fn land(&mut self, lands: impl Fn(&Late) -> bool) {
        let (landing, waiting) = std::mem::take(&mut self.late).into_iter().partition(lands);
        self.late = waiting;
        for Late { expected, entry, is_compared, .. } in landing {
            // An append from before a loss lands only at its own place.
            if is_compared || self.entries.len() < self.longest {
                // No caller waits for the result.
                drop(self.put(expected, &entry));
            } else {
                self.push(&entry);
            }
        }
    }

    /// Begins a call. Returns whether the log answers it.
    fn answers(&mut self) -> bool {
        self.late.iter_mut().for_each(|late| late.calls = late.calls.saturating_sub(1));
        self.land(|late| late.calls == 0 && !late.is_hasty);
        let is_away = self.away > 0;
        self.away = self.away.saturating_sub(1);
        !is_away
    }

    fn fails(&mut self) -> bool {
        self.one_in > 0 && self.random.once_in(self.one_in)
    }

    fn append(&mut self, by: usize, expected: Sequence, entry: &Bytes) -> Result<Sequence, AppendError> {
        if !self.answers() {
            let away = unavailable("it is away");
            return Err(if self.random.once_in(2) { away.into() } else { AppendError::Unknown(away) });
        }
        self.land(|late| late.is_hasty && late.by == by);
        let unknown = || AppendError::Unknown(unavailable("no answer came"));
        if !self.fails() {
            let sequence = self.put(expected, entry)?;
            self.visible = self.entries.len();
            return Ok(sequence);
        }
        match self.random.below(6) {
            0 => Err(unavailable("it cannot be reached").into()),
            1 => Err(unknown()),
            2 => {
                drop(self.put(expected, entry));
                Err(unknown())
            }
            _ => {
                let is_hasty = self.hasty == Some(by);
                let calls = if self.random.once_in(2) { 1 + self.random.below(8) as u32 } else { u32::MAX };
                let is_compared = is_hasty || self.random.once_in(2);
                self.late.push(Late { by, expected, entry: entry.clone(), calls, is_compared, is_hasty });
                if is_hasty { Ok(expected.next()) } else { Err(unknown()) }
            }
        }
    }

    fn lose_tail(&mut self, lost: usize) {
        self.entries.truncate(self.entries.len().saturating_sub(lost));
        self.visible = self.visible.min(self.entries.len());
        self.late.clear();
        let entries = std::mem::take(&mut self.entries);
        (self.chain, self.counted, self.ends) = (SimChain::new(self.range), BTreeMap::new(), BTreeSet::new());
        entries.iter().for_each(|entry| self.push(entry));
    }

    fn read(&mut self, after: Sequence, bytes: usize) -> Result<Vec<LogEntry>, LogError> {
        if !self.answers() || self.fails() {
            return Err(unavailable("it is away"));
        }
        let is_behind = self.one_in > 0 && self.random.once_in(2);
        let end = if is_behind { self.visible } else { self.entries.len() };
        let most = if self.one_in > 0 && self.random.once_in(4) { 1 } else { usize::MAX };
        let (mut read, mut entries) = (0, Vec::new());
        for at in after.0 as usize..end {
            if entries.len() == most || !entries.is_empty() && read >= bytes {
                break;
            }
            let entry = LogEntry { sequence: Sequence(at as u64 + 1), bytes: self.entries[at].clone() };
            read += entry.bytes.len();
            self.visible = self.visible.max(at + 1);
            entries.push(entry);
        }
        Ok(entries)
    }
}

impl SimLog {
    pub(crate) fn new(range: RangeId) -> Self {
        let state = State {
            range,
            entries: Vec::new(),
            visible: 0,
            longest: 0,
            reports: BTreeMap::new(),
            late: Vec::new(),
            away: 0,
            one_in: 0,
            random: Random::new(0),
            chain: SimChain::new(range),
            counted: BTreeMap::new(),
            ends: BTreeSet::new(),
            hasty: None,
        };
        Self(Arc::new(Shared { state: Mutex::new(state), rival: Mutex::default() }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap()
    }

    /// The log as a node reaches it.
    pub(crate) fn reached_by(&self, node: usize) -> Arc<dyn SharedLog> {
        Arc::new(LogConnection { log: self.clone(), node })
    }

    /// From now on, one in `one_in` calls fails; 0 for none.
    pub(crate) fn fail(&self, one_in: u64, seed: u64) {
        let mut state = self.state();
        (state.one_in, state.random) = (one_in, Random::new(seed));
    }

    /// Leaves the next calls without an answer.
    pub(crate) fn go_away(&self, calls: u32) {
        self.state().away = calls;
    }

    /// Ends all faults. Late appends land or are lost.
    pub(crate) fn heal(&self) {
        let mut state = self.state();
        (state.one_in, state.away) = (0, 0);
        let dice = state.random.next();
        state.land(|late| late.is_hasty || (late.expected.0 ^ dice).is_multiple_of(2));
        state.late.clear();
    }

    /// Loses the last entries, unless an earlier loss is not yet repaired.
    pub(crate) fn lose_tail(&self, lost: usize) {
        let mut state = self.state();
        if state.entries.len() == state.longest {
            state.lose_tail(lost);
        }
    }

    /// Lets late appends land.
    pub(crate) fn land(&self) {
        self.state().land(|late| !late.is_hasty);
    }

    /// Runs `rival` right before the next append of a node.
    pub(crate) fn before_append_of(&self, node: usize, rival: Box<dyn FnOnce() + Send>) {
        *self.0.rival.lock().unwrap() = Some((node, rival));
    }

    /// Removes the action that waits for an append.
    pub(crate) fn forget_rival(&self) {
        *self.0.rival.lock().unwrap() = None;
    }

    /// Makes a node continue before it knows the result of an append.
    pub(crate) fn set_hasty(&self, node: usize) {
        self.state().hasty = Some(node);
    }

    /// Whether the record at a position counts.
    pub(crate) fn counts(&self, position: LogPosition) -> bool {
        self.state().counted.get(&position.index) == Some(&position)
    }

    /// The positions of all records that count.
    pub(crate) fn records(&self) -> Vec<LogPosition> {
        self.state().counted.values().copied().collect()
    }

    /// The position of the last record that counts.
    pub(crate) fn last(&self) -> Option<LogPosition> {
        self.state().counted.values().next_back().copied()
    }

    /// The rows of commits behind `place` that do not count, and the number of entries.
    pub(crate) fn void_behind(&self, place: usize) -> (Vec<Write>, usize) {
        let state = self.state();
        let void = (place..state.entries.len()).filter(|at| !state.ends.contains(&(at + 1)));
        let entry =
            |at: usize| LogEntry { sequence: Sequence(at as u64 + 1), bytes: state.entries[at].clone() };
        (void.filter_map(|at| state.chain.decode_commit(&entry(at))).flatten().collect(), state.entries.len())
    }
}

impl SharedLog for LogConnection {
    fn append(&self, expected: Sequence, entry: &Bytes) -> Result<Sequence, AppendError> {
        let rival = self.log.0.rival.lock().unwrap().take_if(|(node, _)| *node == self.node);
        if let Some((_, rival)) = rival {
            rival();
        }
        self.log.state().append(self.node, expected, entry)
    }

    fn read(&self, after: Sequence, bytes: usize) -> Result<Vec<LogEntry>, LogError> {
        self.log.state().read(after, bytes)
    }

    /// Always empty: a node finds all entries by reading.
    fn told(&self, _: Sequence) -> Vec<LogEntry> {
        Vec::new()
    }

    fn extent(&self) -> Result<Extent, LogError> {
        let mut state = self.log.state();
        if !state.answers() {
            return Err(unavailable("it is away"));
        }
        state.visible = state.entries.len();
        let bytes = state.entries.iter().map(|entry| entry.len() as u64).sum();
        Ok(Extent { trimmed: Sequence(0), end: state.end(), bytes, bytes_max: None })
    }

    fn wait(&self, _: Sequence, _: Duration) {}

    fn report(&self, reader: &str, report: &Bytes) {
        self.log.state().reports.insert(reader.to_owned(), report.clone());
    }

    fn await_report(&self, _: Duration, is_wanted: &dyn Fn(&str, &Bytes) -> bool) -> bool {
        self.log.state().reports.iter().any(|(reader, report)| is_wanted(reader, report))
    }

    fn trim(&self, _: Sequence) -> Result<(), LogError> {
        Ok(())
    }
}
