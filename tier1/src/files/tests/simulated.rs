//! A directory in memory that loses at a crash what a disk may lose.
//!
//! Bytes that were written and not synced are lost, kept, or kept in part, write by write. Names that were created,
//! renamed or removed and not synced are kept up to any point of that order. Every call counts; from a given one on
//! all fail, as when the process had been killed there. A sync of a file may fail alone: what it had to write can be read, and no later sync
//! writes it, as Linux has it.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use doppel_model::Random;

use crate::files::{Directory, File};

#[derive(Debug, Clone, Default)]
struct Content {
    synced: Vec<u8>,
    /// Writes of which the sync has failed. They are readable until a crash.
    failed: Vec<(u64, Option<Vec<u8>>)>,
    /// Writes since; none cuts the file.
    unsynced: Vec<(u64, Option<Vec<u8>>)>,
}

fn apply(bytes: &mut Vec<u8>, offset: u64, write: Option<&[u8]>) {
    let offset = usize::try_from(offset).unwrap();
    match write {
        None => bytes.resize(offset, 0),
        Some(write) => {
            let end = offset + write.len();
            if bytes.len() < end {
                bytes.resize(end, 0);
            }
            bytes[offset..end].copy_from_slice(write);
        }
    }
}

impl Content {
    fn now(&self) -> Vec<u8> {
        let mut bytes = self.synced.clone();
        let writes = self.failed.iter().chain(&self.unsynced);
        writes.for_each(|(offset, write)| apply(&mut bytes, *offset, write.as_deref()));
        bytes
    }

    fn sync(&mut self) {
        for (offset, write) in self.unsynced.drain(..) {
            apply(&mut self.synced, offset, write.as_deref());
        }
    }
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
    /// Syncs of files that fail next.
    failing_syncs: u32,
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
    fn with<T>(&self, call: impl FnOnce(&mut State) -> io::Result<T>) -> io::Result<T> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.call()?;
        call(&mut state)
    }

    /// So many further calls succeed.
    pub(crate) fn allow(&self, calls: Option<u64>) {
        self.state.lock().unwrap().budget = calls;
    }

    /// The next sync of a file fails, and no other.
    pub(crate) fn fail_next_sync(&self) {
        self.state.lock().unwrap().failing_syncs = 1;
    }

    /// Calls so far.
    pub(crate) fn calls(&self) -> u64 {
        self.state.lock().unwrap().calls
    }

    /// What is left after a crash.
    pub(crate) fn crash(&self, random: &mut Random) -> Self {
        let state = self.state.lock().unwrap();
        let names = state.history[random.below(state.history.len() as u64) as usize].clone();
        let mut contents = Vec::new();
        for content in &state.contents {
            let mut bytes = content.synced.clone();
            for (offset, write) in content.failed.iter().chain(&content.unsynced) {
                let write = write.as_deref();
                match random.below(4) {
                    0 => {}
                    // The file may be longer than what came into it.
                    1 => apply(&mut bytes, *offset, write.map(|bytes| vec![0; bytes.len()]).as_deref()),
                    2 if write.is_some() => {
                        let write = write.unwrap();
                        let part = random.below(write.len() as u64 + 1) as usize;
                        apply(&mut bytes, *offset, Some(&write[..part]));
                    }
                    _ => apply(&mut bytes, *offset, write),
                }
            }
            contents.push(Content { synced: bytes, ..Content::default() });
        }
        let state = State { contents, history: vec![names.clone()], names, ..State::default() };
        Self { state: Arc::new(Mutex::new(state)) }
    }

    /// The names, and what is in the files.
    pub(crate) fn files(&self) -> Vec<(String, Vec<u8>)> {
        let state = self.state.lock().unwrap();
        state.names.iter().map(|(name, at)| (name.clone(), state.contents[*at].now())).collect()
    }

    /// Replaces what is in a file, or removes it.
    pub(crate) fn set(&self, name: &str, bytes: Option<Vec<u8>>) {
        let mut state = self.state.lock().unwrap();
        match bytes {
            None => drop(state.names.remove(name)),
            Some(synced) => {
                let at = state.contents.len();
                state.contents.push(Content { synced, ..Content::default() });
                state.names.insert(name.to_owned(), at);
            }
        }
        state.renamed();
    }

    fn file(&self, at: usize) -> Arc<dyn File> {
        Arc::new(Handle { directory: self.clone(), at })
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
            let at = state.names.remove(from).ok_or_else(missing)?;
            state.names.insert(to.to_owned(), at);
            state.renamed();
            Ok(())
        })
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.with(|state| {
            state.names.remove(name).ok_or_else(missing)?;
            state.renamed();
            Ok(())
        })
    }

    fn sync(&self) -> io::Result<()> {
        self.with(|state| {
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
        self.directory.with(|state| Ok(state.contents[self.at].now().len() as u64))
    }

    fn read(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.directory.with(|state| {
            let (bytes, start) = (state.contents[self.at].now(), usize::try_from(offset).unwrap());
            let part = bytes.get(start..start + buffer.len()).ok_or(io::ErrorKind::UnexpectedEof)?;
            buffer.copy_from_slice(part);
            Ok(())
        })
    }

    fn write(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.directory.with(|state| {
            state.contents[self.at].unsynced.push((offset, Some(bytes.to_vec())));
            Ok(())
        })
    }

    fn cut(&self, length: u64) -> io::Result<()> {
        self.directory.with(|state| {
            state.contents[self.at].unsynced.push((length, None));
            Ok(())
        })
    }

    fn sync(&self) -> io::Result<()> {
        self.directory.with(|state| {
            let content = &mut state.contents[self.at];
            if state.failing_syncs > 0 {
                state.failing_syncs -= 1;
                content.failed.append(&mut content.unsynced);
                return Err(io::Error::other("the disk does not write"));
            }
            content.sync();
            Ok(())
        })
    }
}
