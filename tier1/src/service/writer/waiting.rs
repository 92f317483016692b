//! Tasks that wait for commits, in their order, and where their answers go.
//!
//! Few pages do not wait for many. A submission of up to [`FEW`] pages passes larger ones, and work that no
//! caller waits for. So one client that sends batches without a pause does not make the others wait for all
//! of them. Each task is passed at most [`PASSED_MAX`] times.
//!
//! A task that is passed is not answered yet, but its caller may have given up and sent a newer version. A
//! submission therefore never passes a change of the same page, and nothing passes the commands of an
//! operator.

use std::collections::{HashSet, VecDeque};

use doppel_contract::SubmissionOutcome;
use doppel_model::PageUrl;
use doppel_protocol::Tier1Error;

use crate::machine::Command;
use crate::range::Range;
use crate::service::submissions::arrivals::Arriving;
use crate::service::writer::queue_space::{Reply, Reservation};
use crate::service::writer::task::{RangeBacklog, Task};

/// Most pages of a submission that passes larger tasks.
const FEW: usize = 16;

/// How often a task may be passed: as often as a batch has pages, if each comes alone.
const PASSED_MAX: usize = 256;

/// A task whose commands wait for commits.
pub(super) struct WaitingTask {
    pub(super) commands: VecDeque<Command>,
    pub(super) outcomes: Vec<SubmissionOutcome>,
    to: AnswerTo,
    /// How many later submissions were put before this task.
    passed: usize,
}

/// Where the answer goes. The space that the task has reserved is kept until then.
enum AnswerTo {
    Submit(Reply<Result<Vec<SubmissionOutcome>, Tier1Error>>, Arriving),
    Apply { may_wait: bool, to: Reply<Result<(), Tier1Error>> },
    Report(Reply<Result<RangeBacklog, Tier1Error>>),
    Nobody(Reservation),
}

impl WaitingTask {
    /// Splits a task into commands and the receiver of its answer. Returns the task itself if it has no
    /// commands for the machine.
    pub(super) fn new(task: Task) -> Result<Self, Task> {
        let (commands, to) = match task {
            Task::Submit { submissions, arriving, reply } => {
                let client = arriving.client();
                let command =
                    |(submission, hint)| Command::Submit { submission: Box::new(submission), hint, client };
                let commands = submissions.into_iter().map(command).collect();
                (commands, AnswerTo::Submit(reply, arriving))
            }
            Task::Commands(commands) => (commands.into(), AnswerTo::Nobody(Reservation::default())),
            Task::SearchResults { results, reservation } => {
                (results.into_iter().map(Command::Searched).collect(), AnswerTo::Nobody(reservation))
            }
            Task::Apply { commands, may_wait, reply } => {
                (commands.into(), AnswerTo::Apply { may_wait, to: reply })
            }
            Task::Report { reply } => (VecDeque::new(), AnswerTo::Report(reply)),
            other => return Err(other),
        };
        Ok(Self { commands, outcomes: Vec::new(), to, passed: 0 })
    }

    /// Whether the task is a submission of few pages.
    pub(super) fn is_small(&self) -> bool {
        matches!(self.to, AnswerTo::Submit(..)) && self.commands.len() <= FEW
    }

    /// Whether the later submission `to` may be put before this task.
    fn can_be_passed_by(&self, to: &Self) -> bool {
        let is_other = match self.to {
            AnswerTo::Submit(..) => {
                let pages: HashSet<_> = to.commands.iter().filter_map(submitted).collect();
                self.commands.len() > FEW
                    && !self.commands.iter().filter_map(submitted).any(|page| pages.contains(page))
            }
            AnswerTo::Nobody(_) => true,
            AnswerTo::Apply { .. } | AnswerTo::Report(_) => false,
        };
        is_other && self.passed < PASSED_MAX
    }

    /// Puts the task in its place in the queue.
    pub(super) fn enqueue(self, all: &mut VecDeque<Self>) {
        let may_pass = self.is_small();
        let passed = all.iter_mut().rev().take_while(|entry| may_pass && entry.can_be_passed_by(&self));
        let passed = passed.map(|entry| entry.passed += 1).count();
        all.insert(all.len() - passed, self);
    }

    /// Whether the task waits while too many messages wait to leave the range. Submissions do, and commands
    /// that say so.
    pub(super) fn can_wait(&self) -> bool {
        let may_wait = match self.to {
            AnswerTo::Submit(..) => true,
            AnswerTo::Apply { may_wait, .. } => may_wait,
            AnswerTo::Report(_) | AnswerTo::Nobody(_) => false,
        };
        may_wait && !self.commands.is_empty()
    }

    /// Whether a caller has handed in the task and can still get its answer before the process ends.
    pub(super) fn is_owed_at_the_end(&self, holds_back: bool) -> bool {
        match self.to {
            AnswerTo::Submit(..) | AnswerTo::Apply { .. } => self.is_done() || self.is_due(holds_back),
            AnswerTo::Report(_) | AnswerTo::Nobody(_) => false,
        }
    }

    pub(super) fn is_done(&self) -> bool {
        self.commands.is_empty()
    }

    /// Whether a commit can apply a command of the task.
    pub(super) fn is_due(&self, holds_back: bool) -> bool {
        !(self.is_done() || (holds_back && self.can_wait()))
    }

    /// Whether the task is answered only after all tasks before it.
    fn is_answered_last(&self) -> bool {
        matches!(self.to, AnswerTo::Report(_))
    }

    /// Takes the tasks that are done and can be answered.
    ///
    /// While submissions are held back, commands behind them are done first. Only a report waits for the
    /// tasks before it.
    pub(super) fn take_done(all: &mut VecDeque<Self>) -> Vec<Self> {
        let (mut done, mut left) = (Vec::new(), VecDeque::new());
        for entry in std::mem::take(all) {
            if entry.is_done() && (left.is_empty() || !entry.is_answered_last()) {
                done.push(entry);
            } else {
                left.push_back(entry);
            }
        }
        *all = left;
        done
    }

    /// Sends the answer. The figures contain the pages by now.
    pub(super) fn finish(self, range: &Range) {
        match self.to {
            AnswerTo::Submit(reply, arriving) => {
                drop(arriving);
                reply.send(Ok(self.outcomes));
            }
            AnswerTo::Apply { to, .. } => to.send(Ok(())),
            AnswerTo::Report(reply) => {
                reply.send(Ok(RangeBacklog { backlog: range.backlog(), traffic: range.traffic() }));
            }
            AnswerTo::Nobody(reservation) => drop(reservation),
        }
    }

    pub(super) fn refuse(self, refused: &Tier1Error) {
        match self.to {
            AnswerTo::Submit(reply, _) => reply.send(Err(refused.clone())),
            AnswerTo::Apply { to, .. } => to.send(Err(refused.clone())),
            AnswerTo::Report(reply) => reply.send(Err(refused.clone())),
            AnswerTo::Nobody(reservation) => drop(reservation),
        }
    }
}

fn submitted(command: &Command) -> Option<&PageUrl> {
    match command {
        Command::Submit { submission, .. } => Some(&submission.url),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::ops::Range;
    use std::sync::Arc;

    use crossbeam::channel::bounded;
    use doppel_model::{ClientId, PageId, Timestamp};
    use doppel_protocol::{Body, Submission};

    use super::*;

    /// A submission of the pages with these numbers.
    fn submission(pages: Range<usize>) -> Task {
        let page = |at: usize| Submission {
            url: PageUrl::parse(&format!("http://a.example/{at}")).unwrap(),
            fetched_at: Timestamp::from_millis(0),
            popularity: None,
            language: None,
            canonical: None,
            body: Body::Dead,
        };
        Task::Submit {
            submissions: pages.map(|at| (page(at), None)).collect(),
            arriving: Arriving::count(&Arc::default(), ClientId::NONE, 0).0,
            reply: Reply::new(bounded(1).0, Reservation::default()),
        }
    }

    #[test]
    fn small_submissions_pass_large_ones_a_limited_number_of_times() {
        let mut next = 0;
        let mut submit = |pages: usize| {
            next += pages;
            submission(next - pages..next)
        };
        let mut all = VecDeque::new();
        let mut enqueue = |task| WaitingTask::new(task).ok().unwrap().enqueue(&mut all);
        enqueue(submit(FEW + 1));
        enqueue(Task::Report { reply: Reply::new(bounded(1).0, Reservation::default()) });
        enqueue(submit(200));
        enqueue(submit(2));
        enqueue(submit(201));
        enqueue(submit(FEW));
        enqueue(submit(1));
        let sizes =
            |all: &VecDeque<WaitingTask>| all.iter().map(|entry| entry.commands.len()).collect::<Vec<_>>();
        assert_eq!(sizes(&all), [FEW + 1, 0, 2, FEW, 1, 200, 201]);
        for _ in 0..PASSED_MAX + 9 {
            WaitingTask::new(submit(1)).ok().unwrap().enqueue(&mut all);
        }
        let end = sizes(&all).split_off(all.len() - 14);
        // The smaller submission had been passed once more before.
        assert_eq!(end, [vec![200, 1, 201], vec![1; 11]].concat());
        let apply = |pages: usize| Task::Apply {
            commands: (0..pages).map(|_| Command::Purge { page: PageId::from_bytes([1; 16]) }).collect(),
            may_wait: true,
            reply: Reply::new(bounded(1).0, Reservation::default()),
        };
        let mut all = VecDeque::new();
        for task in [apply(FEW + 1), submit(1), Task::Commands(Vec::new()), submit(2)] {
            WaitingTask::new(task).ok().unwrap().enqueue(&mut all);
        }
        assert_eq!(sizes(&all), [FEW + 1, 1, 2, 0], "commands of an operator are not passed");
    }

    #[test]
    fn a_submission_does_not_pass_an_earlier_change_of_its_page() {
        let mut all = VecDeque::new();
        for pages in [0..30, 29..30, 30..99, 29..30, 30..32] {
            let task = submission(pages);
            WaitingTask::new(task).ok().unwrap().enqueue(&mut all);
        }
        assert_eq!(all.iter().map(|entry| entry.commands.len()).collect::<Vec<_>>(), [30, 1, 1, 69, 2]);
    }

    #[test]
    fn finished_tasks_are_answered_before_tasks_that_are_held_back() {
        let commands = || vec![Command::Purge { page: PageId::from_bytes([1; 16]) }];
        let reply = || Reply::new(bounded(1).0, Reservation::default());
        let report = Reply::new(bounded(1).0, Reservation::default());
        let tasks = [
            Task::Commands(Vec::new()),
            Task::Apply { commands: commands(), may_wait: true, reply: reply() },
            Task::Commands(Vec::new()),
            Task::Report { reply: report },
            Task::Commands(commands()),
            Task::Apply { commands: commands(), may_wait: false, reply: reply() },
        ];
        let mut all: VecDeque<WaitingTask> =
            tasks.into_iter().filter_map(|task| WaitingTask::new(task).ok()).collect();
        let is_due: Vec<bool> = all.iter().map(|entry| entry.is_due(true)).collect();
        assert_eq!(is_due, [false, false, false, false, true, true]);
        assert_eq!(WaitingTask::take_done(&mut all).len(), 2);
        assert_eq!(all.len(), 4);
        // The commands behind the report are applied, and the one that waits is not.
        all.range_mut(2..).for_each(|entry| entry.commands.clear());
        assert_eq!(WaitingTask::take_done(&mut all).len(), 2);
        assert!(!all.iter().any(|entry| entry.is_due(true)) && all.iter().any(|entry| entry.is_due(false)));
        all[0].commands.clear();
        assert_eq!((WaitingTask::take_done(&mut all).len(), all.len()), (2, 0));
    }
}
