//! The shared log of a range: the simulation's own, with the faults that a real one has, and one more. It refuses, loses calls
//! and answers, is away for a while, and is read behind what is in it and not acknowledged. An append that nobody waits for
//! any more may land late, and then even where its place is taken: which entries count must not depend on the log's
//! comparison. It loses its last entries, with what was on its way, as servers without power do.
//!
//! It folds all that lands, so it knows what counts.

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

/// The log. Clones are one log.
#[derive(Clone)]
pub(crate) struct SimLog(Arc<Shared>);

/// The log as a node reaches it.
pub(crate) struct Reached {
    log: SimLog,
    node: usize,
}

/// What happens right before the next append of a node.
type Rival = (usize, Box<dyn FnOnce() + Send>);

struct Shared {
    state: Mutex<State>,
    rival: Mutex<Option<Rival>>,
}

struct State {
    range: RangeId,
    entries: Vec<Bytes>,
    /// Entries up to this one were acknowledged or read.
    visible: usize,
    /// The most that there ever were.
    longest: usize,
    /// What readers have reported last.
    reports: BTreeMap<String, Bytes>,
    late: Vec<Late>,
    /// Calls for which nobody answers.
    away: u32,
    /// One in so many calls fails; 0 for none.
    one_in: u64,
    random: Random,
    chain: SimChain,
    /// What counts, by index.
    counted: BTreeMap<u64, LogPosition>,
    /// The entries that records end with.
    ends: BTreeSet<usize>,
    /// A mistake: the owner goes on before it knows of the append before.
    hasty: Option<usize>,
}

/// An append that nobody waits for any more.
struct Late {
    by: usize,
    expected: Sequence,
    entry: Bytes,
    calls: u32,
    /// It lands only where its place is free.
    is_compared: bool,
    /// The node takes it for acknowledged.
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
            // What was lost goes back to its places.
            if is_compared || self.entries.len() < self.longest {
                // Nobody waits for the answer.
                drop(self.put(expected, &entry));
            } else {
                self.push(&entry);
            }
        }
    }

    /// A call begins; whether anybody answers.
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
        Arc::new(Reached { log: self.clone(), node })
    }

    /// One in so many calls fails from now on; 0 for none.
    pub(crate) fn fail(&self, one_in: u64, seed: u64) {
        let mut state = self.state();
        (state.one_in, state.random) = (one_in, Random::new(seed));
    }

    /// Nobody answers the next calls.
    pub(crate) fn go_away(&self, calls: u32) {
        self.state().away = calls;
    }

    /// Nothing fails any more. What is late lands, or is lost.
    pub(crate) fn heal(&self) {
        let mut state = self.state();
        (state.one_in, state.away) = (0, 0);
        let dice = state.random.next();
        state.land(|late| late.is_hasty || (late.expected.0 ^ dice).is_multiple_of(2));
        state.late.clear();
    }

    /// The last entries are lost, unless some were and are not all back.
    pub(crate) fn lose_tail(&self, lost: usize) {
        let mut state = self.state();
        if state.entries.len() == state.longest {
            state.lose_tail(lost);
        }
    }

    /// What is late lands.
    pub(crate) fn land(&self) {
        self.state().land(|late| !late.is_hasty);
    }

    /// Does something right before the next append of a node.
    pub(crate) fn before_append_of(&self, node: usize, rival: Box<dyn FnOnce() + Send>) {
        *self.0.rival.lock().unwrap() = Some((node, rival));
    }

    /// Nothing is done before an append any more.
    pub(crate) fn forget_rival(&self) {
        *self.0.rival.lock().unwrap() = None;
    }

    /// The node goes on before it knows what became of an append.
    pub(crate) fn set_hasty(&self, node: usize) {
        self.state().hasty = Some(node);
    }

    /// Whether a record counts.
    pub(crate) fn counts(&self, position: LogPosition) -> bool {
        self.state().counted.get(&position.index) == Some(&position)
    }

    /// All records that count.
    pub(crate) fn records(&self) -> Vec<LogPosition> {
        self.state().counted.values().copied().collect()
    }

    /// The last record that counts.
    pub(crate) fn last(&self) -> Option<LogPosition> {
        self.state().counted.values().next_back().copied()
    }

    /// The rows of commits behind a place that do not count, and the last place.
    pub(crate) fn void_behind(&self, place: usize) -> (Vec<Write>, usize) {
        let state = self.state();
        let void = (place..state.entries.len()).filter(|at| !state.ends.contains(&(at + 1)));
        let entry =
            |at: usize| LogEntry { sequence: Sequence(at as u64 + 1), bytes: state.entries[at].clone() };
        (void.filter_map(|at| state.chain.decode_commit(&entry(at))).flatten().collect(), state.entries.len())
    }
}

impl SharedLog for Reached {
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

    /// What is told is read all the same.
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
