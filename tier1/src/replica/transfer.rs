//! The rows of a range from the node that owns it, for a replica of which the log does not reach back far enough.
//!
//! The owner goes on writing meanwhile, so the rows are of different moments; but none is of one before the record that the
//! owner was asked for first, and the log has all that was changed after that. Rows are whole, so whoever has followed the log
//! to its end has the rows of that moment. Before, nobody may own them, and a take-over does read to the end.
//!
//! | directory | what |
//! |---|---|
//! | `range-N.part` | rows that are coming |
//! | `range-N.whole` | all of them, to go where the replica is |
//! | `range-N.old` | what was there before |
//!
//! Invariant: what was there before goes only when all rows are on disk.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use doppel_model::RangeId;
use doppel_protocol::range_owner::{LogPlace, PeerError, RangeOwner};
use doppel_shared_log::LogError;

use crate::backup::verify;
use crate::check::rows::END;
use crate::database::Database;
use crate::files::sync_directory;
use crate::key;
use crate::log::{LogId, Position, SequencedPosition};
use crate::store::{Store as _, StoreError};
use crate::txn::Row;

/// Rows of one answer, at most; few in tests, so that they change in between.
const PIECE_ROWS: usize = if cfg!(test) { 10 } else { 1_000 };

/// How long the owner is asked again that does not answer, or another one.
const PATIENCE: Duration = Duration::from_secs(60);

/// The pause before that.
const PAUSE: Duration = Duration::from_millis(500);

/// Why there are no rows.
#[derive(Debug, thiserror::Error)]
pub enum TransferError {
    /// Nobody is known to own the range; later somebody may.
    #[error("its log does not reach back to what is here, and nobody owns range {0} to copy it from")]
    NoOwner(RangeId),
    /// The owner. Where it does not answer, it may later.
    #[error("its log does not reach back to what is here, and the range cannot be copied: {0}")]
    Owner(#[from] PeerError),
    /// The owner has another log.
    #[error("the owner of range {0} has another log")]
    OtherLog(RangeId),
    /// The owner is one before those that are known here.
    #[error(
        "what is here of range {range} contradicts its log, and is of epoch {here}, while the log is owned under epoch \
         {owner}: an owner that was deposed goes on, since the log has lost what deposed it. Stop that one, and keep this \
         directory: it may have what was acknowledged"
    )]
    Older {
        /// The range.
        range: RangeId,
        /// The owner's.
        owner: u64,
        /// That of the last record here.
        here: u64,
    },
    /// The log, which is asked whether what the owner has counts.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The files here.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Where the rows come from.
pub(crate) struct Source<'s> {
    pub(crate) range: RangeId,
    /// The log of the range.
    pub(crate) log: LogId,
    /// The index of the last record that is here: an owner that has less is none any more.
    pub(crate) has: u64,
    /// The epoch of what is here and contradicts the log; 0 where nothing does.
    pub(crate) epoch: u64,
    /// Whether a record is in the log: an owner whose last one is not there has what does not count.
    pub(crate) counts: &'s dyn Fn(SequencedPosition) -> Result<bool, LogError>,
    /// Who owns it at present. It may be another node each time.
    pub(crate) owner: &'s dyn Fn() -> Option<Arc<dyn RangeOwner>>,
    /// Databases that share the memory of the process.
    pub(crate) share: u16,
}

/// Told what was done so far, and ends the transfer by an error: behind which place the log is needed, and how many rows are
/// here; none before the owner has said.
pub(crate) type Progress<'p> = dyn FnMut(Option<(u64, u64)>) -> Result<(), StoreError> + 'p;

impl Source<'_> {
    /// Asks the owner, and whoever owns the range then where it does not answer.
    fn ask<T>(
        &self,
        mut go_on: impl FnMut() -> Result<(), StoreError>,
        ask: impl Fn(&dyn RangeOwner) -> Result<T, PeerError>,
    ) -> Result<T, TransferError> {
        let began = Instant::now();
        loop {
            let owner = (self.owner)().ok_or(TransferError::NoOwner(self.range));
            match owner.and_then(|owner| Ok(ask(&*owner)?)) {
                Err(_) if began.elapsed() < PATIENCE => {
                    go_on()?;
                    std::thread::sleep(PAUSE);
                }
                answer => return answer,
            }
        }
    }
}

fn beside(dir: &Path, ending: &str) -> PathBuf {
    let mut name = dir.file_name().map(OsString::from).unwrap_or_default();
    name.push(ending);
    dir.with_file_name(name)
}

fn failed(what: &'static str) -> impl Fn(&Path, &io::Error) -> StoreError {
    move |path, error| StoreError::of_file(what, path, error)
}

fn remove(dir: &Path) -> Result<(), StoreError> {
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(failed("remove a directory")(dir, &error))
        }
        _ => Ok(()),
    }
}

/// Puts rows that are all there where the replica is to be, as an earlier process may have left it undone. Nobody has the
/// database open.
///
/// # Errors
/// When directories cannot be renamed or removed.
pub(crate) fn settle(dir: &Path) -> Result<(), StoreError> {
    let (whole, old) = (beside(dir, ".whole"), beside(dir, ".old"));
    remove(&beside(dir, ".part"))?;
    if whole.exists() {
        let rename = |from: &Path, to: &Path| {
            fs::rename(from, to).map_err(|error| failed("rename a directory")(from, &error))
        };
        if dir.exists() {
            remove(&old)?;
            rename(dir, &old)?;
        }
        rename(&whole, dir)?;
        if let Some(parent) = dir.parent() {
            sync_directory(parent)?;
        }
    }
    remove(&old)
}

/// Copies all rows of a range beside `dir`. [`settle`] puts them there.
///
/// # Errors
/// When nobody owns the range, or its owner ends, or does not answer; when rows are damaged; and when they cannot be written.
pub(crate) fn transfer(
    source: &Source<'_>,
    dir: &Path,
    progress: &mut Progress<'_>,
) -> Result<(), TransferError> {
    let range = source.range;
    let state = source.ask(|| progress(None), |owner| owner.state(range))?;
    let LogPlace { record, sequence } = state.copied.ok_or(TransferError::OtherLog(range))?;
    if record.log != source.log.0 {
        return Err(TransferError::OtherLog(range));
    }
    if record.index < source.has {
        return Err(
            PeerError::unreachable(range, "its owner has less than is here, and so is deposed").into()
        );
    }
    if record.epoch < source.epoch {
        return Err(TransferError::Older { range, owner: record.epoch, here: source.epoch });
    }
    let position = Position { epoch: record.epoch, index: record.index, hash: record.hash };
    if !(source.counts)(SequencedPosition { position, sequence })? {
        return Err(
            PeerError::unreachable(range, "its owner has what does not count, and so is deposed").into()
        );
    }
    let part = beside(dir, ".part");
    remove(&part)?;
    let database = Database::open_share(&part, false, source.share)?;
    let (mut from, mut rows) = (Vec::new(), 0);
    loop {
        let so_far = Some((sequence, rows));
        progress(so_far)?;
        let ask = |owner: &dyn RangeOwner| owner.scan(range, &from, &END, PIECE_ROWS);
        let piece: Vec<Row> = source.ask(|| progress(so_far), ask)?;
        let Some((last, _)) = piece.last() else { break };
        if *last < from {
            let why = "its answer has rows that were not asked for";
            return Err(PeerError::unreachable(range, why).into());
        }
        from = key::after(last);
        rows += piece.len() as u64;
        for (key, row) in &piece {
            verify(key, row)?;
        }
        database.commit(piece.into_iter().map(|(key, row)| (key, Some(row))).collect())?;
    }
    database.become_replica(source.log, SequencedPosition { position, sequence })?;
    let whole = beside(dir, ".whole");
    remove(&whole)?;
    fs::rename(&part, &whole).map_err(|error| failed("rename a directory")(&part, &error))?;
    Ok(part.parent().map_or(Ok(()), sync_directory)?)
}
