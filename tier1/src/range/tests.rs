//! Tests that drive two ranges by hand, and check when messages leave, repeat, and are refused.

use std::sync::Arc;

use doppel_model::pairwise::Policy;
use doppel_model::signature::Builder;
use doppel_model::{ClientId, PageUrl, Timestamp};
use doppel_protocol::{Body, Submission, WinnerOrder};

use super::*;
use crate::machine::{COMMIT_ROWS, Retention, Rules, STEP_ROWS};
use crate::peers::AppliedPosition;
use crate::range::owed::OwedScan;
use crate::rows::key::RowKind;
use crate::storage::store::{Intercept, Intercepted, Memory, for_each_row};

const SHARDS: u16 = 4;

fn settings() -> Settings {
    Settings {
        shards: SHARDS,
        policy: Policy::default(),
        winners: WinnerOrder::DEFAULT,
        group_members_max: 1_000,
        low_cohesion_percent: 0,
        rules: Rules::EXACT,
        retention: Retention::DEFAULT,
        step_rows: STEP_ROWS,
    }
}

/// A range with its store, driven by a test.
struct DrivenRange {
    range: Range,
    store: Arc<Memory>,
}

impl DrivenRange {
    fn open(store: &Arc<Memory>, id: u16) -> Self {
        let map = RangeMap::new(SHARDS, 2).unwrap();
        Self { range: Range::open(&**store, settings(), RangeId(id), map).unwrap(), store: Arc::clone(store) }
    }

    fn pair() -> [Self; 2] {
        [0, 1].map(|id| Self::open(&Arc::default(), id))
    }

    /// Makes a commit of `commands` and of all waiting messages. Returns its settled work.
    fn commit(&mut self, commands: Vec<Command>) -> SettledWork {
        let writes = self.build(commands);
        self.store.commit(writes).unwrap();
        self.range.settled()
    }

    fn build(&mut self, commands: Vec<Command>) -> Vec<Write> {
        let mut builder = self.range.build(&*self.store, COMMIT_ROWS, Timestamp::from_millis(0));
        builder.deliver_first().unwrap();
        commands.into_iter().for_each(|command| builder.command(command).unwrap());
        builder.deliver(usize::MAX).unwrap();
        builder.take_posted().unwrap();
        builder.finish().unwrap()
    }

    fn post(&mut self, most: usize) -> Option<Post> {
        let mut posts = self.range.posts(&*self.store, most).unwrap();
        assert!(posts.len() <= 1, "there is only one other range");
        posts.pop()
    }

    /// Takes a post and makes a commit. Returns the answer to the post.
    fn apply(&mut self, post: Post) -> Result<Receipt, PeerError> {
        self.range.take_in(7, post)?;
        let (id, answer) = self.commit(Vec::new()).answers.pop().unwrap();
        assert_eq!(id, 7);
        answer
    }

    fn outbox_rows(&self) -> usize {
        let mut rows = 0;
        for shard in self.range.shards().run() {
            for_each_row(&*self.store, shard, RowKind::Outbox, |_, _| {
                rows += 1;
                Ok(())
            })
            .unwrap();
        }
        rows
    }
}

/// URLs of pages that belong to a range.
fn urls(range: u16) -> impl Iterator<Item = PageUrl> {
    let map = RangeMap::new(SHARDS, 2).unwrap();
    let all = (0..).map(|number| PageUrl::parse(&format!("http://host/{number}")).unwrap());
    all.filter(move |url| map.of_page(url.id()) == RangeId(range))
}

/// Commands that submit redirects from pages of range 0 to pages of range 1. Each sends two messages.
fn redirects(from: usize, count: usize) -> Vec<Command> {
    let pairs = urls(0).zip(urls(1)).skip(from).take(count);
    let submit = |(url, to)| Command::Submit {
        client: ClientId::NONE,
        submission: Box::new(Submission {
            url,
            fetched_at: Timestamp::from_millis(1),
            popularity: None,
            language: None,
            canonical: None,
            body: Body::Redirect(to),
        }),
        hint: None,
    };
    pairs.map(submit).collect()
}

#[test]
fn a_message_leaves_after_it_is_settled_and_its_row_is_deleted_after_it_is_confirmed() {
    let [mut a, mut b] = DrivenRange::pair();
    let writes = a.build(redirects(0, 1));
    assert!(a.post(9).is_none(), "the commit is not appended");
    a.store.commit(writes).unwrap();
    assert!(a.post(9).is_none(), "the commit is appended, but not settled");
    assert_eq!(a.range.settled().effects.len(), 2, "the outcome and the new event");
    let post = a.post(9).unwrap();
    assert_eq!(post.messages.len(), 2);
    assert!(a.post(9).is_none(), "a post is under way");
    assert_eq!((a.outbox_rows(), a.range.backlog().messages), (2, 2));

    b.range.take_in(1, post.clone()).unwrap();
    assert!(matches!(b.range.take_in(2, post), Err(PeerError::Busy(RangeId(0)))));
    let writes = b.build(Vec::new());
    b.store.commit(writes).unwrap();
    let mut answers = b.range.settled().answers;
    let (1, Ok(receipt)) = answers.pop().unwrap() else { panic!("the post was not applied") };
    a.range.confirmed(RangeId(1), &Ok(receipt)).unwrap();
    assert!(a.range.has_work(), "rows of confirmed messages must be deleted");
    assert_eq!(a.outbox_rows(), 2);
    a.commit(Vec::new());
    assert_eq!((a.outbox_rows(), a.range.backlog().messages), (0, 0));
    assert!(!a.range.has_work());
    let traffic = (a.range.traffic()[1], b.range.traffic()[0]);
    assert_eq!((traffic.0.sent, traffic.1.applied), (2, 2));
}

#[test]
fn unconfirmed_messages_are_sent_again_and_applied_once() {
    let [mut a, mut b] = DrivenRange::pair();
    a.commit(redirects(0, 2));
    let first = a.post(3).unwrap();
    assert_eq!(first.messages.len(), 3);
    b.apply(first.clone()).unwrap();
    let applied = b.range.traffic()[0].applied;
    // The answer is lost, and the sender restarts.
    let mut a = DrivenRange::open(&a.store, 0);
    assert_eq!(a.range.backlog().messages, 4);
    let again = a.post(3).unwrap();
    let receipt = b.apply(again).unwrap();
    assert_eq!(b.range.traffic()[0].applied, applied, "repeated messages are dropped");
    a.range.confirmed(RangeId(1), &Ok(receipt)).unwrap();
    let rest = a.post(3).unwrap();
    let receipt = b.apply(rest).unwrap();
    a.range.confirmed(RangeId(1), &Ok(receipt)).unwrap();
    a.commit(Vec::new());
    assert_eq!((a.outbox_rows(), b.range.traffic()[0].applied), (0, 4));
}

#[test]
fn messages_after_a_gap_are_refused_and_messages_before_it_are_applied() {
    let [mut a, mut b] = DrivenRange::pair();
    // Some pairs of shards have several messages.
    a.commit(redirects(0, 20));
    let post = a.post(40).unwrap();
    let pair = |envelope: &Envelope| (envelope.from, envelope.to);
    let of = pair(&post.messages[0]);
    let second = post.messages.iter().position(|m| pair(m) == of && m.number == 2).unwrap();
    let mut damaged = post.clone();
    damaged.messages.remove(second);
    let refused = b.apply(damaged).unwrap_err();
    assert!(matches!(refused, PeerError::Gap { expected: 2, found: 3, .. }), "{refused}");
    assert_eq!(b.range.shards().applied(of.1, of.0), 1);
    a.range.confirmed(RangeId(1), &Err(refused)).unwrap();
    let again = a.post(40).unwrap();
    assert_eq!(again, post);
    let receipt = b.apply(again).unwrap();
    a.range.confirmed(RangeId(1), &Ok(receipt)).unwrap();
    a.commit(Vec::new());
    assert_eq!((a.outbox_rows(), b.range.traffic()[0].applied), (0, 40));
}

#[test]
fn a_range_that_was_restored_alone_is_detected() {
    let [mut a, mut b] = DrivenRange::pair();
    a.commit(redirects(0, 1));
    let post = a.post(1).unwrap();
    let Envelope { from, to, .. } = post.messages[0];
    let receipt = b.apply(post).unwrap();
    a.range.confirmed(RangeId(1), &Ok(receipt)).unwrap();
    // The receiver has forgotten what it has applied.
    let gap = PeerError::Gap { from, to, expected: 1, found: 2 };
    let apart = a.range.confirmed(RangeId(1), &Err(gap)).unwrap_err();
    assert!(matches!(apart, StoreError::Apart { behind: RangeId(1), ahead: RangeId(0) }), "{apart}");
    // The sender has forgotten what it has sent.
    let receipt = Receipt { applied: vec![AppliedPosition { from, to, number: 1_000 }] };
    let apart = a.range.confirmed(RangeId(1), &Ok(receipt)).unwrap_err();
    assert!(matches!(apart, StoreError::Apart { behind: RangeId(0), ahead: RangeId(1) }), "{apart}");
}

#[test]
fn messages_that_do_not_fit_in_memory_are_read_from_their_rows_in_order() {
    let [mut a, mut b] = DrivenRange::pair();
    a.range.outbox_mut().keep_in_memory(3);
    for round in 0..10 {
        a.commit(redirects(round * 7, 7));
    }
    assert_eq!(a.range.backlog().messages, 140);
    let mut posts = 0;
    // The number of messages in memory is bounded, also if they are read from rows of several pairs of
    // shards.
    let ahead = a.post(100).unwrap();
    assert_eq!(ahead.messages.len(), 3);
    let receipt = b.apply(ahead).unwrap();
    a.range.confirmed(RangeId(1), &Ok(receipt)).unwrap();
    let ahead = a.post(100).unwrap();
    assert_eq!(ahead.messages.len(), 3);
    a.range.confirmed(RangeId(1), &Err(PeerError::Busy(RangeId(1)))).unwrap();
    while let Some(post) = a.post(2) {
        assert!(post.messages.len() <= 2);
        posts += 1;
        if posts == 20 {
            // More messages arrive while some waiting messages are not in memory.
            a.commit(redirects(70, 5));
        }
        let receipt = b.apply(post).unwrap();
        a.range.confirmed(RangeId(1), &Ok(receipt)).unwrap();
    }
    while a.range.has_work() {
        a.commit(Vec::new());
    }
    assert_eq!((a.outbox_rows(), b.range.traffic()[0].applied), (0, 150));
}

#[test]
fn a_post_to_another_range_is_refused() {
    let [mut a, _] = DrivenRange::pair();
    a.commit(redirects(0, 1));
    let post = a.post(9).unwrap();
    let refused = a.range.take_in(1, post.clone()).unwrap_err();
    assert!(matches!(refused, PeerError::Misdirected { sender: RangeId(0), .. }), "{refused}");

    // One message is not from the sender, not for the receiver, or of a shard that does not exist.
    let [_, mut b] = DrivenRange::pair();
    let Envelope { from, to, .. } = post.messages[0];
    for (from, to) in [(to, to), (from, from), (from, ShardId(SHARDS)), (ShardId(SHARDS), to)] {
        let mut wrong = post.clone();
        (wrong.messages[1].from, wrong.messages[1].to) = (from, to);
        let refused = b.range.take_in(1, wrong).unwrap_err();
        assert!(matches!(refused, PeerError::Misdirected { .. }), "{refused}");
    }
    assert!(!b.range.has_work());
    b.range.take_in(1, post.clone()).unwrap();
    assert!(b.range.has_work());
    let busy = b.range.take_in(2, post).unwrap_err();
    assert!(matches!(busy, PeerError::Busy(RangeId(0))), "{busy}");
}

#[test]
fn the_outbox_knows_its_messages_after_a_restart() {
    let [mut a, mut b] = DrivenRange::pair();
    let state = |a: &DrivenRange| (a.range.outbox().has_posts(), a.range.outbox().is_posting());
    assert_eq!(state(&a), (false, false));
    a.commit(redirects(0, 2));
    assert_eq!(state(&a), (true, false));
    let post = a.post(9).unwrap();
    assert_eq!(state(&a), (false, true));
    let receipt = b.apply(post).unwrap();
    a.range.confirmed(RangeId(1), &Ok(receipt)).unwrap();
    assert_eq!(state(&a), (false, false));
    a.commit(Vec::new());
    let extents = |a: &DrivenRange| a.range.outbox().extents().collect::<Vec<_>>();
    let before = extents(&a);
    assert!(!before.is_empty() && before.iter().all(|extent| extent.confirmed == extent.settled));
    assert_eq!(extents(&DrivenRange::open(&a.store, 0)), before);
}

#[test]
fn a_commit_reports_whether_messages_are_left() {
    let [mut a, _] = DrivenRange::pair();
    let store = Arc::clone(&a.store);
    assert!(!a.range.build(&*store, COMMIT_ROWS, Timestamp::from_millis(0)).deliver_first().unwrap());

    // Redirects within the range, whose messages are not delivered yet.
    let names: Vec<PageUrl> = urls(0).take(41).collect();
    let mut builder = a.range.build(&*store, COMMIT_ROWS, Timestamp::from_millis(0));
    for url in &names[1..] {
        let submission = Submission {
            url: url.clone(),
            fetched_at: Timestamp::from_millis(1),
            popularity: None,
            language: None,
            canonical: None,
            body: Body::Redirect(names[0].clone()),
        };
        builder
            .command(Command::Submit { submission: Box::new(submission), hint: None, client: ClientId::NONE })
            .unwrap();
    }
    let writes = builder.finish().unwrap();
    store.commit(writes).unwrap();
    a.range.settled();
    assert!(a.range.build(&*store, 8, Timestamp::from_millis(0)).deliver_first().unwrap());
}

#[test]
fn a_missing_row_of_a_message_is_reported_as_damage() {
    let [mut a, _] = DrivenRange::pair();
    a.commit(redirects(0, 20));
    let post = a.post(1).unwrap();
    let Envelope { from, to, number, .. } = post.messages[0];
    let rows = |number| key::outbox(from, to, number);
    assert!(a.store.get(&rows(number + 1)).unwrap().is_some());
    a.store.commit(vec![(rows(number + 1), None)]).unwrap();
    let mut again = DrivenRange::open(&a.store, 0);
    let failed = again.range.posts(&*again.store, 40).unwrap_err();
    assert!(matches!(failed, StoreError::Damaged { .. }), "{failed}");
}

#[test]
fn too_many_messages_hold_back_submissions_but_not_posts() {
    let [mut a, mut b] = DrivenRange::pair();
    a.range.outbox_mut().keep_in_memory(1_000);
    let rounds = UNFINISHED_MAX as usize / 2 / 1_000 + 1;
    assert!(!a.range.is_holding_back());
    for round in 0..rounds {
        a.commit(redirects(round * 1_000, 1_000));
    }
    assert!(a.range.is_holding_back());
    // The range still takes a post of the other range.
    b.commit(vec![Command::Submit {
        client: ClientId::NONE,
        submission: Box::new(Submission {
            url: urls(1).next().unwrap(),
            fetched_at: Timestamp::from_millis(1),
            popularity: None,
            language: None,
            canonical: None,
            body: Body::Redirect(urls(0).next().unwrap()),
        }),
        hint: None,
    }]);
    let post = b.post(9).unwrap();
    assert!(a.apply(post).is_ok());
}

#[test]
fn an_otherwise_empty_commit_deletes_all_rows_of_confirmed_messages() {
    let [mut a, mut b] = DrivenRange::pair();
    a.commit(redirects(0, 400));
    while let Some(post) = a.post(200) {
        let receipt = b.apply(post).unwrap();
        a.range.confirmed(RangeId(1), &Ok(receipt)).unwrap();
    }
    assert_eq!(a.outbox_rows(), 800);
    a.commit(Vec::new());
    assert_eq!((a.outbox_rows(), a.range.has_work()), (0, false));
}

/// Submits forty pages of range 0 that owe a search. Returns the keys of their records in order.
fn forty_pending(a: &mut DrivenRange) -> Vec<Vec<u8>> {
    let pages: Vec<PageUrl> = urls(0).take(40).collect();
    let submit = |(number, url): (usize, &PageUrl)| Command::Submit {
        client: ClientId::NONE,
        submission: Box::new(Submission {
            url: url.clone(),
            fetched_at: Timestamp::from_millis(1),
            popularity: None,
            language: None,
            canonical: None,
            body: Body::Content(Arc::new(Builder::new().build(&[number as u64; 9]))),
        }),
        hint: None,
    };
    a.commit(pages.iter().enumerate().map(submit).collect());
    let mut keys: Vec<_> = pages.iter().map(|url| key::page(url.id().shard(SHARDS), url.id())).collect();
    keys.sort();
    keys
}

/// Number of searches that a scan of range 0 finds, and number of its failures.
fn scan(store: &dyn Store) -> (usize, usize) {
    let mut scan = OwedScan::new(RangeMap::new(SHARDS, 2).unwrap().run(RangeId(0)));
    let (mut found, mut failures) = (0, 0);
    for _ in 0..100 {
        match scan.piece(store, 25) {
            Ok(Some(owed)) => found += owed.searches.len(),
            Ok(None) => return (found, failures),
            Err(_) => failures += 1,
        }
    }
    panic!("the scan does not end");
}

#[test]
fn a_scan_finds_the_work_before_and_after_a_damaged_row() {
    let [mut a, _] = DrivenRange::pair();
    let keys = forty_pending(&mut a);
    a.store.commit(vec![(keys[30].clone(), Some(vec![1, 2, 3]))]).unwrap();
    assert_eq!(scan(&*a.store), (39, 1));
}

/// A store that cannot read the row with this key, nor any later row.
struct TornAt(Vec<u8>);

impl Intercept for TornAt {
    fn range(
        &self,
        rows: &Memory,
        from: &[u8],
        to: &[u8],
        each: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), StoreError> {
        let mut goes_on = true;
        let is_torn = (from..to).contains(&&*self.0);
        rows.range(from, if is_torn { &self.0 } else { to }, &mut |key, value| {
            goes_on = each(key, value);
            goes_on
        })?;
        if is_torn && goes_on { Err(StoreError::Engine("it is torn".to_owned())) } else { Ok(()) }
    }
}

#[test]
fn a_scan_ends_although_the_store_fails() {
    let [mut a, _] = DrivenRange::pair();
    let keys = forty_pending(&mut a);
    let in_first_shard = keys.iter().take_while(|key| key[..2] == keys[0][..2]).count();
    assert!((5..39).contains(&in_first_shard), "{in_first_shard}");
    let store = Intercepted::new(TornAt(keys[3].clone()));
    a.store
        .range(&[], &[0xff; 64], &mut |key, value| {
            store.rows.commit(vec![(key.to_vec(), Some(value.to_vec()))]).is_ok()
        })
        .unwrap();
    assert_eq!(scan(&store), (3 + 40 - in_first_shard, 1));
}
