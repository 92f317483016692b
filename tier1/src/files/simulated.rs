//! A directory in memory that fails as a disk does, and loses at a crash what a disk may lose.
//!
//! Bytes that were written and not synced are lost, kept, or kept in part, write by write. Names that were created,
//! renamed or removed and not synced are kept up to any point of that order. Every call counts; from a given one on
//! all fail, as when the process had been killed there. Any call that changes something may also [fail](Fault) alone, while those after it succeed:
//! a write may be there in part then. What a failed sync had to write can be read, and no later sync writes it, as Linux has it.

mod content;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use doppel_model::Random;

use crate::files::{Directory, File};
use content::Content;

/// How a call fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The device fails (`EIO`): nothing of a write is there.
    Device,
    /// The disk is full (`ENOSPC`): a part of a write is there.
    Full,
    /// A write ends early, and the device fails when it goes on.
    Short,
}

impl Fault {
    pub(crate) const ALL: [Self; 3] = [Self::Device, Self::Full, Self::Short];

    fn error(self) -> io::Error {
        match self {
            Self::Device | Self::Short => io::Error::other("the device fails"),
            Self::Full => io::ErrorKind::StorageFull.into(),
        }
    }
}

/// A failure that a program forgets, as a planted mistake: the call says that it has succeeded.
#[allow(unreachable_pub, reason = "the simulation hands it out")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Forgotten {
    /// A sync that has failed.
    Sync,
    /// A write of which a part is there.
    ShortWrite,
    /// A write of which nothing is there.
    Write,
}

/// Calls that fail alone.
#[derive(Debug, Clone)]
pub(crate) struct Failures {
    /// Each call that changes something fails with this probability: one in so many; 0 for none.
    pub(crate) one_in: u64,
    pub(crate) random: Random,
    pub(crate) forgotten: Option<Forgotten>,
}

type Names = BTreeMap<String, usize>;

#[derive(Debug, Default)]
struct State {
    contents: Vec<Content>,
    names: Names,
    /// What the names were after each change since the last sync; the first is as synced.
    history: Vec<Names>,
    /// Calls that still succeed; none for all.
    budget: Option<u64>,
    calls: u64,
    /// The next sync of a file fails.
    fails_sync: bool,
    /// The call with this number fails alone.
    fails_at: Option<(u64, Fault)>,
    failures: Option<Failures>,
    /// How many calls have failed alone.
    failed: u64,
}

impl State {
    fn call(&mut self) -> io::Result<()> {
        self.calls += 1;
        match &mut self.budget {
            Some(0) => Err(io::Error::other("killed")),
            Some(left) => {
                *left -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// How the present call fails alone, if it does.
    fn fault(&mut self) -> Option<Fault> {
        let planned = self.fails_at.filter(|(call, _)| *call == self.calls).map(|(_, fault)| fault);
        let drawn = self.failures.as_mut().and_then(|failures| {
            let fails = failures.one_in > 0 && failures.random.below(failures.one_in) == 0;
            fails.then(|| Fault::ALL[failures.random.index(Fault::ALL.len())])
        });
        let fault = planned.or(drawn);
        self.failed += u64::from(fault.is_some());
        fault
    }

    fn forgets(&self, what: Forgotten) -> bool {
        self.failures.as_ref().is_some_and(|failures| failures.forgotten == Some(what))
    }

    /// Fails where the call fails.
    fn change(&mut self) -> io::Result<()> {
        self.fault().map_or(Ok(()), |fault| Err(fault.error()))
    }

    fn renamed(&mut self) {
        self.history.push(self.names.clone());
    }
}

/// The directory; a clone is the same one.
#[derive(Debug, Clone)]
pub(crate) struct Simulated {
    state: Arc<Mutex<State>>,
}

impl Default for Simulated {
    fn default() -> Self {
        let state = State { history: vec![Names::new()], ..State::default() };
        Self { state: Arc::new(Mutex::new(state)) }
    }
}

impl Simulated {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with<T>(&self, call: impl FnOnce(&mut State) -> io::Result<T>) -> io::Result<T> {
        let mut state = self.lock();
        state.call()?;
        call(&mut state)
    }

    /// Calls that change something fail now and then from here on; none does without `failures`.
    pub(crate) fn fail(&self, failures: Option<Failures>) {
        self.lock().failures = failures;
    }

    /// How many calls have failed alone so far.
    pub(crate) fn failed(&self) -> u64 {
        self.lock().failed
    }

    /// What is left after a crash.
    pub(crate) fn crash(&self, random: &mut Random) -> Self {
        let state = self.lock();
        let names = state.history[random.below(state.history.len() as u64) as usize].clone();
        let mut contents = Vec::new();
        for content in &state.contents {
            let bytes = content.after_crash(random);
            contents.push(Content { now: bytes.clone(), synced: bytes, ..Content::default() });
        }
        let state = State { contents, history: vec![names.clone()], names, ..State::default() };
        Self { state: Arc::new(Mutex::new(state)) }
    }

    fn file(&self, at: usize) -> Arc<dyn File> {
        Arc::new(Handle { directory: self.clone(), at })
    }
}

#[cfg(test)]
impl Simulated {
    /// So many further calls succeed.
    pub(crate) fn allow(&self, calls: Option<u64>) {
        self.lock().budget = calls;
    }

    /// The next sync of a file fails, and no other.
    pub(crate) fn fail_next_sync(&self) {
        self.lock().fails_sync = true;
    }

    /// The call with this number fails, if it changes something, and no other.
    pub(crate) fn fail_at(&self, fails_at: Option<(u64, Fault)>) {
        self.lock().fails_at = fails_at;
    }

    /// Calls so far.
    pub(crate) fn calls(&self) -> u64 {
        self.lock().calls
    }

    /// The names, and what is in the files.
    pub(crate) fn files(&self) -> Vec<(String, Vec<u8>)> {
        let state = self.lock();
        state.names.iter().map(|(name, at)| (name.clone(), state.contents[*at].now.clone())).collect()
    }

    /// Replaces what is in a file, or removes it.
    pub(crate) fn set(&self, name: &str, bytes: Option<Vec<u8>>) {
        let mut state = self.lock();
        match bytes {
            None => drop(state.names.remove(name)),
            Some(synced) => {
                let at = state.contents.len();
                state.contents.push(Content { now: synced.clone(), synced, ..Content::default() });
                state.names.insert(name.to_owned(), at);
            }
        }
        state.renamed();
    }
}

fn missing() -> io::Error {
    io::ErrorKind::NotFound.into()
}

impl Directory for Simulated {
    fn path(&self) -> &Path {
        Path::new("simulated")
    }

    fn list(&self) -> io::Result<Vec<String>> {
        self.with(|state| Ok(state.names.keys().cloned().collect()))
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn File>> {
        let at = self.with(|state| {
            state.change()?;
            let at = state.contents.len();
            state.contents.push(Content::default());
            state.names.insert(name.to_owned(), at);
            state.renamed();
            Ok(at)
        })?;
        Ok(self.file(at))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn File>> {
        let at = self.with(|state| state.names.get(name).copied().ok_or_else(missing))?;
        Ok(self.file(at))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.with(|state| {
            state.change()?;
            let at = state.names.remove(from).ok_or_else(missing)?;
            state.names.insert(to.to_owned(), at);
            state.renamed();
            Ok(())
        })
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.with(|state| {
            state.change()?;
            state.names.remove(name).ok_or_else(missing)?;
            state.renamed();
            Ok(())
        })
    }

    fn sync(&self) -> io::Result<()> {
        self.with(|state| {
            state.change()?;
            state.history = vec![state.names.clone()];
            Ok(())
        })
    }
}

struct Handle {
    directory: Simulated,
    at: usize,
}

impl File for Handle {
    fn length(&self) -> io::Result<u64> {
        self.directory.with(|state| Ok(state.contents[self.at].now.len() as u64))
    }

    fn read(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.directory.with(|state| {
            let start = usize::try_from(offset).map_err(io::Error::other)?;
            let part = state.contents[self.at].now.get(start..start + buffer.len());
            buffer.copy_from_slice(part.ok_or(io::ErrorKind::UnexpectedEof)?);
            Ok(())
        })
    }

    fn write(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.directory.with(|state| {
            let fault = state.fault();
            let part = match fault {
                None => bytes,
                Some(Fault::Device) => &[],
                Some(Fault::Full | Fault::Short) => &bytes[..bytes.len() / 2],
            };
            if !part.is_empty() {
                state.contents[self.at].change(offset, Some(part.to_vec()));
            }
            let Some(fault) = fault else { return Ok(()) };
            let kind = if part.is_empty() { Forgotten::Write } else { Forgotten::ShortWrite };
            if state.forgets(kind) { Ok(()) } else { Err(fault.error()) }
        })
    }

    fn cut(&self, length: u64) -> io::Result<()> {
        self.directory.with(|state| {
            state.change()?;
            state.contents[self.at].change(length, None);
            Ok(())
        })
    }

    fn sync(&self) -> io::Result<()> {
        self.directory.with(|state| {
            let fault =
                if std::mem::take(&mut state.fails_sync) { Some(Fault::Device) } else { state.fault() };
            let forgets = state.forgets(Forgotten::Sync);
            let content = &mut state.contents[self.at];
            let Some(fault) = fault else {
                content.sync();
                return Ok(());
            };
            content.fail_sync();
            if forgets { Ok(()) } else { Err(fault.error()) }
        })
    }
}
