//! Copies all rows of a range from the node that owns it. A replica needs this if the log was trimmed past
//! its last record, or contradicts its records.
//!
//! The owner continues to write during the transfer, so the copied rows have different ages. No row is older
//! than the record that the owner names at the beginning, and the log contains every later change. A record
//! contains whole rows. A replica that follows the log from that record to its end therefore has the rows of
//! the log's end. Before that, the rows are inconsistent, and no node may own them. A take-over reads to the
//! end of the log, so this cannot happen.
//!
//! | directory | contents |
//! |---|---|
//! | `range-N.part` | rows of a transfer that is under way |
//! | `range-N.whole` | rows of a complete transfer that is not yet installed |
//! | `range-N.old` | the previous database |
//!
//! Invariant: the previous database is removed only after all transferred rows are on disk.

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
use crate::rows::key;
use crate::storage::database::Database;
use crate::storage::files::sync_directory;
use crate::storage::log::{LogId, Position, SequencedPosition};
use crate::storage::store::{Store as _, StoreError};
use doppel_protocol::range_owner::EncodedRow;

/// Maximum number of rows in one answer of the owner. Tests use few, so that rows change between answers.
const PIECE_ROWS: usize = if cfg!(test) { 10 } else { 1_000 };

/// How long a request is repeated if the owner does not answer.
const RETRY_TIME: Duration = Duration::from_secs(60);

/// Pause before a request is repeated.
const PAUSE: Duration = Duration::from_millis(500);

/// Why a transfer has failed.
#[derive(Debug, thiserror::Error)]
pub enum TransferError {
    /// No node is known to own the range. A node may take it over later.
    #[error(
        "this node's copy of range {0} cannot continue from the log, and no node owns the range to copy it from; start \
         the other nodes with a replica"
    )]
    NoOwner(RangeId),
    /// The owner cannot be asked now. It may answer later.
    #[error(
        "this node's copy of the range cannot continue from the log, and the range cannot be copied from its owner: {0}"
    )]
    Owner(#[from] PeerError),
    /// The owner uses another log than this node.
    #[error(
        "the owner of range {0} uses another log than this node; check that both belong to the same cluster"
    )]
    OtherLog(RangeId),
    /// The owner has an earlier epoch than the last record on this node.
    #[error(
        "the records of range {range} on this node contradict its log, and have epoch {here}, but the owner has epoch \
         {owner}: the log has lost the record that deposed this owner. Stop the owner, and keep this directory, which \
         may contain acknowledged pages"
    )]
    Older {
        /// The range.
        range: RangeId,
        /// Epoch of the owner.
        owner: u64,
        /// Epoch of the last record on this node.
        here: u64,
    },
    /// The log cannot be asked whether the owner's records count.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The database on this node failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What a transfer needs to find the owner and to check its rows.
pub(crate) struct TransferSource<'s> {
    pub(crate) range: RangeId,
    /// Id of the range's log.
    pub(crate) log: LogId,
    /// Index of the last record on this node. An owner with fewer records has been deposed.
    pub(crate) last_index: u64,
    /// Epoch of the last record on this node if the log contradicts it; otherwise 0.
    pub(crate) contradicting_epoch: u64,
    /// Tells whether a record is in the log. An owner whose last record is not in the log has been deposed.
    pub(crate) is_in_log: &'s dyn Fn(SequencedPosition) -> Result<bool, LogError>,
    /// Returns the present owner, which may be another node at each call.
    pub(crate) owner: &'s dyn Fn() -> Option<Arc<dyn RangeOwner>>,
    /// Number of databases that share the memory of the process.
    pub(crate) databases: u16,
}

/// Callback for the progress of a transfer. It receives the sequence number after which this node will need
/// the log, and the number of rows so far. It receives `None` before the owner has answered. An error ends
/// the transfer.
pub(crate) type TransferProgress<'p> = dyn FnMut(Option<(u64, u64)>) -> Result<(), StoreError> + 'p;

impl TransferSource<'_> {
    /// Asks the owner. If the owner does not answer, asks the node that owns the range then, until
    /// [`RETRY_TIME`] is over.
    fn ask<T>(
        &self,
        mut report_progress: impl FnMut() -> Result<(), StoreError>,
        ask: impl Fn(&dyn RangeOwner) -> Result<T, PeerError>,
    ) -> Result<T, TransferError> {
        let began = Instant::now();
        loop {
            let owner = (self.owner)().ok_or(TransferError::NoOwner(self.range));
            match owner.and_then(|owner| Ok(ask(&*owner)?)) {
                Err(_) if began.elapsed() < RETRY_TIME => {
                    report_progress()?;
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

/// Replaces the database in `dir` by the rows of a complete transfer, if there is one. Completes what an
/// earlier process has left unfinished, and removes an incomplete transfer. No process may have the database
/// open.
///
/// # Errors
/// If directories cannot be renamed or removed.
pub(crate) fn install_transfer(dir: &Path) -> Result<(), StoreError> {
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

/// Copies all rows of a range into a directory beside `dir`. [`install_transfer`] then replaces the database
/// in `dir`.
///
/// # Errors
/// If no node owns the range, the owner does not answer or has been deposed, a row is damaged, or rows cannot
/// be written.
pub(crate) fn transfer(
    source: &TransferSource<'_>,
    dir: &Path,
    progress: &mut TransferProgress<'_>,
) -> Result<(), TransferError> {
    let range = source.range;
    let state = source.ask(|| progress(None), |owner| owner.state(range))?;
    let LogPlace { record, sequence } = state.copied.ok_or(TransferError::OtherLog(range))?;
    if record.log != source.log.0 {
        return Err(TransferError::OtherLog(range));
    }
    if record.index < source.last_index {
        return Err(PeerError::unreachable(
            range,
            "its owner has fewer records than this node, so it was deposed",
        )
        .into());
    }
    if record.epoch < source.contradicting_epoch {
        return Err(TransferError::Older { range, owner: record.epoch, here: source.contradicting_epoch });
    }
    let position = Position { epoch: record.epoch, index: record.index, hash: record.hash };
    if !(source.is_in_log)(SequencedPosition { position, sequence })? {
        return Err(PeerError::unreachable(
            range,
            "its owner has a record that is not in the log, so it was deposed",
        )
        .into());
    }
    let part = beside(dir, ".part");
    remove(&part)?;
    let database = Database::open_share(&part, false, source.databases)?;
    let (mut from, mut rows) = (Vec::new(), 0);
    loop {
        let so_far = Some((sequence, rows));
        progress(so_far)?;
        let ask = |owner: &dyn RangeOwner| owner.scan(range, &from, &END, PIECE_ROWS);
        let piece: Vec<EncodedRow> = source.ask(|| progress(so_far), ask)?;
        let Some((last, _)) = piece.last() else { break };
        if *last < from {
            let why = "the owner answered with rows that were not requested";
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
