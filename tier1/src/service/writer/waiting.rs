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
    Apply(Sender<Result<(), Tier1Error>>),
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
            Task::Apply { commands, reply } => (commands.into(), Reply::Apply(reply)),
            Task::Report { reply } => (VecDeque::new(), Reply::Report(reply)),
            other => return Err(other),
        };
        Ok(Self { commands, answered: Vec::new(), reply })
    }

    /// Whether it waits while too many messages are on their way. Facts do not.
    pub(super) fn may_wait(&self) -> bool {
        match self.reply {
            Reply::Submit(_) | Reply::Apply(_) => !self.commands.is_empty(),
            Reply::Report(_) | Reply::Nobody => false,
        }
    }

    pub(super) fn is_done(&self) -> bool {
        self.commands.is_empty()
    }

    /// Answers. A caller that has gone away does not want the answer any more.
    pub(super) fn finish(self, range: &Range) {
        match self.reply {
            Reply::Submit(reply) => drop(reply.send(Ok(self.answered))),
            Reply::Apply(reply) => drop(reply.send(Ok(()))),
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
            Reply::Apply(reply) => drop(reply.send(Err(refused.clone()))),
            Reply::Report(reply) => drop(reply.send(Err(refused.clone()))),
            Reply::Nobody => {}
        }
    }
}
