//! What the writer is asked for, and who waits for it.

use std::collections::VecDeque;
use std::time::Duration;

use crossbeam::channel::Sender;
use doppel_model::GroupId;
use doppel_protocol::{Backlog, Outcome, Submission, Tier1Error};

use crate::machine::{Command, Hint};
use crate::peers::{PeerError, Post, Receipt};
use crate::range::owed::Owed;
use crate::range::{Range, RangeId, Traffic};
use crate::service::backup::FollowCommits;

/// A task for the writer.
pub(crate) enum Task {
    Submit {
        submissions: Vec<(Submission, Option<Hint>)>,
        reply: Sender<Result<Vec<Outcome>, Tier1Error>>,
    },
    /// Facts for the machine. They never wait for messages to leave.
    Commands(Vec<Command>),
    /// Commands whose commit is waited for.
    Apply {
        commands: Vec<Command>,
        reply: Sender<Result<(), Tier1Error>>,
    },
    /// How far the range is when everything handed in before is committed.
    Report {
        reply: Sender<Result<Report, Tier1Error>>,
    },
    /// Messages of another range.
    Posted {
        post: Post,
        reply: Sender<Result<Receipt, PeerError>>,
    },
    /// What became of a post to another range.
    Receipt {
        by: RangeId,
        answer: Result<Receipt, PeerError>,
    },
    /// No message is to leave until there is a release; answered when none is under way.
    Hold {
        reply: Sender<()>,
    },
    Release,
    /// The worker is done with a group, whether or not there was anything to change.
    Recomputed {
        group: GroupId,
        took: Duration,
    },
    /// The worker has swept a piece of the rows.
    Swept,
    /// The worker has found what a piece of the rows owes; none at the end.
    Owed(Option<Owed>),
    /// Background work is wanted at once.
    FlushBatch,
    FollowCommits(FollowCommits),
    Stop,
}

/// How far a range is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Report {
    pub(crate) backlog: Backlog,
    /// With each range.
    pub(crate) traffic: Vec<Traffic>,
}

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

impl Task {
    /// The task's commands and who waits for them; the task itself when it has none.
    pub(super) fn into_waiting(self) -> Result<Waiting, Self> {
        let (commands, reply) = match self {
            Self::Submit { submissions, reply } => {
                let commands = submissions
                    .into_iter()
                    .map(|(submission, hint)| Command::Submit { submission: Box::new(submission), hint })
                    .collect();
                (commands, Reply::Submit(reply))
            }
            Self::Commands(commands) => (commands.into(), Reply::Nobody),
            Self::Apply { commands, reply } => (commands.into(), Reply::Apply(reply)),
            Self::Report { reply } => (VecDeque::new(), Reply::Report(reply)),
            other => return Err(other),
        };
        Ok(Waiting { commands, answered: Vec::new(), reply })
    }
}

impl Waiting {
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

    /// Answers. Who has gone away does not want the answer any more.
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
