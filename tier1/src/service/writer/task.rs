//! Tasks for the writer of a range.

use std::time::Duration;

use doppel_contract::{Backlog, SubmissionOutcome};
use doppel_model::{GroupId, RangeId};
use doppel_protocol::range_owner::{MessageCounts, PostCallback};
use doppel_protocol::{SearchResult, Submission, Tier1Error};

use crate::machine::{Command, Hint};
use crate::peers::{PeerError, Post, Receipt};
use crate::range::owed::OwedWork;
use crate::service::backups::spill::SpillRequest;
use crate::service::submissions::arrivals::Arriving;
use crate::service::writer::queue_space::{Reply, Reservation};

/// A task for the writer.
pub(crate) enum Task {
    Submit {
        submissions: Vec<(Submission, Option<Hint>)>,
        arriving: Arriving,
        reply: Reply<Result<Vec<SubmissionOutcome>, Tier1Error>>,
    },
    /// Commands of the range's own threads. They never wait for messages to leave.
    Commands(Vec<Command>),
    /// Search results. They never wait for messages to leave.
    SearchResults {
        results: Vec<SearchResult>,
        reservation: Reservation,
    },
    /// Commands for whose commit a caller waits.
    Apply {
        commands: Vec<Command>,
        /// Whether the commands are held back while too many messages wait to leave the range.
        may_wait: bool,
        reply: Reply<Result<(), Tier1Error>>,
    },
    /// Asks for the state of the range after everything that was handed in before is committed.
    Report {
        reply: Reply<Result<RangeBacklog, Tier1Error>>,
    },
    /// Messages of another range.
    Post {
        post: Post,
        done: PostCallback,
    },
    /// The answer of another range to a post.
    Receipt {
        by: RangeId,
        answer: Result<Receipt, PeerError>,
    },
    /// Holds messages back until a `Release`. Answered when no post is under way.
    Hold {
        reply: Reply<()>,
    },
    Release,
    /// Reports that the worker is done with a recomputation, whether or not it changed anything.
    RecomputationDone {
        group: GroupId,
        took: Duration,
    },
    /// Reports that the worker is done with a cover, whether or not it changed anything.
    CoverDone {
        group: GroupId,
        took: Duration,
    },
    /// Reports that the worker has swept a piece of the rows.
    SweepDone,
    /// What the worker has found that a piece of the rows owes. `None` after the last piece.
    OwedWork(Option<OwedWork>),
    /// Asks for background work at once.
    FlushBatch,
    Spill(SpillRequest),
    Stop,
}

/// The state of a range after a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RangeBacklog {
    pub(crate) backlog: Backlog,
    /// Numbers of messages exchanged with each range.
    pub(crate) traffic: Vec<MessageCounts>,
}
