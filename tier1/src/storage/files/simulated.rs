//! A directory in memory that fails as a disk does, and loses at a crash what a disk may lose.
//!
//! A crash loses, keeps, or partly keeps each write that was not synced. It keeps unsynced changes of names
//! up to some point in their order. After a given number of calls all further calls fail, as if the process
//! had been killed there.
//!
//! Any call that changes something may also fail alone, with a [`Fault`], while later calls succeed. A failed
//! write may be partly applied. As on Linux, data of a failed sync can still be read, but no later sync
//! writes it to disk.

mod content;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use doppel_model::Random;

use crate::storage::files::{Directory, File};
use content::FileContent;

/// How a single call fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The device fails (`EIO`). A write changes no byte.
    Device,
    /// The disk is full (`ENOSPC`). A write changes only some bytes.
    Full,
    /// A write ends early, and the device fails when the rest is written.
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

/// A kind of failure that is not reported, as a planted mistake. The call returns success.
#[allow(unreachable_pub, reason = "the simulation hands it out")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Forgotten {
    /// A failed sync.
    Sync,
    /// A write that was partly applied.
    ShortWrite,
    /// A write that changed no byte.
    Write,
}

/// Random failures of single calls.
#[derive(Debug, Clone)]
pub(crate) struct Failures {
    /// A call that changes something fails with the probability 1 / `one_in`; 0 means never.
    pub(crate) one_in: u64,
    pub(crate) random: Random,
    pub(crate) forgotten: Option<Forgotten>,
}

type Names = BTreeMap<String, usize>;

#[derive(Debug, Default)]
struct DirectoryState {
    contents: Vec<FileContent>,
    names: Names,
    /// Names after each change since the last sync of the directory. The first entry is the synced state.
    history: Vec<Names>,
    /// Number of calls that still succeed; `None` for no limit.
    budget: Option<u64>,
    calls: u64,
    /// Whether the next sync of a file fails.
    next_sync_fails: bool,
    /// Number of a call that fails alone, and how it fails.
    fails_at: Option<(u64, Fault)>,
    failures: Option<Failures>,
    /// Number of calls that have failed alone.
    failed: u64,
}

impl DirectoryState {
    fn count_call(&mut self) -> io::Result<()> {
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

    /// Returns how the present call fails alone; `None` if it does not.
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

    /// Returns an error if the present call fails alone.
    fn check_fault(&mut self) -> io::Result<()> {
        self.fault().map_or(Ok(()), |fault| Err(fault.error()))
    }

    fn record_names(&mut self) {
        self.history.push(self.names.clone());
    }
}

/// A simulated directory. Clones share the same files.
#[derive(Debug, Clone)]
pub(crate) struct SimulatedDirectory {
    state: Arc<Mutex<DirectoryState>>,
}

impl Default for SimulatedDirectory {
    fn default() -> Self {
        let state = DirectoryState { history: vec![Names::new()], ..DirectoryState::default() };
        Self { state: Arc::new(Mutex::new(state)) }
    }
}

impl SimulatedDirectory {
    fn lock(&self) -> MutexGuard<'_, DirectoryState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with<T>(&self, call: impl FnOnce(&mut DirectoryState) -> io::Result<T>) -> io::Result<T> {
        let mut state = self.lock();
        state.count_call()?;
        call(&mut state)
    }

    /// Sets the random failures of calls that change something. `None` ends them.
    pub(crate) fn fail(&self, failures: Option<Failures>) {
        self.lock().failures = failures;
    }

    /// Returns the number of calls that have failed alone.
    pub(crate) fn failed(&self) -> u64 {
        self.lock().failed
    }

    /// Returns what remains of the directory after a crash.
    pub(crate) fn crash(&self, random: &mut Random) -> Self {
        let state = self.lock();
        let names = state.history[random.below(state.history.len() as u64) as usize].clone();
        let mut contents = Vec::new();
        for content in &state.contents {
            let bytes = content.after_crash(random);
            contents.push(FileContent { now: bytes.clone(), synced: bytes, ..FileContent::default() });
        }
        let state =
            DirectoryState { contents, history: vec![names.clone()], names, ..DirectoryState::default() };
        Self { state: Arc::new(Mutex::new(state)) }
    }

    fn file(&self, at: usize) -> Arc<dyn File> {
        Arc::new(SimulatedFile { directory: self.clone(), at })
    }
}

#[cfg(test)]
impl SimulatedDirectory {
    /// Sets how many further calls succeed; `None` for no limit.
    pub(crate) fn allow(&self, calls: Option<u64>) {
        self.lock().budget = calls;
    }

    /// Makes the next sync of a file fail, and no other call.
    pub(crate) fn fail_next_sync(&self) {
        self.lock().next_sync_fails = true;
    }

    /// Makes the call with this number fail, if it changes something, and no other call.
    pub(crate) fn fail_at(&self, fails_at: Option<(u64, Fault)>) {
        self.lock().fails_at = fails_at;
    }

    /// Returns the number of calls so far.
    pub(crate) fn calls(&self) -> u64 {
        self.lock().calls
    }

    /// Returns the names and the contents of all files.
    pub(crate) fn files(&self) -> Vec<(String, Vec<u8>)> {
        let state = self.lock();
        state.names.iter().map(|(name, at)| (name.clone(), state.contents[*at].now.clone())).collect()
    }

    /// Replaces the content of a file, or removes the file.
    pub(crate) fn set(&self, name: &str, bytes: Option<Vec<u8>>) {
        let mut state = self.lock();
        match bytes {
            None => drop(state.names.remove(name)),
            Some(synced) => {
                let at = state.contents.len();
                state.contents.push(FileContent { now: synced.clone(), synced, ..FileContent::default() });
                state.names.insert(name.to_owned(), at);
            }
        }
        state.record_names();
    }
}

fn missing() -> io::Error {
    io::ErrorKind::NotFound.into()
}

impl Directory for SimulatedDirectory {
    fn path(&self) -> &Path {
        Path::new("simulated")
    }

    fn list(&self) -> io::Result<Vec<String>> {
        self.with(|state| Ok(state.names.keys().cloned().collect()))
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn File>> {
        let at = self.with(|state| {
            state.check_fault()?;
            let at = state.contents.len();
            state.contents.push(FileContent::default());
            state.names.insert(name.to_owned(), at);
            state.record_names();
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
            state.check_fault()?;
            let at = state.names.remove(from).ok_or_else(missing)?;
            state.names.insert(to.to_owned(), at);
            state.record_names();
            Ok(())
        })
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.with(|state| {
            state.check_fault()?;
            state.names.remove(name).ok_or_else(missing)?;
            state.record_names();
            Ok(())
        })
    }

    fn sync(&self) -> io::Result<()> {
        self.with(|state| {
            state.check_fault()?;
            state.history = vec![state.names.clone()];
            Ok(())
        })
    }
}

struct SimulatedFile {
    directory: SimulatedDirectory,
    at: usize,
}

impl File for SimulatedFile {
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
            state.check_fault()?;
            state.contents[self.at].change(length, None);
            Ok(())
        })
    }

    fn sync(&self) -> io::Result<()> {
        self.directory.with(|state| {
            let fault =
                if std::mem::take(&mut state.next_sync_fails) { Some(Fault::Device) } else { state.fault() };
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
