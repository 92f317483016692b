//! Tasks that are under way, and where their answers go.

use std::collections::VecDeque;

use doppel_protocol::{Outcome, Tier1Error};

use crate::machine::Command;
use crate::range::Range;
use crate::service::room::{Arriving, Place, Reply};
use crate::service::task::{Report, Task};

/// A task whose commands are on their way.
pub(super) struct Waiting {
    pub(super) commands: VecDeque<Command>,
    pub(super) answered: Vec<Outcome>,
    to: To,
}

/// Where the answer goes. What the task has taken of the bounds is kept until then.
enum To {
    Submit(Reply<Result<Vec<Outcome>, Tier1Error>>, Arriving),
    Apply { may_wait: bool, to: Reply<Result<(), Tier1Error>> },
    Report(Reply<Result<Report, Tier1Error>>),
    Nobody(Place),
}

impl Waiting {
    /// The commands of a task and where its answer goes; the task itself when it is of another kind.
    pub(super) fn new(task: Task) -> Result<Self, Task> {
        let (commands, to) = match task {
            Task::Submit { submissions, arriving, reply } => {
                let commands = submissions
                    .into_iter()
                    .map(|(submission, hint)| Command::Submit { submission: Box::new(submission), hint })
                    .collect();
                (commands, To::Submit(reply, arriving))
            }
            Task::Commands(commands) => (commands.into(), To::Nobody(Place::default())),
            Task::Found { results, place } => {
                (results.into_iter().map(Command::Searched).collect(), To::Nobody(place))
            }
            Task::Apply { commands, may_wait, reply } => (commands.into(), To::Apply { may_wait, to: reply }),
            Task::Report { reply } => (VecDeque::new(), To::Report(reply)),
            other => return Err(other),
        };
        Ok(Self { commands, answered: Vec::new(), to })
    }

    /// Whether it waits while too many messages are on their way. Submissions do, and commands that say so.
    pub(super) fn may_wait(&self) -> bool {
        let may_wait = match self.to {
            To::Submit(..) => true,
            To::Apply { may_wait, .. } => may_wait,
            To::Report(_) | To::Nobody(_) => false,
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
        matches!(self.to, To::Report(_))
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

    /// Answers. The pages are in the totals by now.
    pub(super) fn finish(self, range: &Range) {
        match self.to {
            To::Submit(reply, arriving) => {
                drop(arriving);
                reply.send(Ok(self.answered));
            }
            To::Apply { to, .. } => to.send(Ok(())),
            To::Report(reply) => {
                reply.send(Ok(Report { backlog: range.backlog(), traffic: range.traffic() }));
            }
            To::Nobody(place) => drop(place),
        }
    }

    pub(super) fn refuse(self, refused: &Tier1Error) {
        match self.to {
            To::Submit(reply, _) => reply.send(Err(refused.clone())),
            To::Apply { to, .. } => to.send(Err(refused.clone())),
            To::Report(reply) => reply.send(Err(refused.clone())),
            To::Nobody(place) => drop(place),
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
        let reply = || Reply::new(bounded(1).0, Place::default());
        let report = Reply::new(bounded(1).0, Place::default());
        let tasks = [
            Task::Commands(Vec::new()),
            Task::Apply { commands: commands(), may_wait: true, reply: reply() },
            Task::Commands(Vec::new()),
            Task::Report { reply: report },
            Task::Commands(commands()),
            Task::Apply { commands: commands(), may_wait: false, reply: reply() },
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
