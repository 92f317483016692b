//! Tasks that are under way, and where their answers go.

use std::collections::VecDeque;

use crossbeam::channel::Sender;
use doppel_protocol::{Outcome, Tier1Error};

use crate::machine::Command;
use crate::range::Range;
use crate::service::task::{Report, Task};

/// A task whose commands are on their way.
pub(super) struct Waiting {
    pub(super) commands: VecDeque<Command>,
    pub(super) answered: Vec<Outcome>,
    reply: Reply,
}

enum Reply {
    Submit(Sender<Result<Vec<Outcome>, Tier1Error>>),
    Apply { may_wait: bool, to: Sender<Result<(), Tier1Error>> },
    Report(Sender<Result<Report, Tier1Error>>),
    Nobody,
}

impl Waiting {
    /// The commands of a task and where its answer goes; the task itself when it is of another kind.
    pub(super) fn new(task: Task) -> Result<Self, Task> {
        let (commands, reply) = match task {
            Task::Submit { submissions, reply } => {
                let commands = submissions
                    .into_iter()
                    .map(|(submission, hint)| Command::Submit { submission: Box::new(submission), hint })
                    .collect();
                (commands, Reply::Submit(reply))
            }
            Task::Commands(commands) => (commands.into(), Reply::Nobody),
            Task::Apply { commands, may_wait, reply } => {
                (commands.into(), Reply::Apply { may_wait, to: reply })
            }
            Task::Report { reply } => (VecDeque::new(), Reply::Report(reply)),
            other => return Err(other),
        };
        Ok(Self { commands, answered: Vec::new(), reply })
    }

    /// Whether it waits while too many messages are on their way. Submissions do, and commands that say so.
    pub(super) fn may_wait(&self) -> bool {
        let may_wait = match self.reply {
            Reply::Submit(_) => true,
            Reply::Apply { may_wait, .. } => may_wait,
            Reply::Report(_) | Reply::Nobody => false,
        };
        may_wait && !self.commands.is_empty()
    }

    pub(super) fn is_done(&self) -> bool {
        self.commands.is_empty()
    }

    /// Whether a commit can do anything for it.
    pub(super) fn is_due(&self, holds_back: bool) -> bool {
        !(self.is_done() || (holds_back && self.may_wait()))
    }

    /// Whether it is answered only after all before it.
    fn comes_last(&self) -> bool {
        matches!(self.reply, Reply::Report(_))
    }

    /// Takes out what is done and can be answered. While submissions are held back, the commands behind them are done
    /// first, and only a report waits for what is before it.
    pub(super) fn take_done(all: &mut VecDeque<Self>) -> Vec<Self> {
        let (mut done, mut left) = (Vec::new(), VecDeque::new());
        for entry in std::mem::take(all) {
            if entry.is_done() && (left.is_empty() || !entry.comes_last()) {
                done.push(entry);
            } else {
                left.push_back(entry);
            }
        }
        *all = left;
        done
    }

    /// Answers. A caller that has gone away does not want the answer any more.
    pub(super) fn finish(self, range: &Range) {
        match self.reply {
            Reply::Submit(reply) => drop(reply.send(Ok(self.answered))),
            Reply::Apply { to, .. } => drop(to.send(Ok(()))),
            Reply::Report(reply) => {
                let report = Report { backlog: range.backlog(), traffic: range.traffic() };
                drop(reply.send(Ok(report)));
            }
            Reply::Nobody => {}
        }
    }

    pub(super) fn refuse(self, refused: &Tier1Error) {
        match self.reply {
            Reply::Submit(reply) => drop(reply.send(Err(refused.clone()))),
            Reply::Apply { to, .. } => drop(to.send(Err(refused.clone()))),
            Reply::Report(reply) => drop(reply.send(Err(refused.clone()))),
            Reply::Nobody => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use crossbeam::channel::bounded;
    use doppel_model::PageId;

    use super::*;

    #[test]
    fn what_is_done_is_not_kept_behind_what_is_held_back() {
        let commands = || vec![Command::Purge { page: PageId::from_bytes([1; 16]) }];
        let (apply, report) = (bounded(1).0, bounded(1).0);
        let tasks = [
            Task::Commands(Vec::new()),
            Task::Apply { commands: commands(), may_wait: true, reply: apply },
            Task::Commands(Vec::new()),
            Task::Report { reply: report },
            Task::Commands(commands()),
            Task::Apply { commands: commands(), may_wait: false, reply: bounded(1).0 },
        ];
        let mut all: VecDeque<Waiting> =
            tasks.into_iter().filter_map(|task| Waiting::new(task).ok()).collect();
        let is_due: Vec<bool> = all.iter().map(|entry| entry.is_due(true)).collect();
        assert_eq!(is_due, [false, false, false, false, true, true]);
        assert_eq!(Waiting::take_done(&mut all).len(), 2);
        assert_eq!(all.len(), 4);
        // The commands behind the report are applied, and the one that waits is not.
        all.range_mut(2..).for_each(|entry| entry.commands.clear());
        assert_eq!(Waiting::take_done(&mut all).len(), 2);
        assert!(!all.iter().any(|entry| entry.is_due(true)) && all.iter().any(|entry| entry.is_due(false)));
        all[0].commands.clear();
        assert_eq!((Waiting::take_done(&mut all).len(), all.len()), (2, 0));
    }
}
