//! Calls to a node of tier 1 that owns ranges, as the other nodes see it.
//!
//! [`RemoteRanges`] is the client, and [`serve`] is the server. A call that fails in transit returns
//! [`PeerError::Unreachable`].

use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use doppel_contract::SubmissionOutcome;
use doppel_model::{ClientId, GroupId, PageId, RangeId};
use doppel_protocol::range_owner::{
    BackupId, EncodedPost, EncodedRow, PeerError, PostCallback, RangeOwner, RangeReport, RangeState, Receipt,
};
use doppel_protocol::{
    BACKUP_PIECE_BYTES, DatedAnswer, LogPosition, ReadTarget, RepairReport, Repeat, SearchResult, Submission,
    Tier1Error, VerifiedPartner,
};

use crate::transport::call::{Call, calls, with};
use crate::transport::call_sizes::{
    CallError as _, SIGNATURES_BYTES, SIGNATURES_BYTES_MAX, count_fitting, submit_in_batches,
    with_smaller_limits,
};
use crate::transport::circuit_breaker::{CallFailure, CircuitBreaker, NODE_WAIT};
use crate::transport::listener::CallListener;
use crate::transport::peer::Peer;
use crate::transport::wire_error::WireError;

/// Number of concurrent calls of each group: reads, posts (which wait until they are applied), and other
/// calls.
const CALLS: usize = 64;

/// Number of concurrent calls whose work grows with the size of the range.
const LONG_CALLS: usize = 8;

/// Maximum number of keys in one call.
const KEYS_MAX: usize = 4_096;

/// Maximum number of search results in one call.
const RESULTS_MAX: usize = 1_000;

/// How long the server waits for a post to be applied.
const POST_TIME: Duration = Duration::from_secs(30);

/// Maximum wait of one call for a report.
const PATIENCE: Duration = Duration::from_secs(20);

/// Maximum size of a body with rows, in bytes. It has room for the longest row.
const ROWS_BYTES_MAX: usize = 96 << 20;

/// Maximum size of a list of short entries, in bytes.
const LIST_BYTES_MAX: usize = 16 << 20;

/// Maximum size of the list of pages of a range, in bytes. Each page takes 16.
const PAGES_BYTES_MAX: usize = 512 << 20;

/// Maximum size of the URLs of a group, in bytes.
const GROUP_BYTES_MAX: usize = 128 << 20;

/// Deadline for reading rows, and for a call that waits for nothing.
const READ: Duration = Duration::from_secs(15);
const SHORT: Duration = Duration::from_secs(5);

/// Deadline of the calls while messages are held back for a backup.
const HOLD: Duration = Duration::from_secs(30);

/// How long a node is skipped after it did not answer in time, or could not be reached. Calls during this
/// time would only wait as well.
const LATE_SKIP: Duration = Duration::from_secs(5);
const UNREACHABLE_SKIP: Duration = Duration::from_millis(500);

/// Deadline of a call that waits for the store.
const STORE: Duration = Duration::from_secs(130);

/// Deadline of a call whose work grows with the size of the range.
const LONG: Duration = Duration::from_secs(3_600);

type Answer<T> = Result<T, PeerError>;

calls! {
    Post = "range-owner/post": EncodedPost => Answer<Receipt>
        { REQUEST_BYTES_MAX: usize = ROWS_BYTES_MAX, DEADLINE: Duration = Duration::from_secs(40) };
    Rows = "range-owner/rows": (RangeId, Vec<Vec<u8>>) => Answer<Vec<Option<Vec<u8>>>>
        { ANSWER_BYTES_MAX: usize = ROWS_BYTES_MAX, DEADLINE: Duration = READ };
    Scan = "range-owner/scan": (RangeId, Vec<u8>, Vec<u8>, u64) => Answer<Vec<EncodedRow>>
        { ANSWER_BYTES_MAX: usize = ROWS_BYTES_MAX, DEADLINE: Duration = READ };
    RowsForQuestion = "range-owner/rows-for-question": (RangeId, Vec<Vec<u8>>, ReadTarget) => Answer<DatedAnswer<Vec<Option<Vec<u8>>>>>
        { ANSWER_BYTES_MAX: usize = ROWS_BYTES_MAX, DEADLINE: Duration = READ };
    ScanForQuestion = "range-owner/scan-for-question": (RangeId, (Vec<u8>, Vec<u8>), u64, ReadTarget) => Answer<DatedAnswer<Vec<EncodedRow>>>
        { ANSWER_BYTES_MAX: usize = ROWS_BYTES_MAX, DEADLINE: Duration = READ };
    State = "range-owner/state": RangeId => Answer<RangeState>
        { ANSWER_BYTES_MAX: usize = LIST_BYTES_MAX, DEADLINE: Duration = SHORT };
    Report = "range-owner/report": (RangeId, Duration) => Answer<RangeReport>
        { ANSWER_BYTES_MAX: usize = LIST_BYTES_MAX, DEADLINE: Duration = Duration::from_secs(50) };
    Hurry = "range-owner/hurry": (RangeId, bool) => Answer<()> { DEADLINE: Duration = SHORT };
    Submit = "range-owner/submit": (RangeId, ClientId, Vec<Submission>) => Answer<Vec<SubmissionOutcome>>
        { REQUEST_BYTES_MAX: usize = SIGNATURES_BYTES_MAX, DEADLINE: Duration = STORE };
    Purge = "range-owner/purge": (RangeId, Vec<PageId>) => Answer<()>
        { REQUEST_BYTES_MAX: usize = LIST_BYTES_MAX, DEADLINE: Duration = STORE, REPEATABLE: bool = false };
    Repair = "range-owner/repair": (GroupId, bool, String) => Answer<Option<RepairReport>>
        { ANSWER_BYTES_MAX: usize = GROUP_BYTES_MAX, DEADLINE: Duration = LONG, REPEATABLE: bool = false };
    Deliver = "range-owner/deliver": (RangeId, Vec<SearchResult>) => Answer<()>
        { REQUEST_BYTES_MAX: usize = SIGNATURES_BYTES_MAX };
    RepeatCall = "range-owner/repeat": (RangeId, Vec<Repeat>) => Answer<()>
        { REQUEST_BYTES_MAX: usize = LIST_BYTES_MAX, DEADLINE: Duration = STORE };
    ChangedSince = "range-owner/changed-since": (RangeId, LogPosition) => Answer<Option<Vec<PageId>>>
        { ANSWER_BYTES_MAX: usize = PAGES_BYTES_MAX, DEADLINE: Duration = LONG };
    KeepLog = "range-owner/keep-log": (RangeId, Option<u64>) => Answer<()>;
    Follow = "range-owner/follow": (RangeId, BackupId) => Answer<()>
        { DEADLINE: Duration = STORE };
    Hold = "range-owner/hold": (RangeId, BackupId) => Answer<()>
        { DEADLINE: Duration = HOLD };
    /// Not repeatable: a second cut after messages were released would include too much in the backup.
    Cut = "range-owner/cut": (RangeId, BackupId) => Answer<()>
        { DEADLINE: Duration = HOLD, REPEATABLE: bool = false };
    Release = "range-owner/release": (RangeId, BackupId) => Answer<bool>
        { DEADLINE: Duration = HOLD };
    Kept = "range-owner/kept": (RangeId, BackupId, u64) => Answer<Vec<u8>>
        { ANSWER_BYTES_MAX: usize = 2 * BACKUP_PIECE_BYTES };
    Forget = "range-owner/forget": (RangeId, BackupId) => Answer<()>;
}

/// The ranges of a node in another process.
#[derive(Debug, Clone)]
pub struct RemoteRanges {
    peer: Peer,
    /// Until when the node is skipped, and the reason.
    skipped_until: Arc<Mutex<Option<(Instant, String)>>>,
    /// Skips the node for questions after it was late.
    breaker: CircuitBreaker,
}

impl RemoteRanges {
    /// Creates a client of the node that `peer` connects to.
    #[must_use]
    pub fn new(peer: Peer) -> Self {
        Self { peer, skipped_until: Arc::default(), breaker: CircuitBreaker::default() }
    }

    /// Makes a call, unless the node is being skipped after a recent failure.
    fn call<C: Call>(&self, request: &C::Request) -> Result<C::Answer, CallFailure> {
        let lock = || self.skipped_until.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((until, why)) = &*lock()
            && Instant::now() < *until
        {
            return Err(CallFailure::Skipped(why.clone()));
        }
        let answer = self.peer.call::<C>(request);
        let pause = match &answer {
            Err(WireError::Late { .. }) => Some(LATE_SKIP),
            Err(WireError::Unreachable { .. }) => Some(UNREACHABLE_SKIP),
            _ => None,
        };
        *lock() =
            pause.zip(answer.as_ref().err()).map(|(pause, why)| (Instant::now() + pause, why.to_string()));
        answer.map_err(CallFailure::Wire)
    }

    fn ask<C: Call<Answer = Answer<T>>, T>(&self, range: RangeId, request: &C::Request) -> Answer<T> {
        or_unreachable(range, self.call::<C>(request))
    }
}

/// Checks that an answer has rows for the first keys, and not more rows than keys.
fn check_row_count<T>(range: RangeId, keys: usize, rows: Vec<T>) -> Answer<Vec<T>> {
    if rows.is_empty() || rows.len() > keys {
        return Err(PeerError::unreachable(
            range,
            format!("the node returned {} rows for {keys} keys", rows.len()),
        ));
    }
    Ok(rows)
}

fn or_unreachable<T>(range: RangeId, answer: Result<Answer<T>, CallFailure>) -> Answer<T> {
    answer.unwrap_or_else(|error| Err(PeerError::unreachable(range, error.to_string())))
}

impl RangeOwner for RemoteRanges {
    /// `done` runs on an async thread, so it must not block. It is dropped if the process ends first.
    fn post(&self, post: EncodedPost, done: PostCallback) {
        let range = post.to;
        self.peer.begin_call::<Post>(&post, move |answer| {
            done(or_unreachable(range, answer.map_err(CallFailure::Wire)));
        });
    }

    fn rows(&self, range: RangeId, keys: &[Vec<u8>]) -> Answer<Vec<Option<Vec<u8>>>> {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        let ask = |count| self.call::<Rows>(&(range, keys[..count].to_vec()));
        check_row_count(
            range,
            keys.len(),
            or_unreachable(range, with_smaller_limits(keys.len().min(KEYS_MAX), ask))?,
        )
    }

    fn rows_for_question(
        &self,
        range: RangeId,
        keys: &[Vec<u8>],
        target: ReadTarget,
    ) -> Answer<DatedAnswer<Vec<Option<Vec<u8>>>>> {
        if keys.is_empty() {
            return Ok(DatedAnswer::of_owner(Vec::new()));
        }
        let ask = |count| {
            let request = (range, keys[..count].to_vec(), target);
            self.breaker.call::<RowsForQuestion>(&self.peer, &request, NODE_WAIT)
        };
        let DatedAnswer { answer, age } =
            or_unreachable(range, with_smaller_limits(keys.len().min(KEYS_MAX), ask))?;
        Ok(DatedAnswer { answer: check_row_count(range, keys.len(), answer)?, age })
    }

    fn scan_for_question(
        &self,
        range: RangeId,
        (from, to): (&[u8], &[u8]),
        limit: usize,
        target: ReadTarget,
    ) -> Answer<DatedAnswer<Vec<EncodedRow>>> {
        let ask = |limit| {
            let request = (range, (from.to_vec(), to.to_vec()), limit as u64, target);
            self.breaker.call::<ScanForQuestion>(&self.peer, &request, NODE_WAIT)
        };
        or_unreachable(range, with_smaller_limits(limit, ask))
    }

    fn scan(&self, range: RangeId, from: &[u8], to: &[u8], limit: usize) -> Answer<Vec<EncodedRow>> {
        let ask = |limit| self.call::<Scan>(&(range, from.to_vec(), to.to_vec(), limit as u64));
        or_unreachable(range, with_smaller_limits(limit, ask))
    }

    fn state(&self, range: RangeId) -> Answer<RangeState> {
        self.ask::<State, _>(range, &range)
    }

    fn report(&self, range: RangeId, limit: Duration) -> Answer<RangeReport> {
        self.ask::<Report, _>(range, &(range, limit.min(PATIENCE)))
    }

    fn hurry(&self, range: RangeId, again: bool) -> Answer<()> {
        self.ask::<Hurry, _>(range, &(range, again))
    }

    fn submit(
        &self,
        range: RangeId,
        client: ClientId,
        submissions: Vec<Submission>,
    ) -> Answer<Vec<SubmissionOutcome>> {
        submit_in_batches(submissions, |some| self.ask::<Submit, _>(range, &(range, client, some)))
    }

    fn purge(&self, range: RangeId, pages: &[PageId]) -> Answer<()> {
        self.ask::<Purge, _>(range, &(range, pages.to_vec()))
    }

    /// A call that fails in transit returns [`PeerError::Refused`], because the client does not know the
    /// range of the group.
    fn repair(&self, group: GroupId, dry_run: bool, by: &str) -> Answer<Option<RepairReport>> {
        let answer = self.call::<Repair>(&(group, dry_run, by.to_owned()));
        answer.map_err(|error| Tier1Error::Unavailable(error.to_string()))?
    }

    fn deliver(&self, range: RangeId, results: Vec<SearchResult>) -> Answer<()> {
        let bytes = |result: &SearchResult| result.pairs.len() * size_of::<VerifiedPartner>();
        let mut remaining = results;
        while !remaining.is_empty() {
            let sizes = remaining.iter().take(RESULTS_MAX).map(bytes);
            let rest = remaining.split_off(count_fitting(sizes, SIGNATURES_BYTES));
            self.ask::<Deliver, _>(range, &(range, remaining))?;
            remaining = rest;
        }
        Ok(())
    }

    fn repeat(&self, range: RangeId, repeats: Vec<Repeat>) -> Answer<()> {
        self.ask::<RepeatCall, _>(range, &(range, repeats))
    }

    /// Also returns `None` if the pages do not fit into one answer.
    fn changed_since(&self, range: RangeId, since: LogPosition) -> Answer<Option<Vec<PageId>>> {
        match self.call::<ChangedSince>(&(range, since)) {
            Err(error) if error.is_too_large() => Ok(None),
            answer => or_unreachable(range, answer),
        }
    }

    fn keep_log(&self, range: RangeId, after: Option<u64>) -> Answer<()> {
        self.ask::<KeepLog, _>(range, &(range, after))
    }

    fn follow(&self, range: RangeId, backup: BackupId) -> Answer<()> {
        self.ask::<Follow, _>(range, &(range, backup))
    }

    fn hold(&self, range: RangeId, backup: BackupId) -> Answer<()> {
        self.ask::<Hold, _>(range, &(range, backup))
    }

    fn cut(&self, range: RangeId, backup: BackupId) -> Answer<()> {
        self.ask::<Cut, _>(range, &(range, backup))
    }

    fn release(&self, range: RangeId, backup: BackupId) -> Answer<bool> {
        self.ask::<Release, _>(range, &(range, backup))
    }

    fn kept(&self, range: RangeId, backup: BackupId, from: u64) -> Answer<Vec<u8>> {
        self.ask::<Kept, _>(range, &(range, backup, from))
    }

    fn forget(&self, range: RangeId, backup: BackupId) -> Answer<()> {
        self.ask::<Forget, _>(range, &(range, backup))
    }
}

/// Adds the calls of a range owner to a listener. Calls that wait for other calls have their own permits, so
/// they do not block reads.
#[must_use]
pub fn serve(listener: CallListener, owner: &Arc<dyn RangeOwner>) -> CallListener {
    listener
        .at_once(CALLS)
        .answer::<Rows>(with!(owner, |owner, (range, keys)| owner.rows(range, &keys)))
        .answer::<Scan>(with!(owner, |owner, (range, from, to, limit)| {
            owner.scan(range, &from, &to, usize::try_from(limit).unwrap_or(usize::MAX))
        }))
        .answer::<RowsForQuestion>(with!(owner, |owner, (range, keys, target)| {
            owner.rows_for_question(range, &keys, target)
        }))
        .answer::<ScanForQuestion>(with!(owner, |owner, (range, (from, to), limit, target)| {
            owner.scan_for_question(range, (&from, &to), usize::try_from(limit).unwrap_or(usize::MAX), target)
        }))
        .answer::<State>(with!(owner, |owner, range| owner.state(range)))
        .at_once(CALLS)
        .answer::<Post>(with!(owner, |owner, post| post_and_wait(&*owner, post)))
        .at_once(CALLS)
        .answer::<Report>(with!(owner, |owner, (range, limit)| owner.report(range, limit.min(PATIENCE))))
        .answer::<Hurry>(with!(owner, |owner, (range, again)| owner.hurry(range, again)))
        .answer::<Submit>(with!(owner, |owner, (range, client, submissions)| {
            owner.submit(range, client, submissions)
        }))
        .answer::<Deliver>(with!(owner, |owner, (range, results)| owner.deliver(range, results)))
        .answer::<RepeatCall>(with!(owner, |owner, (range, repeats)| owner.repeat(range, repeats)))
        .answer::<KeepLog>(with!(owner, |owner, (range, after)| owner.keep_log(range, after)))
        .answer::<Follow>(with!(owner, |owner, (range, backup)| owner.follow(range, backup)))
        .answer::<Hold>(with!(owner, |owner, (range, backup)| owner.hold(range, backup)))
        .answer::<Cut>(with!(owner, |owner, (range, backup)| owner.cut(range, backup)))
        .answer::<Release>(with!(owner, |owner, (range, backup)| owner.release(range, backup)))
        .answer::<Kept>(with!(owner, |owner, (range, backup, from)| owner.kept(range, backup, from)))
        .answer::<Forget>(with!(owner, |owner, (range, backup)| owner.forget(range, backup)))
        .at_once(LONG_CALLS)
        .answer::<Purge>(with!(owner, |owner, (range, pages)| owner.purge(range, &pages)))
        .answer::<Repair>(with!(owner, |owner, (group, dry_run, by)| owner.repair(group, dry_run, &by)))
        .answer::<ChangedSince>(with!(owner, |owner, (range, since)| owner.changed_since(range, since)))
}

/// Posts messages and waits for the receipt.
fn post_and_wait(owner: &dyn RangeOwner, post: EncodedPost) -> Answer<Receipt> {
    let range = post.to;
    let (sender, receiver) = mpsc::channel();
    owner.post(post, Box::new(move |answer| drop(sender.send(answer))));
    receiver.recv_timeout(POST_TIME).unwrap_or_else(|failed| {
        let why = match failed {
            RecvTimeoutError::Timeout => "the node did not apply the post in time",
            RecvTimeoutError::Disconnected => "the owner has ended",
        };
        Err(PeerError::unreachable(range, why))
    })
}
