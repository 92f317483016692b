//! A backup while the service goes on: the rows, read in pieces as the caller takes them, and after them every
//! change that the writer committed since before the first was read.
//!
//! Each commit writes whole rows. A row that no commit has touched meanwhile was read as it still is, and
//! for all others the changes have the last word; so the rows with the changes applied in order are the
//! state at the moment the changes end, and that lies between two commits.
//!
//! Several ranges are cut at different moments. Before the first is cut all of them hold their messages back and
//! have those under way answered, and go on with both after the last: so no message is applied on one side of the cut
//! that was not sent on the other, and none is forgotten by its sender that was not applied.
//!
//! The changes are kept on disk (`changes`), so the writer never waits for the caller.

pub(super) mod range_source;

use std::collections::VecDeque;
use std::io::Read;
use std::path::PathBuf;
use std::sync::Arc;

use doppel_model::random_number;
use doppel_protocol::{BACKUP_PIECE_BYTES, BackupError, BackupPiece, BackupStream, Tier1Error};

use super::changes::copy_changes;
use super::refusals::Refusals;
use super::{Node, Tier1};
use crate::backup::BackupWriter;
use range_source::{Following, RangeSource, Remote};

/// Messages between ranges are held back until this value is dropped.
struct Held<'s>(Vec<&'s RangeSource>);

impl Held<'_> {
    /// Lets messages leave again. Returns whether they were held back in all ranges until now.
    fn release(mut self) -> Result<bool, Tier1Error> {
        // Ranges of this process come first, so that they do not wait for calls to others.
        self.0.sort_by_key(|source| matches!(source, RangeSource::Here(_)));
        let mut all = true;
        while let Some(source) = self.0.pop() {
            all &= source.release()?;
        }
        Ok(all)
    }
}

impl Drop for Held<'_> {
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
    fn hold(&self) -> Result<Held<'_>, Tier1Error> {
        let mut held = Held(Vec::new());
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
            let why = "messages between ranges were not held back until all ranges were cut";
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

impl Tier1 {
    /// Begins a backup of all ranges.
    pub(super) fn begin_backup(&self) -> Result<BackupStream, BackupError> {
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
            backup.ranges.push(match self.at(range).map_err(Tier1Error::from)? {
                Node::There(node) => {
                    RangeSource::There(Remote::begin(&node, range, id).map_err(Tier1Error::from)?)
                }
                Node::Here(_) => {
                    let owner = self.own(range).map_err(Tier1Error::from)?;
                    RangeSource::Here(Following::begin(&owner, &self.dir)?)
                }
            });
        }
        Ok(Box::new(backup))
    }
}
