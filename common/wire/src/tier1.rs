//! Calls to a tier-1 process, as a coordinator sees it.
//!
//! [`RemoteTier1`] is the client, and [`serve`] is the server. Long waits are split into calls of
//! [`PATIENCE`], so that the client notices a process that has gone.

use std::sync::Arc;
use std::time::{Duration, Instant};

use doppel_contract::SubmissionOutcome;
use doppel_contract::answer::Advice;
use doppel_model::pairwise::Policy;
use doppel_model::signature::Signature;
use doppel_model::tables::TablesHash;
use doppel_model::{ClientId, GroupId, PageId, PageUrl};
use doppel_protocol::{
    BackupError, BackupStream, DatedAnswer, FeedBatch, GroupFilter, GroupPosition, GroupSummary, GroupView,
    LinesPage, PageView, Question, ReadTarget, RepairDetails, RepairId, RepairPosition, RepairReport,
    RepairTrail, ScanPosition, Submission, Tier1Api, Tier1Error, Tier1Reads, Totals, WinnerOrder,
};
use serde::{Deserialize, Serialize};

use crate::backup;
use crate::transport::call::{Call, calls, with};
use crate::transport::call_sizes::{SIGNATURES_BYTES_MAX, submit_in_batches, with_smaller_limits};
use crate::transport::circuit_breaker::{CallFailure, CircuitBreaker, FRONT_WAIT};
use crate::transport::json::Json;
use crate::transport::listener::CallListener;
use crate::transport::peer::Peer;
use crate::transport::wire_error::WireError;

/// Longest wait of one call.
const PATIENCE: Duration = Duration::from_secs(20);

/// Number of concurrent polls of the change feed: as many as four coordinators allow.
const POLLS: usize = 256;

/// Number of concurrent calls whose work grows with the size of the collection.
const LONG_CALLS: usize = 32;

/// Maximum size of a list of records in bytes: the maximum number of pages in a call, with URLs of 8 kB.
const RECORDS_BYTES_MAX: usize = 128 << 20;

/// Deadline of a read of pages.
const READ: Duration = Duration::from_secs(15);

/// Deadline of a call whose work grows with the size of the collection.
const LONG: Duration = Duration::from_secs(3_600);

type Answer<T> = Result<T, Tier1Error>;

calls! {
    Describe = "tier1/describe": () => CollectionInfo;
    Submit = "tier1/submit": (ClientId, Vec<Submission>) => Answer<Vec<SubmissionOutcome>>
        { REQUEST_BYTES_MAX: usize = SIGNATURES_BYTES_MAX, DEADLINE: Duration = Duration::from_secs(130) };
    Pages = "tier1/pages": (Option<ReadTarget>, Vec<PageId>) => Answer<DatedAnswer<Vec<Option<PageView>>>>
        { ANSWER_BYTES_MAX: usize = RECORDS_BYTES_MAX, DEADLINE: Duration = READ };
    KnownAdvices = "tier1/known-advices": Vec<PageUrl> => Answer<Vec<Option<Json<Advice>>>>
        {
            REQUEST_BYTES_MAX: usize = RECORDS_BYTES_MAX,
            ANSWER_BYTES_MAX: usize = RECORDS_BYTES_MAX,
            DEADLINE: Duration = READ,
        };
    FirstSpelling = "tier1/first-spelling": (Option<ReadTarget>, (PageId, Option<PageId>)) => Answer<DatedAnswer<Option<PageId>>>
        { DEADLINE: Duration = READ };
    SignatureOf = "tier1/signature": (Option<ReadTarget>, PageId) => Answer<DatedAnswer<Option<Arc<Signature>>>>
        { ANSWER_BYTES_MAX: usize = SIGNATURES_BYTES_MAX };
    Summary = "tier1/group-summary": (Option<ReadTarget>, GroupId) => Answer<DatedAnswer<Option<GroupSummary>>>;
    Group = "tier1/group": (Option<ReadTarget>, (GroupId, Option<GroupPosition>, u64, bool)) => Answer<DatedAnswer<Option<GroupView>>>
        { ANSWER_BYTES_MAX: usize = RECORDS_BYTES_MAX };
    Groups = "tier1/groups": (GroupFilter, Option<GroupId>, u64) => Answer<Vec<GroupSummary>>
        { ANSWER_BYTES_MAX: usize = RECORDS_BYTES_MAX, DEADLINE: Duration = LONG };
    ChangesCall = "tier1/changes": (Option<String>, u64, Duration) => Answer<FeedBatch>
        { ANSWER_BYTES_MAX: usize = RECORDS_BYTES_MAX, DEADLINE: Duration = Duration::from_secs(50) };
    Scan = "tier1/scan": (Option<ScanPosition>, u64) => Answer<LinesPage>
        { ANSWER_BYTES_MAX: usize = RECORDS_BYTES_MAX, DEADLINE: Duration = Duration::from_secs(120) };
    Cursor = "tier1/cursor": () => Answer<String>;
    TotalsCall = "tier1/totals": () => Answer<Totals>;
    Writable = "tier1/writable": () => Answer<()>;
    Repair = "tier1/repair": (GroupId, bool, String) => Answer<Option<RepairReport>>
        { ANSWER_BYTES_MAX: usize = RECORDS_BYTES_MAX, DEADLINE: Duration = LONG, REPEATABLE: bool = false };
    Repairs = "tier1/repairs": (Option<GroupId>, Option<RepairPosition>, u64) => Answer<RepairTrail>
        { ANSWER_BYTES_MAX: usize = RECORDS_BYTES_MAX };
    Details = "tier1/repair-details": RepairId => Answer<Option<RepairDetails>>
        { ANSWER_BYTES_MAX: usize = RECORDS_BYTES_MAX };
    Purge = "tier1/purge": Vec<PageId> => Answer<u64>
        { DEADLINE: Duration = Duration::from_secs(130), REPEATABLE: bool = false };
    PurgeHost = "tier1/purge-host": String => Answer<u64>
        { DEADLINE: Duration = LONG, REPEATABLE: bool = false };
    Flush = "tier1/flush": Duration => Answer<bool>
        { DEADLINE: Duration = Duration::from_secs(150) };
}

/// What a coordinator has to know about the collection.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CollectionInfo {
    /// The pairwise function of the collection.
    pub policy: Policy,
    /// The rules that elect winners.
    pub winners: WinnerOrder,
    /// Number of tier-1 shards.
    pub shards: u16,
    /// Hash of the policy's tables, if any. All signatures of the collection were made with these tables.
    pub tables: Option<TablesHash>,
}

/// Tier 1 in another process.
#[derive(Debug, Clone)]
pub struct RemoteTier1 {
    peer: Peer,
    /// Skips the node for questions after it was late.
    breaker: CircuitBreaker,
}

impl RemoteTier1 {
    /// Creates a client of the node that `peer` connects to.
    #[must_use]
    pub fn new(peer: Peer) -> Self {
        Self { peer, breaker: CircuitBreaker::default() }
    }

    /// Asks the node which collection it has.
    ///
    /// # Errors
    /// If the node does not answer.
    pub fn collection(&self) -> Result<CollectionInfo, WireError> {
        self.peer.call::<Describe>(&())
    }

    fn of_owners(&self) -> RemoteReads<'_> {
        RemoteReads { tier1: self, question: None }
    }
}

impl From<WireError> for Tier1Error {
    fn from(error: WireError) -> Self {
        Self::Unavailable(error.to_string())
    }
}

impl From<CallFailure> for Tier1Error {
    fn from(error: CallFailure) -> Self {
        Self::Unavailable(error.to_string())
    }
}

/// Reads for a question of a caller, or reads of owners only if there is no question.
struct RemoteReads<'t> {
    tier1: &'t RemoteTier1,
    question: Option<Question>,
}

impl RemoteReads<'_> {
    fn call<C: Call>(&self, request: &C::Request) -> Result<C::Answer, CallFailure> {
        match &self.question {
            Some(question) if !question.is_patient() => {
                self.tier1.breaker.call::<C>(&self.tier1.peer, request, FRONT_WAIT)
            }
            _ => self.tier1.peer.call::<C>(request).map_err(CallFailure::Wire),
        }
    }

    fn ask<C, R, T>(&self, request: R) -> Result<Answer<T>, CallFailure>
    where
        C: Call<Request = (Option<ReadTarget>, R), Answer = Answer<DatedAnswer<T>>>,
    {
        let sent = Instant::now();
        let target = self.question.as_ref().map(Question::target);
        let answer = self.call::<C>(&(target, request))?;
        Ok(answer.map(|aged| match &self.question {
            Some(question) => question.take(aged, sent),
            None => aged.answer,
        }))
    }
}

impl Tier1Reads for RemoteReads<'_> {
    fn pages(&self, pages: &[PageId]) -> Answer<Vec<Option<PageView>>> {
        self.ask::<Pages, _, _>(pages.to_vec())?
    }

    fn known_advices(&self, pages: &[PageUrl]) -> Answer<Vec<Option<Advice>>> {
        let sent = Instant::now();
        let known = self.call::<KnownAdvices>(&pages.to_vec())??;
        if known.len() != pages.len() {
            return Err(Tier1Error::Unavailable(format!(
                "the node returned {} answers for {} pages",
                known.len(),
                pages.len()
            )));
        }
        let known: Vec<Option<Advice>> = known.into_iter().map(|known| Some(known?.0)).collect();
        if let Some(question) = &self.question {
            question.take_known(&known, sent);
        }
        Ok(known)
    }

    fn first_spelling(&self, form: PageId, except: Option<PageId>) -> Answer<Option<PageId>> {
        self.ask::<FirstSpelling, _, _>((form, except))?
    }

    fn signature(&self, page: PageId) -> Answer<Option<Arc<Signature>>> {
        self.ask::<SignatureOf, _, _>(page)?
    }

    fn group_summary(&self, group: GroupId) -> Answer<Option<GroupSummary>> {
        self.ask::<Summary, _, _>(group)?
    }

    fn group(
        &self,
        group: GroupId,
        after: Option<GroupPosition>,
        limit: usize,
        redirects: bool,
    ) -> Answer<Option<GroupView>> {
        with_smaller_limits(limit, |limit| self.ask::<Group, _, _>((group, after, limit as u64, redirects)))?
    }
}

impl Tier1Reads for RemoteTier1 {
    fn pages(&self, pages: &[PageId]) -> Answer<Vec<Option<PageView>>> {
        self.of_owners().pages(pages)
    }

    fn known_advices(&self, pages: &[PageUrl]) -> Answer<Vec<Option<Advice>>> {
        self.of_owners().known_advices(pages)
    }

    fn first_spelling(&self, form: PageId, except: Option<PageId>) -> Answer<Option<PageId>> {
        self.of_owners().first_spelling(form, except)
    }

    fn signature(&self, page: PageId) -> Answer<Option<Arc<Signature>>> {
        self.of_owners().signature(page)
    }

    fn group_summary(&self, group: GroupId) -> Answer<Option<GroupSummary>> {
        self.of_owners().group_summary(group)
    }

    fn group(
        &self,
        group: GroupId,
        after: Option<GroupPosition>,
        limit: usize,
        redirects: bool,
    ) -> Answer<Option<GroupView>> {
        self.of_owners().group(group, after, limit, redirects)
    }
}

impl Tier1Api for RemoteTier1 {
    fn submit_for(&self, client: ClientId, submissions: Vec<Submission>) -> Answer<Vec<SubmissionOutcome>> {
        submit_in_batches(submissions, |some| self.peer.call::<Submit>(&(client, some))?)
    }

    fn for_question<'t>(&'t self, question: &Question) -> Option<Box<dyn Tier1Reads + 't>> {
        Some(Box::new(RemoteReads { tier1: self, question: Some(question.clone()) }))
    }

    fn groups(&self, filter: GroupFilter, after: Option<GroupId>, limit: usize) -> Answer<Vec<GroupSummary>> {
        self.peer.call::<Groups>(&(filter, after, limit as u64))?
    }

    fn changes(&self, cursor: Option<&str>, limit: usize, wait: Duration) -> Answer<FeedBatch> {
        let until = Instant::now() + wait;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let changes = with_smaller_limits(limit, |limit| {
                self.peer.call::<ChangesCall>(&(cursor.map(str::to_owned), limit as u64, left.min(PATIENCE)))
            })??;
            if !changes.changes.is_empty() || left <= PATIENCE {
                return Ok(changes);
            }
        }
    }

    fn scan(&self, after: Option<ScanPosition>, limit: usize) -> Answer<LinesPage> {
        with_smaller_limits(limit, |limit| self.peer.call::<Scan>(&(after, limit as u64)))?
    }

    fn cursor(&self) -> Answer<String> {
        self.peer.call::<Cursor>(&())?
    }

    fn totals(&self) -> Answer<Totals> {
        self.peer.call::<TotalsCall>(&())?
    }

    fn writable(&self) -> Answer<()> {
        self.peer.call::<Writable>(&())?
    }

    fn repair(&self, group: GroupId, dry_run: bool, by: &str) -> Answer<Option<RepairReport>> {
        self.peer.call::<Repair>(&(group, dry_run, by.to_owned()))?
    }

    fn repairs(
        &self,
        group: Option<GroupId>,
        before: Option<&RepairPosition>,
        limit: usize,
    ) -> Answer<RepairTrail> {
        self.peer.call::<Repairs>(&(group, before.cloned(), limit as u64))?
    }

    fn repair_details(&self, id: RepairId) -> Answer<Option<RepairDetails>> {
        self.peer.call::<Details>(&id)?
    }

    fn purge(&self, pages: &[PageId]) -> Answer<u64> {
        self.peer.call::<Purge>(&pages.to_vec())?
    }

    fn purge_host(&self, host: &str) -> Answer<u64> {
        self.peer.call::<PurgeHost>(&host.to_owned())?
    }

    fn backup(&self) -> Result<BackupStream, BackupError> {
        backup::begin(&self.peer)
    }

    fn flush(&self, limit: Duration) -> Answer<bool> {
        let until = Instant::now() + limit;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match self.peer.call::<Flush>(&left.min(PATIENCE))? {
                // A node that did not answer during this call may do so during the next.
                Ok(false) | Err(Tier1Error::Unavailable(_)) if left > PATIENCE => {}
                answer => return answer,
            }
        }
    }
}

fn to_usize(limit: u64) -> usize {
    usize::try_from(limit).unwrap_or(usize::MAX)
}

/// Reads for a question that is put to `target`, or reads of owners only if `target` is `None`.
fn read<T>(
    tier1: &dyn Tier1Api,
    target: Option<ReadTarget>,
    read: impl FnOnce(&dyn Tier1Reads) -> Answer<T>,
) -> Answer<DatedAnswer<T>> {
    let Some(target) = target else { return read(tier1).map(DatedAnswer::of_owner) };
    let question = Question::with_target(target);
    let answer = question.ask(tier1, read)?;
    question.dated_answer(answer)
}

/// Adds the calls of a coordinator to a listener. Calls that wait for events have their own permits.
#[must_use]
pub fn serve(listener: CallListener, tier1: &Arc<dyn Tier1Api>, collection: CollectionInfo) -> CallListener {
    let listener = listener
        .answer::<Describe>(move |()| collection)
        .answer::<Submit>(with!(tier1, |tier1, (client, submissions)| tier1.submit_for(client, submissions)))
        .answer::<Pages>(with!(tier1, |tier1, (target, pages)| {
            read(&*tier1, target, |reads| reads.pages(&pages))
        }))
        .answer::<KnownAdvices>(with!(tier1, |tier1, pages| {
            let known = tier1.known_advices(&pages)?;
            Ok(known.into_iter().map(|known| known.map(Json)).collect())
        }))
        .answer::<FirstSpelling>(with!(tier1, |tier1, (target, (form, except))| {
            read(&*tier1, target, |reads| reads.first_spelling(form, except))
        }))
        .answer::<SignatureOf>(with!(tier1, |tier1, (target, page)| {
            read(&*tier1, target, |reads| reads.signature(page))
        }))
        .answer::<Summary>(with!(tier1, |tier1, (target, group)| {
            read(&*tier1, target, |reads| reads.group_summary(group))
        }))
        .answer::<Group>(with!(tier1, |tier1, (target, (group, after, limit, redirects))| {
            read(&*tier1, target, |reads| reads.group(group, after, to_usize(limit), redirects))
        }))
        .answer::<Scan>(with!(tier1, |tier1, (after, limit)| tier1.scan(after, to_usize(limit))))
        .answer::<Cursor>(with!(tier1, |tier1, ()| tier1.cursor()))
        .answer::<TotalsCall>(with!(tier1, |tier1, ()| tier1.totals()))
        .answer::<Writable>(with!(tier1, |tier1, ()| tier1.writable()))
        .answer::<Repairs>(with!(tier1, |tier1, (group, before, limit)| {
            tier1.repairs(group, before.as_ref(), to_usize(limit))
        }))
        .answer::<Details>(with!(tier1, |tier1, id| tier1.repair_details(id)))
        .answer::<Purge>(with!(tier1, |tier1, pages| tier1.purge(&pages)))
        .at_once(POLLS)
        .answer::<ChangesCall>(with!(tier1, |tier1, (cursor, limit, wait)| {
            tier1.changes(cursor.as_deref(), to_usize(limit), wait.min(PATIENCE))
        }))
        .at_once(LONG_CALLS)
        .answer::<Groups>(with!(tier1, |tier1, (filter, after, limit)| {
            tier1.groups(filter, after, to_usize(limit))
        }))
        .answer::<Repair>(with!(tier1, |tier1, (group, dry_run, by)| tier1.repair(group, dry_run, &by)))
        .answer::<PurgeHost>(with!(tier1, |tier1, host| tier1.purge_host(&host)))
        .answer::<Flush>(with!(tier1, |tier1, limit| tier1.flush(limit.min(PATIENCE))));
    backup::serve(listener, tier1)
}
