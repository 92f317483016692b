//! A backup while the service runs: the rows, in pieces as the caller takes them, and then every commit since
//! before the first piece was read.
//!
//! Each commit writes whole rows. A row that no commit has changed in the meantime is in the backup as it
//! still is. All other rows are in the commits. The rows with the commits applied in order are therefore the
//! state at the moment of the last commit.
//!
//! Several ranges are cut at different moments. Before the first cut all ranges hold their messages back and
//! wait for the answers to posts under way. They continue after the last cut. So no message is applied on one
//! side of the cut without being sent on the other, and no sender has forgotten a message that was not
//! applied.
//!
//! The commits are spilled to disk (`spill`), so the writer never waits for the caller.

use std::collections::VecDeque;
use std::io::Read;
use std::path::PathBuf;
use std::sync::Arc;

use doppel_model::random_number;
use doppel_protocol::{BACKUP_PIECE_BYTES, BackupError, BackupPiece, BackupStream, Tier1Error};

use crate::backup::BackupWriter;
use crate::service::backups::Backups;
use crate::service::backups::range_source::{LocalSource, RangeSource, RemoteSource};
use crate::service::backups::spill::copy_changes;
use crate::service::ownership::refusals::Refusals;

/// Messages between ranges are held back until this value is dropped.
struct MessageHold<'s>(Vec<&'s RangeSource>);

impl MessageHold<'_> {
    /// Lets messages leave again. Returns whether they were held back in all ranges until now.
    fn release(mut self) -> Result<bool, Tier1Error> {
        // Ranges of this process come first, so that they do not wait for calls to others.
        self.0.sort_by_key(|source| matches!(source, RangeSource::Local(_)));
        let mut all = true;
        while let Some(source) = self.0.pop() {
            all &= source.release()?;
        }
        Ok(all)
    }
}

impl Drop for MessageHold<'_> {
    fn drop(&mut self) {
        for source in &self.0 {
            // Another process lets messages leave by itself after a while.
            let _ = source.release();
        }
    }
}

/// The next step of a backup.
enum Step {
    /// Copies rows of a range from a key on.
    Rows { range: usize, from: Vec<u8> },
    /// Ends the spills of all ranges.
    Cut,
    /// Copies the spilled commits of a range.
    Changes { range: usize, changes: Box<dyn Read + Send> },
    /// Gives out the pieces that are left.
    Ended,
}

/// A backup that is under way. It advances only when the caller asks for a piece.
struct Backup {
    ranges: Vec<RangeSource>,
    refusals: Arc<Refusals>,
    /// Directory of the spills.
    dir: PathBuf,
    writer: BackupWriter<Vec<u8>>,
    step: Step,
    /// Pieces that are ready for the caller.
    pieces: VecDeque<BackupPiece>,
}

impl Backup {
    fn check(&self) -> Result<(), Tier1Error> {
        self.refusals.check()
    }

    /// Does something with a range, unless the service has failed.
    fn with(&self, act: impl FnOnce() -> Result<(), Tier1Error>) -> Result<(), Tier1Error> {
        self.check()?;
        let acted = act();
        self.check()?;
        acted
    }

    /// Holds messages between ranges back, and returns when no post is under way.
    fn hold(&self) -> Result<MessageHold<'_>, Tier1Error> {
        let mut held = MessageHold(Vec::new());
        if self.ranges.len() > 1 {
            for source in &self.ranges {
                held.0.push(source);
                self.with(|| source.hold())?;
            }
        }
        Ok(held)
    }

    /// Ensures that all commits were spilled so far.
    fn check_changes(&self) -> Result<(), BackupError> {
        self.ranges.iter().try_for_each(|range| range.check(&self.dir))
    }

    /// Ends the spills of all ranges at one consistent moment.
    fn cut(&self) -> Result<(), BackupError> {
        let held = self.hold()?;
        for range in &self.ranges {
            self.with(|| range.cut())?;
        }
        if !held.release()? {
            let why = "messages left a range before all ranges were cut; begin the backup again";
            return Err(Tier1Error::Unavailable(why.to_owned()).into());
        }
        self.check_changes()
    }

    /// The step that copies the commits of a range. After the last range it ends the backup.
    fn changes_of(&mut self, range: usize) -> Result<Step, BackupError> {
        if let Some(source) = self.ranges.get(range) {
            let changes = source.changes();
            let changes = changes.map_err(|source| BackupError::Spill { dir: self.dir.clone(), source })?;
            return Ok(Step::Changes { range, changes });
        }
        let summary = self.writer.end()?;
        self.take_bytes();
        self.pieces.push_back(BackupPiece::End(summary));
        Ok(Step::Ended)
    }

    /// Does a step and returns the next.
    fn advance(&mut self, step: Step) -> Result<Step, BackupError> {
        let next = match step {
            Step::Rows { range, mut from } => match self.ranges.get(range) {
                None => Step::Cut,
                Some(source) => {
                    let more = source.copy_piece(&mut from, &mut self.writer)?;
                    self.check_changes()?;
                    if more {
                        Step::Rows { range, from }
                    } else {
                        Step::Rows { range: range + 1, from: Vec::new() }
                    }
                }
            },
            Step::Cut => {
                self.cut()?;
                self.changes_of(0)?
            }
            Step::Changes { range, mut changes } => {
                if copy_changes(&mut changes, &mut self.writer, &self.dir)? {
                    self.check_changes()?;
                    Step::Changes { range, changes }
                } else {
                    self.changes_of(range + 1)?
                }
            }
            Step::Ended => Step::Ended,
        };
        self.take_bytes();
        Ok(next)
    }

    /// Cuts what was written into pieces.
    fn take_bytes(&mut self) {
        let bytes = std::mem::take(self.writer.out());
        self.pieces.extend(bytes.chunks(BACKUP_PIECE_BYTES).map(|piece| BackupPiece::Bytes(piece.to_vec())));
    }
}

impl Iterator for Backup {
    type Item = Result<BackupPiece, BackupError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(piece) = self.pieces.pop_front() {
                return Some(Ok(piece));
            }
            let step = std::mem::replace(&mut self.step, Step::Ended);
            if matches!(step, Step::Ended) {
                // The writers need not spill commits for a backup that is complete or has failed.
                self.ranges.clear();
                return None;
            }
            match self.advance(step) {
                Ok(next) => self.step = next,
                Err(error) => {
                    // The writers need not spill commits any more, and the space of the spills is given back.
                    self.ranges.clear();
                    return Some(Err(error));
                }
            }
        }
    }
}

impl Backups {
    /// Begins a backup of all ranges.
    pub(in crate::service) fn begin(&self) -> Result<BackupStream, BackupError> {
        let mut backup = Backup {
            ranges: Vec::new(),
            refusals: Arc::clone(&self.refusals),
            dir: self.dir.clone(),
            writer: BackupWriter::begin(Vec::new(), &self.manifest)?,
            step: Step::Rows { range: 0, from: Vec::new() },
            pieces: VecDeque::new(),
        };
        // The id is random, so no other backup has it.
        let id = random_number();
        for range in self.map.ranges() {
            backup.check()?;
            backup.ranges.push(if self.ranges.local_owner(range).is_some() {
                let owner = self.ranges.answering_owner(range).map_err(Tier1Error::from)?;
                RangeSource::Local(LocalSource::begin(&owner, &self.dir)?)
            } else {
                let node = self.ranges.remote_owner(range).map_err(Tier1Error::from)?;
                RangeSource::Remote(RemoteSource::begin(&node, range, id).map_err(Tier1Error::from)?)
            });
        }
        Ok(Box::new(backup))
    }
}
