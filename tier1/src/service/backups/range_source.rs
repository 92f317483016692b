//! A range as a backup reads it, in this process or in another one.

use std::io::{self, BufReader, Read};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crossbeam::channel::bounded;
use doppel_model::RangeId;
use doppel_protocol::range_owner::{BackupId, PeerError, RangeOwner};
use doppel_protocol::{BACKUP_PIECE_BYTES, BackupError, Tier1Error};

use crate::backup::{BackupWriter, copy_piece, copy_rows};
use crate::check::rows::END;
use crate::service::backups::spill::{CommitSpill, SpillRequest};
use crate::service::ownership::owner::Owner;
use crate::service::questions::rows::PIECE_ROWS;
use crate::service::writer::queue_space::{Reply, Reservation};
use crate::service::writer::task::Task;

/// How often another process is told that the backup goes on.
const TOUCH: Duration = Duration::from_secs(30);

/// A range of this process in a backup. Its writer spills commits until this value is dropped at the latest.
pub(in crate::service) struct LocalSource {
    pub(in crate::service) owner: Arc<Owner>,
    pub(in crate::service) changes: Arc<CommitSpill>,
}

/// A range of another process in a backup. That process forgets the backup when this value is dropped.
pub(super) struct RemoteSource {
    node: Arc<dyn RangeOwner>,
    range: RangeId,
    backup: BackupId,
    touched: Mutex<Instant>,
}

/// A range in a backup.
pub(super) enum RangeSource {
    Local(LocalSource),
    Remote(RemoteSource),
}

impl LocalSource {
    /// Has the writer spill the commits of a range to a file in `dir`.
    pub(in crate::service) fn begin(owner: &Arc<Owner>, dir: &Path) -> Result<Self, BackupError> {
        let changes = CommitSpill::new(dir);
        let changes = changes.map_err(|source| BackupError::Spill { dir: dir.to_owned(), source })?;
        let this = Self { owner: Arc::clone(owner), changes: Arc::new(changes) };
        this.follow(true)?;
        Ok(this)
    }

    fn follow(&self, on: bool) -> Result<(), Tier1Error> {
        let changes = Arc::clone(&self.changes);
        self.owner.ask(0, |reply| Task::Spill(SpillRequest { changes, on, reply }))?.wait()
    }

    /// Ends the spill after the commits so far.
    pub(in crate::service) fn cut(&self) -> Result<(), Tier1Error> {
        self.follow(false)
    }

    /// Holds messages to other ranges back, and returns when no post is under way.
    pub(in crate::service) fn hold(&self) -> Result<(), Tier1Error> {
        self.owner.ask(0, |reply| Task::Hold { reply })?.wait()
    }

    pub(in crate::service) fn release(&self) {
        // A writer that has ended holds nothing back.
        let _ = self.owner.tasks.send(Task::Release);
    }
}

impl Drop for LocalSource {
    fn drop(&mut self) {
        // This task needs no space in the queue, because each backup sends it once.
        let reply = Reply::new(bounded(1).0, Reservation::default());
        let follow = SpillRequest { changes: Arc::clone(&self.changes), on: false, reply };
        let _ = self.owner.tasks.send(Task::Spill(follow));
    }
}

impl RemoteSource {
    /// Has another process spill the commits of a range.
    pub(super) fn begin(
        node: &Arc<dyn RangeOwner>,
        range: RangeId,
        backup: BackupId,
    ) -> Result<Self, PeerError> {
        node.follow(range, backup)?;
        Ok(Self { node: Arc::clone(node), range, backup, touched: Mutex::new(Instant::now()) })
    }
}

impl Drop for RemoteSource {
    fn drop(&mut self) {
        // The other process forgets the backup by itself after a while.
        let _ = self.node.forget(self.range, self.backup);
    }
}

impl RangeSource {
    /// Copies a piece of the rows from `from` on, and moves `from` behind it. Returns false if there are no
    /// more rows.
    pub(super) fn copy_piece<W: io::Write>(
        &self,
        from: &mut Vec<u8>,
        writer: &mut BackupWriter<W>,
    ) -> Result<bool, BackupError> {
        match self {
            Self::Local(local) => copy_piece(&*local.owner.store, from, writer),
            Self::Remote(remote) => {
                let rows = remote.node.scan(remote.range, from, &END, PIECE_ROWS);
                copy_rows(&rows.map_err(Tier1Error::from)?, from, writer)
            }
        }
    }

    /// Holds messages back, see [`LocalSource::hold`].
    pub(super) fn hold(&self) -> Result<(), Tier1Error> {
        match self {
            Self::Local(local) => local.hold(),
            Self::Remote(remote) => Ok(remote.node.hold(remote.range, remote.backup)?),
        }
    }

    /// Lets messages leave again. Returns whether they were held back all the time.
    pub(super) fn release(&self) -> Result<bool, Tier1Error> {
        match self {
            Self::Local(local) => {
                local.release();
                Ok(true)
            }
            Self::Remote(remote) => Ok(remote.node.release(remote.range, remote.backup)?),
        }
    }

    /// Ends the spill, see [`LocalSource::cut`].
    pub(super) fn cut(&self) -> Result<(), Tier1Error> {
        match self {
            Self::Local(local) => local.cut(),
            Self::Remote(remote) => Ok(remote.node.cut(remote.range, remote.backup)?),
        }
    }

    /// Ensures that all commits were spilled so far.
    pub(super) fn check(&self, dir: &Path) -> Result<(), BackupError> {
        match self {
            Self::Local(local) => local.changes.check(dir),
            Self::Remote(remote) => {
                let mut touched = remote.touched.lock().unwrap_or_else(PoisonError::into_inner);
                if touched.elapsed() >= TOUCH {
                    remote.node.kept(remote.range, remote.backup, 0).map_err(Tier1Error::from)?;
                    *touched = Instant::now();
                }
                Ok(())
            }
        }
    }

    /// The spilled commits, to read after the cut.
    pub(super) fn changes(&self) -> io::Result<Box<dyn Read + Send>> {
        Ok(match self {
            Self::Local(local) => Box::new(local.changes.read()?),
            Self::Remote(RemoteSource { node, range, backup, .. }) => {
                let kept = RemoteSpill { node: Arc::clone(node), range: *range, backup: *backup, read: 0 };
                Box::new(BufReader::with_capacity(BACKUP_PIECE_BYTES, kept))
            }
        })
    }
}

/// Reads the commits that another process has spilled.
struct RemoteSpill {
    node: Arc<dyn RangeOwner>,
    range: RangeId,
    backup: BackupId,
    read: u64,
}

impl Read for RemoteSpill {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let piece = self.node.kept(self.range, self.backup, self.read).map_err(io::Error::other)?;
        let bytes = piece.len().min(out.len());
        out[..bytes].copy_from_slice(&piece[..bytes]);
        self.read += bytes as u64;
        Ok(bytes)
    }
}
