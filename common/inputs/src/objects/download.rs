//! Reads an object from its store in pieces. While the caller reads one piece, the next one is fetched.
//!
//! Invariant: all pieces are of one version of the object, if the store gives its objects entity tags.

use std::fmt;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use bytes::{Buf, Bytes};
use doppel_crawls::record::RecordFile;
use doppel_crawls::{Input, InputError, InputOptions, InputPosition, Reason};
use doppel_model::Timestamp;
use futures_util::TryStreamExt;
use futures_util::stream::BoxStream;
use object_store::{Error, GetOptions, GetRange, ObjectMeta, ObjectStore};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;

use crate::version::Version;

/// Size of a piece in bytes. Two pieces are in memory at a time.
const PIECE: u64 = 8 << 20;

/// An object in a store, which can be opened for reading.
pub struct Object {
    store: Arc<dyn ObjectStore>,
    found: ObjectMeta,
    path: PathBuf,
    name: RecordFile,
}

impl Object {
    /// Creates an object from its metadata, its address, and the name that its records carry.
    pub(super) fn new(
        store: Arc<dyn ObjectStore>,
        found: ObjectMeta,
        (path, name): (PathBuf, RecordFile),
    ) -> Self {
        Self { store, found, path, name }
    }

    /// Address of the object, as messages show it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Size of the object, in bytes.
    pub fn bytes(&self) -> u64 {
        self.found.size
    }

    /// Name that the records of the object carry.
    pub fn name(&self) -> &RecordFile {
        &self.name
    }

    /// Version of the object in its store.
    pub fn version(&self) -> Version {
        Version::of_object(self.found.size, self.modified(), self.found.e_tag.clone())
    }

    fn modified(&self) -> Timestamp {
        Timestamp::from_millis(self.found.last_modified.timestamp_millis())
    }

    /// Opens the object for reading.
    ///
    /// # Errors
    /// If the threads for requests cannot be started. Otherwise the errors of [`doppel_crawls::open_pipe`].
    pub fn open(&self, options: InputOptions) -> Result<Input, InputError> {
        let fail = |error| InputError::new(&self.path().into(), InputPosition::File, Reason::Io(error));
        runtime().map_err(fail)?;
        let input = doppel_crawls::open_pipe(self.pieces(), &self.path, self.name.clone(), options)?;
        Ok(input.modified_at(self.modified()))
    }

    /// Creates a reader of the bytes of the object.
    pub(super) fn pieces(&self) -> Pieces {
        Pieces {
            store: Arc::clone(&self.store),
            found: self.found.clone(),
            asked: 0,
            next: None,
            piece: Bytes::new(),
            rest: None,
        }
    }
}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path.display())
    }
}

/// Reader of the bytes of an object, in order.
pub(super) struct Pieces {
    store: Arc<dyn ObjectStore>,
    found: ObjectMeta,
    /// Offset up to which pieces have been requested.
    asked: u64,
    next: Option<JoinHandle<Result<Bytes, Error>>>,
    piece: Bytes,
    /// Rest of the object, from a server that does not send parts of files.
    rest: Option<BoxStream<'static, Result<Bytes, Error>>>,
}

impl Pieces {
    /// Returns the next bytes of the object, or no bytes at its end.
    fn fetch(&mut self) -> io::Result<Bytes> {
        if let Some(rest) = &mut self.rest {
            return Ok(wait(rest.try_next())??.unwrap_or_default());
        }
        let is_first = self.asked == 0;
        let Some(next) = self.next.take().or_else(|| self.ask()) else { return Ok(Bytes::new()) };
        match wait(next)?? {
            Err(Error::NotSupported { .. }) if is_first => {
                let (store, key) = (Arc::clone(&self.store), self.found.location.clone());
                let options = self.options();
                let all = wait(async move { store.get_opts(&key, options).await })??;
                self.rest = Some(all.into_stream());
                self.fetch()
            }
            piece => {
                self.next = self.ask();
                Ok(piece?)
            }
        }
    }

    /// Requests the next piece. `None` at the end of the object.
    fn ask(&mut self) -> Option<JoinHandle<Result<Bytes, Error>>> {
        let end = self.found.size.min(self.asked + PIECE);
        let range = self.asked..end;
        if range.is_empty() {
            return None;
        }
        self.asked = end;
        let (store, key) = (Arc::clone(&self.store), self.found.location.clone());
        let options = GetOptions { range: Some(GetRange::Bounded(range)), ..self.options() };
        let piece = async move { store.get_opts(&key, options).await?.bytes().await };
        Some(runtime().ok()?.spawn(piece))
    }

    /// Options of a request, which the store refuses if the object is no longer the version that was found.
    fn options(&self) -> GetOptions {
        GetOptions { if_match: self.found.e_tag.clone(), ..GetOptions::default() }
    }
}

impl Read for Pieces {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.piece.is_empty() {
            self.piece = self.fetch()?;
        }
        let bytes = out.len().min(self.piece.len());
        self.piece.split_to(bytes).copy_to_slice(&mut out[..bytes]);
        Ok(bytes)
    }
}

/// Blocks the thread until a store has answered.
pub(super) fn wait<T>(answer: impl Future<Output = T>) -> io::Result<T> {
    Ok(runtime()?.block_on(answer))
}

/// The runtime that executes all requests to stores.
fn runtime() -> io::Result<&'static Runtime> {
    static RUNTIME: OnceLock<io::Result<Runtime>> = OnceLock::new();
    let make = || Builder::new_multi_thread().worker_threads(1).thread_name("objects").enable_all().build();
    RUNTIME.get_or_init(make).as_ref().map_err(|error| io::Error::new(error.kind(), error.to_string()))
}
