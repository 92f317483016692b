//! Tests of the calls to a range owner in another process.

use std::sync::Mutex;
use std::sync::mpsc;

use doppel_contract::{Backlog, Counters, SubmissionOutcome};
use doppel_model::pairwise::Similarity;
use doppel_model::{ClientId, ContentHash, Epoch, GroupId, PageUrl, RangeId, ShardId, Timestamp};
use doppel_protocol::range_owner::{
    AppliedPosition, BackupId, EncodedPost, EncodedRow, PeerError, PostCallback, RangeOwner, RangeReport,
    RangeState, Receipt,
};
use doppel_protocol::{
    BACKUP_PIECE_BYTES, Body, DatedAnswer, DecisionTimes, LogPosition, ReadTarget, RepairReport, Repeat,
    SearchResult, Submission, Tier1Error, VerifiedPartner,
};

use super::*;
use crate::range_owner::{RemoteRanges, serve};
use crate::transport::circuit_breaker::NODE_WAIT;

const RANGE: RangeId = RangeId(3);

const SINCE: LogPosition = LogPosition { log: 1, epoch: 2, index: 3, hash: 4 };

/// A range owner that records its calls. A separate thread answers a post.
#[derive(Default)]
struct Owner {
    asked: Mutex<Vec<String>>,
    /// Length of each row in bytes.
    row_bytes: usize,
    changed: usize,
    /// Delay of answers with rows for a question.
    pause: Mutex<Duration>,
}

/// Age of the owner's replica.
const AGE: Duration = Duration::from_millis(1_250);

impl Owner {
    fn note(&self, asked: impl Into<String>) {
        self.asked.lock().unwrap().push(asked.into());
    }

    fn check(range: RangeId) -> Result<(), PeerError> {
        if range == RANGE { Ok(()) } else { Err(PeerError::NotOwner(range)) }
    }
}

impl RangeOwner for Owner {
    fn post(&self, post: EncodedPost, done: PostCallback) {
        let answer = Self::check(post.to).map(|()| Receipt {
            applied: vec![AppliedPosition {
                from: ShardId(1),
                to: ShardId(2),
                number: post.messages.len() as u64,
            }],
        });
        if post.messages.is_empty() {
            // The owner drops `done`, as if the process had ended.
            return;
        }
        std::thread::spawn(move || done(answer));
    }

    fn rows(&self, range: RangeId, keys: &[Vec<u8>]) -> Result<Vec<Option<Vec<u8>>>, PeerError> {
        Self::check(range)?;
        self.note(format!("{} rows", keys.len()));
        Ok(keys.iter().map(|key| (key[0] > 0).then(|| vec![key[0]; self.row_bytes])).collect())
    }

    fn scan(
        &self,
        range: RangeId,
        from: &[u8],
        to: &[u8],
        limit: usize,
    ) -> Result<Vec<EncodedRow>, PeerError> {
        Self::check(range)?;
        self.note(format!("scan from {from:?} to {to:?}: {limit}"));
        Ok(vec![(from.to_vec(), vec![0; self.row_bytes]); limit.min(100)])
    }

    fn rows_for_question(
        &self,
        range: RangeId,
        keys: &[Vec<u8>],
        target: ReadTarget,
    ) -> Result<DatedAnswer<Vec<Option<Vec<u8>>>>, PeerError> {
        let pause = *self.pause.lock().unwrap();
        std::thread::sleep(pause);
        Ok(DatedAnswer {
            answer: self.rows(range, keys)?,
            age: (target == ReadTarget::Replica).then_some(AGE),
        })
    }

    fn scan_for_question(
        &self,
        range: RangeId,
        (from, to): (&[u8], &[u8]),
        limit: usize,
        target: ReadTarget,
    ) -> Result<DatedAnswer<Vec<EncodedRow>>, PeerError> {
        Ok(DatedAnswer {
            answer: self.scan(range, from, to, limit)?,
            age: (target == ReadTarget::Replica).then_some(AGE),
        })
    }

    fn state(&self, range: RangeId) -> Result<RangeState, PeerError> {
        Self::check(range)?;
        let (counters, backlog) = (Counters::default(), Backlog::default());
        let refused = Some(Tier1Error::Stopping);
        Ok(RangeState {
            collection: 4,
            failures: 0,
            epoch: Epoch(2),
            ordered: 9,
            counters,
            backlog,
            decision_times: DecisionTimes::default(),
            shards: vec![],
            feeds: vec![],
            moment: None,
            copied: None,
            refused,
            disk_full: true,
            disk_recoveries: 3,
        })
    }

    fn report(&self, range: RangeId, limit: Duration) -> Result<RangeReport, PeerError> {
        Self::check(range)?;
        self.note(format!("report in {} s", limit.as_secs()));
        let backlog = Backlog::default();
        Ok(RangeReport { epoch: Epoch(2), backlog, traffic: vec![], failures: 0, refused: None })
    }

    fn hurry(&self, range: RangeId, again: bool) -> Result<(), PeerError> {
        self.note(format!("hurry {again}"));
        Self::check(range)
    }

    fn submit(
        &self,
        range: RangeId,
        client: ClientId,
        submissions: Vec<Submission>,
    ) -> Result<Vec<SubmissionOutcome>, PeerError> {
        assert_eq!(client, ClientId(7));
        Self::check(range)?;
        self.note(format!("submit {}", submissions.len()));
        Ok(vec![SubmissionOutcome::Pending; submissions.len()])
    }

    fn purge(&self, range: RangeId, pages: &[PageId]) -> Result<(), PeerError> {
        self.note(format!("purge {}", pages.len()));
        Self::check(range)
    }

    fn repair(&self, group: GroupId, dry_run: bool, by: &str) -> Result<Option<RepairReport>, PeerError> {
        self.note(format!("repair {dry_run} {by}"));
        Ok(Some(RepairReport { group, before: vec![], components: vec![], applied: !dry_run }))
    }

    fn deliver(&self, range: RangeId, results: Vec<SearchResult>) -> Result<(), PeerError> {
        self.note(format!("deliver {}", results.len()));
        Self::check(range)
    }

    fn repeat(&self, range: RangeId, repeats: Vec<Repeat>) -> Result<(), PeerError> {
        self.note(format!("repeat {}", repeats.len()));
        Self::check(range)
    }

    fn changed_since(&self, range: RangeId, since: LogPosition) -> Result<Option<Vec<PageId>>, PeerError> {
        Self::check(range)?;
        Ok((since == SINCE).then(|| vec![PageId::from_bytes([5; 16]); self.changed]))
    }

    fn keep_log(&self, range: RangeId, after: Option<u64>) -> Result<(), PeerError> {
        self.note(format!("keep {after:?}"));
        Self::check(range)
    }

    fn follow(&self, range: RangeId, backup: BackupId) -> Result<(), PeerError> {
        self.note(format!("follow {backup}"));
        Self::check(range)
    }

    fn hold(&self, range: RangeId, backup: BackupId) -> Result<(), PeerError> {
        self.note(format!("hold {backup}"));
        Self::check(range)
    }

    fn cut(&self, range: RangeId, backup: BackupId) -> Result<(), PeerError> {
        self.note(format!("cut {backup}"));
        Self::check(range)
    }

    fn release(&self, range: RangeId, backup: BackupId) -> Result<bool, PeerError> {
        self.note(format!("release {backup}"));
        Self::check(range).map(|()| true)
    }

    fn kept(&self, range: RangeId, backup: BackupId, from: u64) -> Result<Vec<u8>, PeerError> {
        self.note(format!("kept {backup} from {from}"));
        Self::check(range).map(|()| vec![7; BACKUP_PIECE_BYTES])
    }

    fn forget(&self, range: RangeId, backup: BackupId) -> Result<(), PeerError> {
        self.note(format!("forget {backup}"));
        Self::check(range)
    }
}

fn start(owner: Owner) -> (Node, RemoteRanges, Arc<Owner>) {
    let owner = Arc::new(owner);
    let served: Arc<dyn RangeOwner> = owner.clone();
    let node = Node::start(|listener| serve(listener, &served));
    let remote = RemoteRanges::new(node.peer());
    (node, remote, owner)
}

fn asked(owner: &Owner) -> Vec<String> {
    std::mem::take(&mut *owner.asked.lock().unwrap())
}

#[test]
fn calls_reach_the_owner_and_its_answers_come_back() {
    let (_node, remote, owner) = start(Owner { row_bytes: 2, changed: 3, ..Owner::default() });
    assert_eq!(remote.rows(RANGE, &[vec![1], vec![0]]), Ok(vec![Some(vec![1, 1]), None]));
    assert_eq!(remote.rows(RANGE, &[]), Ok(vec![]));
    // The answer ends early, so it has only the first keys.
    assert_eq!(remote.rows(RANGE, &vec![vec![1]; 5_000]).unwrap().len(), 4_096);
    assert_eq!(remote.scan(RANGE, &[1], &[2], 2).unwrap(), vec![(vec![1], vec![0, 0]); 2]);
    assert_eq!(remote.state(RANGE).unwrap().refused, Some(Tier1Error::Stopping));
    assert_eq!(remote.state(RangeId(8)), Err(PeerError::NotOwner(RangeId(8))));
    remote.report(RANGE, Duration::from_secs(600)).unwrap();
    remote.report(RANGE, Duration::from_secs(2)).unwrap();
    remote.hurry(RANGE, true).unwrap();
    let url = PageUrl::parse("http://a.example/").unwrap();
    let submission = Submission {
        url,
        fetched_at: Timestamp::from_millis(1),
        popularity: None,
        language: None,
        canonical: None,
        body: Body::Dead,
    };
    assert_eq!(
        remote.submit(RANGE, ClientId(7), vec![submission; 2]),
        Ok(vec![SubmissionOutcome::Pending; 2])
    );
    let page = PageId::from_bytes([5; 16]);
    let content = ContentHash([2; 16]);
    remote.purge(RANGE, &[page]).unwrap();
    assert!(remote.repair(GroupId::new(1, ShardId(1)), false, "me").unwrap().unwrap().applied);
    remote.repeat(RANGE, vec![Repeat { number: 1, page, content }]).unwrap();
    assert_eq!(remote.changed_since(RANGE, SINCE), Ok(Some(vec![page; 3])));
    assert_eq!(remote.changed_since(RANGE, LogPosition { log: 2, ..SINCE }), Ok(None));
    remote.keep_log(RANGE, Some(4)).unwrap();
    remote.follow(RANGE, 6).unwrap();
    remote.hold(RANGE, 6).unwrap();
    remote.cut(RANGE, 6).unwrap();
    assert_eq!(remote.release(RANGE, 6), Ok(true));
    assert_eq!(remote.kept(RANGE, 6, 9), Ok(vec![7; BACKUP_PIECE_BYTES]));
    remote.forget(RANGE, 6).unwrap();
    let expected = [
        "2 rows",
        "4096 rows",
        "scan from [1] to [2]: 2",
        "report in 20 s",
        "report in 2 s",
        "hurry true",
        "submit 2",
        "purge 1",
        "repair false me",
        "repeat 1",
        "keep Some(4)",
        "follow 6",
        "hold 6",
        "cut 6",
        "release 6",
        "kept 6 from 9",
        "forget 6",
    ];
    assert_eq!(asked(&owner), expected);
}

/// Calls repeatedly until the node is reached.
fn patiently<T>(ask: impl Fn() -> Result<T, PeerError>) -> Result<T, PeerError> {
    let began = Instant::now();
    loop {
        match ask() {
            Err(PeerError::Unreachable { .. }) if began.elapsed() < Duration::from_secs(120) => {
                std::thread::sleep(Duration::from_millis(50));
            }
            answer => return answer,
        }
    }
}

#[test]
fn replicas_state_their_age_and_questions_do_not_wait_for_a_hanging_node() {
    const PAUSE: Duration = Duration::from_secs(4);
    let (_node, remote, owner) = start(Owner { row_bytes: 2, ..Owner::default() });
    let rows = |target| remote.rows_for_question(RANGE, &vec![vec![0]; 5_000], target);
    // A busy machine may answer late at first, so the test calls again after a while.
    let DatedAnswer { answer, age } = patiently(|| rows(ReadTarget::Replica)).unwrap();
    assert_eq!((answer.len(), age), (4_096, Some(AGE)));
    assert_eq!(patiently(|| rows(ReadTarget::Owner)).unwrap().age, None);
    let piece = patiently(|| remote.scan_for_question(RANGE, (&[1], &[2]), 5, ReadTarget::Replica)).unwrap();
    assert_eq!((piece.answer.len(), piece.age), (5, Some(AGE)));
    let other = patiently(|| remote.rows_for_question(RangeId(8), &[vec![0]], ReadTarget::Replica));
    assert_eq!(other, Err(PeerError::NotOwner(RangeId(8))));
    *owner.pause.lock().unwrap() = PAUSE;
    let began = Instant::now();
    assert!(matches!(rows(ReadTarget::Owner), Err(PeerError::Unreachable { range: RANGE, .. })));
    let waited = began.elapsed();
    assert!(waited >= NODE_WAIT && waited < PAUSE, "{waited:?}");
    // The next question does not wait, although the node would answer now. Other calls still reach the node.
    *owner.pause.lock().unwrap() = Duration::ZERO;
    let began = Instant::now();
    assert!(rows(ReadTarget::Owner).is_err() && rows(ReadTarget::Replica).is_err());
    assert_eq!(remote.rows(RANGE, &[vec![0]]), Ok(vec![None]));
    while rows(ReadTarget::Owner).is_err() {
        assert!(began.elapsed() < Duration::from_secs(120), "the node is never called again");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn posts_are_answered_later() {
    let (node, remote, _) = start(Owner::default());
    let post = |remote: &RemoteRanges, to, messages| {
        let (sender, receiver) = mpsc::channel();
        let post = EncodedPost { from: RangeId(0), to, messages: vec![vec![1, 2]; messages] };
        remote.post(post, Box::new(move |answer| sender.send(answer).unwrap()));
        receiver.recv().unwrap()
    };
    let applied = vec![AppliedPosition { from: ShardId(1), to: ShardId(2), number: 256 }];
    assert_eq!(post(&remote, RANGE, 256), Ok(Receipt { applied }));
    assert_eq!(post(&remote, RangeId(9), 1), Err(PeerError::NotOwner(RangeId(9))));
    assert_eq!(post(&remote, RANGE, 0), Err(PeerError::unreachable(RANGE, "the owner has ended")));
    let (_held, free) = silent_address();
    let nobody = RemoteRanges::new(node.peer_at(&identity("one", "front", SECRET), "index-1", free));
    assert!(matches!(post(&nobody, RANGE, 1), Err(PeerError::Unreachable { range: RANGE, .. })));
    assert!(matches!(nobody.hurry(RANGE, true), Err(PeerError::Unreachable { range: RANGE, .. })));
    let repair = nobody.repair(GroupId::new(1, ShardId(1)), true, "me");
    assert!(matches!(repair, Err(PeerError::Refused(Tier1Error::Unavailable(_)))));
    // This request is larger than a call allows.
    let (sender, receiver) = mpsc::channel();
    let large = EncodedPost { from: RangeId(0), to: RANGE, messages: vec![vec![0; 25 << 20]; 4] };
    remote.post(large, Box::new(move |answer| sender.send(answer).unwrap()));
    let PeerError::Unreachable { why, .. } = receiver.recv().unwrap().unwrap_err() else {
        panic!("the request was sent although it is too large")
    };
    assert!(why.contains("bytes, at most"), "{why}");
}

#[test]
fn work_that_is_too_large_for_a_call_is_split() {
    let (_node, remote, owner) = start(Owner { row_bytes: 30 << 20, ..Owner::default() });
    assert_eq!(remote.rows(RANGE, &vec![vec![1]; 5]).unwrap().len(), 2);
    assert_eq!(remote.scan(RANGE, &[1], &[2], 5).unwrap().len(), 2);
    asked(&owner);
    let result = |pairs| {
        let (page, content) = (PageId::from_bytes([5; 16]), ContentHash([2; 16]));
        let pair = VerifiedPartner { page, content, similarity: Similarity { shared: 1, of: 1 } };
        SearchResult { page, content, ticket: 1, pairs: vec![pair; pairs] }
    };
    remote.deliver(RANGE, vec![result(1); 2_500]).unwrap();
    remote.deliver(RANGE, vec![result(300_000); 3]).unwrap();
    remote.deliver(RANGE, Vec::new()).unwrap();
    assert_eq!(asked(&owner), ["deliver 1000", "deliver 1000", "deliver 500", "deliver 2", "deliver 1"]);
}
