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

use std::collections::VecDeque;
use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use crossbeam::channel::{Sender, bounded};
use doppel_protocol::{BACKUP_PIECE_BYTES, BackupError, BackupPiece, BackupStream, Tier1Error};

use super::Tier1;
use super::changes::{Changes, FollowCommits, copy_changes};
use super::owner::Owner;
use super::task::Task;
use crate::backup::{Writer, copy_piece};

/// A range that is backed up. Its writer follows with the changes until this is dropped at the latest.
struct Following {
    owner: Arc<Owner>,
    changes: Arc<Changes>,
}

impl Drop for Following {
    fn drop(&mut self) {
        let (reply, _) = bounded(1);
        let follow = FollowCommits { changes: Arc::clone(&self.changes), on: false, reply };
        let _ = self.owner.tasks.send(Task::FollowCommits(follow));
    }
}

/// Messages between ranges stay where they are until this is dropped.
struct Held<'t>(Vec<&'t Owner>);

impl Drop for Held<'_> {
    fn drop(&mut self) {
        for owner in &self.0 {
            let _ = owner.tasks.send(Task::Release);
        }
    }
}

/// What a backup does next.
enum Step {
    /// Copies rows of a range from a key on.
    Rows { range: usize, from: Vec<u8> },
    /// Ends the changes.
    Cut,
    /// Copies the changes of a range.
    Changes { range: usize, changes: BufReader<File> },
    /// Gives the pieces that are left.
    Ended,
}

/// A backup on its way. It advances only while it is asked for a piece.
struct Backup {
    ranges: Vec<Following>,
    broken: Arc<OnceLock<Tier1Error>>,
    /// Where the changes are kept.
    dir: PathBuf,
    writer: Writer<Vec<u8>>,
    step: Step,
    /// Pieces that were made and not yet taken.
    pieces: VecDeque<BackupPiece>,
}

impl Backup {
    fn check(&self) -> Result<(), Tier1Error> {
        self.broken.get().map_or(Ok(()), |refused| Err(refused.clone()))
    }

    /// Asks a writer and waits for its answer.
    fn ask(&self, owner: &Owner, task: impl FnOnce(Sender<()>) -> Task) -> Result<(), Tier1Error> {
        self.check()?;
        let answered = owner.ask(task)?.wait();
        self.check()?;
        answered
    }

    /// Begins or ends with the changes of a range.
    fn follow(&self, range: &Following, on: bool) -> Result<(), Tier1Error> {
        let changes = Arc::clone(&range.changes);
        self.ask(&range.owner, |reply| Task::FollowCommits(FollowCommits { changes, on, reply }))
    }

    /// Holds messages between ranges back, and returns when none is under way.
    fn hold(&self) -> Result<Held<'_>, Tier1Error> {
        let mut held = Held(Vec::new());
        if self.ranges.len() > 1 {
            for Following { owner, .. } in &self.ranges {
                held.0.push(owner);
                self.ask(owner, |reply| Task::Hold { reply })?;
            }
        }
        Ok(held)
    }

    /// Whether all changes were kept so far.
    fn check_changes(&self) -> Result<(), BackupError> {
        self.ranges.iter().try_for_each(|range| range.changes.check(&self.dir))
    }

    /// Ends the changes of all ranges at one moment.
    fn cut(&self) -> Result<(), BackupError> {
        let held = self.hold()?;
        for range in &self.ranges {
            self.follow(range, false)?;
        }
        drop(held);
        self.check_changes()
    }

    /// The changes of a range; the end after the last range.
    fn changes_of(&mut self, range: usize) -> Result<Step, BackupError> {
        if let Some(following) = self.ranges.get(range) {
            let changes = following.changes.read();
            let changes = changes.map_err(|source| BackupError::Spill { dir: self.dir.clone(), source })?;
            return Ok(Step::Changes { range, changes });
        }
        let summary = self.writer.end()?;
        self.take_bytes();
        self.pieces.push_back(BackupPiece::End(summary));
        Ok(Step::Ended)
    }

    /// Does a step, and gives the next.
    fn advance(&mut self, step: Step) -> Result<Step, BackupError> {
        let next = match step {
            Step::Rows { range, mut from } => match self.ranges.get(range) {
                None => Step::Cut,
                Some(Following { owner, .. }) => {
                    let more = copy_piece(&*owner.store, &mut from, &mut self.writer)?;
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

    /// Makes pieces of what was written.
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
                // The writers need not follow a backup that is complete or has failed.
                self.ranges.clear();
                return None;
            }
            match self.advance(step) {
                Ok(next) => self.step = next,
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

impl Tier1 {
    /// Begins a backup.
    pub(super) fn begin_backup(&self) -> Result<BackupStream, BackupError> {
        let mut backup = Backup {
            ranges: Vec::new(),
            broken: Arc::clone(&self.broken),
            dir: self.dir.clone(),
            writer: Writer::begin(Vec::new(), &self.manifest)?,
            step: Step::Rows { range: 0, from: Vec::new() },
            pieces: VecDeque::new(),
        };
        for owner in &self.owners {
            let changes = Changes::new(&self.dir);
            let changes = changes.map_err(|source| BackupError::Spill { dir: self.dir.clone(), source })?;
            let following = Following { owner: Arc::clone(owner), changes: Arc::new(changes) };
            backup.follow(&following, true)?;
            backup.ranges.push(following);
        }
        Ok(Box::new(backup))
    }
}
