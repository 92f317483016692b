//! A backup while the service goes on: the rows, read in pieces at the caller's pace, and after them every
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

use std::io;
use std::path::Path;
use std::sync::Arc;

use crossbeam::channel::{Sender, bounded};
use doppel_protocol::{BackupError, BackupSummary, Tier1Error};

use super::Tier1;
use super::changes::{Changes, FollowCommits};
use super::owner::Owner;
use super::task::Task;
use crate::backup::{Writer, copy_rows};

/// Ends with the backup of a range however it ends.
struct Following<'t> {
    tier1: &'t Tier1,
    owner: &'t Owner,
    changes: Arc<Changes>,
}

impl Following<'_> {
    fn ask(&self, on: bool) -> Result<(), Tier1Error> {
        let changes = Arc::clone(&self.changes);
        self.tier1.ask(self.owner, |reply| Task::FollowCommits(FollowCommits { changes, on, reply }))
    }
}

impl Drop for Following<'_> {
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

impl Tier1 {
    /// Asks a writer and waits for its answer.
    fn ask(&self, owner: &Owner, task: impl FnOnce(Sender<()>) -> Task) -> Result<(), Tier1Error> {
        self.check()?;
        let answered = owner.ask(task)?.wait();
        self.check()?;
        answered
    }

    /// Holds messages between ranges back, and returns when none is under way.
    fn hold(&self) -> Result<Held<'_>, Tier1Error> {
        let mut held = Held(Vec::new());
        if self.owners.len() > 1 {
            for owner in &self.owners {
                held.0.push(owner);
                self.ask(owner, |reply| Task::Hold { reply })?;
            }
        }
        Ok(held)
    }

    /// Writes a backup of the state at some moment before it returns.
    pub(super) fn write_backup(
        &self,
        dir: &Path,
        out: &mut dyn io::Write,
    ) -> Result<BackupSummary, BackupError> {
        let spill = |source| BackupError::Spill { dir: dir.to_owned(), source };
        let mut all = Vec::new();
        for owner in &self.owners {
            let changes = Arc::new(Changes::new(dir).map_err(spill)?);
            let following = Following { tier1: self, owner, changes };
            following.ask(true)?;
            all.push(following);
        }
        let check = || all.iter().try_for_each(|following| following.changes.check(dir));
        let mut writer = Writer::begin(out, &self.manifest)?;
        for owner in &self.owners {
            copy_rows(&*owner.store, &mut writer, &mut || check())?;
        }
        let held = self.hold()?;
        for following in &all {
            following.ask(false)?;
        }
        drop(held);
        check()?;
        for following in &all {
            following.changes.write(dir, &mut writer)?;
        }
        writer.end()
    }
}
