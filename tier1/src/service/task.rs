//! What the writer of a range is asked for.

use std::time::Duration;

use doppel_contract::{Backlog, Outcome};
use doppel_model::{GroupId, RangeId};
use doppel_protocol::range_owner::{PostDone, Traffic};
use doppel_protocol::{SearchResult, Submission, Tier1Error};

use super::changes::FollowCommits;
use super::room::{Arriving, Place, Reply};
use crate::machine::{Command, Hint};
use crate::peers::{PeerError, Post, Receipt};
use crate::range::owed::OwedWork;

/// A task for the writer.
pub(crate) enum Task {
    Submit {
        submissions: Vec<(Submission, Option<Hint>)>,
        arriving: Arriving,
        reply: Reply<Result<Vec<Outcome>, Tier1Error>>,
    },
    /// Commands of the range's own threads, which never wait for messages to leave.
    Commands(Vec<Command>),
    /// Results of searches, which do not wait either.
    Found {
        results: Vec<SearchResult>,
        place: Place,
    },
    /// Commands whose commit is waited for.
    Apply {
        commands: Vec<Command>,
        /// Whether they are held back while too many messages are on their way.
        may_wait: bool,
        reply: Reply<Result<(), Tier1Error>>,
    },
    /// How far the range is when everything handed in before is committed.
    Report {
        reply: Reply<Result<Report, Tier1Error>>,
    },
    /// Messages of another range.
    Posted {
        post: Post,
        done: PostDone,
    },
    /// What became of a post to another range.
    Receipt {
        by: RangeId,
        answer: Result<Receipt, PeerError>,
    },
    /// No message is to leave until there is a release; answered when none is under way.
    Hold {
        reply: Reply<()>,
    },
    Release,
    /// The worker is done with a group, whether or not there was anything to change.
    Recomputed {
        group: GroupId,
        took: Duration,
    },
    /// The worker has found the cover of a group, whether or not there was anything new.
    Covered {
        group: GroupId,
        took: Duration,
    },
    /// The worker has swept a piece of the rows.
    Swept,
    /// The worker has found what a piece of the rows owes; none at the end.
    Owed(Option<OwedWork>),
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
