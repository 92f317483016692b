//! Tests with nodes in memory.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Barrier, Mutex};

use doppel_model::signature::Builder;
use doppel_model::{ClientId, Timestamp};
use doppel_protocol::{BackupPiece, BackupSummary, Body};

use super::*;

/// A node that has some of the pages, and records its calls.
#[derive(Default)]
struct Node {
    /// Index of the node in the list.
    place: usize,
    asked: Mutex<Vec<(&'static str, usize)>>,
    /// The error that every call returns, if any.
    error: Mutex<Option<Tier1Error>>,
    /// Whether the node returns one outcome too many.
    miscounts: bool,
    /// How long an answer about pages takes.
    delay: Mutex<Duration>,
    /// Waits for other nodes within `submit`.
    barrier: Option<Arc<Barrier>>,
}

impl Node {
    fn ask(&self, call: &'static str, items: usize) -> Answer<()> {
        self.asked.lock().unwrap().push((call, items));
        self.error.lock().unwrap().clone().map_or(Ok(()), Err)
    }

    fn asked(&self) -> Vec<(&'static str, usize)> {
        std::mem::take(&mut *self.asked.lock().unwrap())
    }

    fn fail(&self, error: Option<Tier1Error>) {
        *self.error.lock().unwrap() = error;
    }
}

fn away() -> Tier1Error {
    Tier1Error::Unavailable("simulated failure".to_owned())
}

impl Tier1Reads for Node {
    fn pages(&self, pages: &[PageId]) -> Answer<Vec<Option<PageView>>> {
        std::thread::sleep(*self.delay.lock().unwrap());
        self.ask("pages", pages.len())?;
        Ok(vec![None; pages.len()])
    }

    fn known_advices(&self, pages: &[PageUrl]) -> Answer<Vec<Option<Advice>>> {
        self.ask("known_advices", pages.len())?;
        let advice = |page: &PageUrl| Some(Advice::unknown(format!("{} of {}", page.as_str(), self.place)));
        Ok(pages.iter().map(advice).collect())
    }

    fn first_spelling(&self, form: PageId, _: Option<PageId>) -> Answer<Option<PageId>> {
        self.ask("first_spelling", usize::from(form.bytes()[0]))?;
        Ok(None)
    }

    fn signature(&self, page: PageId) -> Answer<Option<Arc<Signature>>> {
        self.ask("signature", usize::from(page.bytes()[0]))?;
        Ok(None)
    }

    fn group_summary(&self, _: GroupId) -> Answer<Option<GroupSummary>> {
        self.ask("group_summary", 1)?;
        Ok(None)
    }

    fn group(&self, _: GroupId, _: Option<GroupPosition>, _: usize, _: bool) -> Answer<Option<GroupView>> {
        self.ask("group", 1)?;
        Ok(None)
    }
}

impl Tier1Api for Node {
    fn submit_for(&self, _: ClientId, submissions: Vec<Submission>) -> Answer<Vec<SubmissionOutcome>> {
        if let Some(barrier) = &self.barrier {
            barrier.wait();
        }
        self.ask("submit", submissions.len())?;
        // The outcome depends on the submission, so that the test can check the order.
        let outcome = |one: Submission| match one.body {
            Body::Dead => SubmissionOutcome::Confirmed,
            _ => SubmissionOutcome::Pending,
        };
        let more = self.miscounts.then_some(SubmissionOutcome::Stale);
        Ok(submissions.into_iter().map(outcome).chain(more).collect())
    }

    fn groups(&self, _: GroupFilter, _: Option<GroupId>, _: usize) -> Answer<Vec<GroupSummary>> {
        self.ask("groups", 0)?;
        Ok(Vec::new())
    }

    fn changes(&self, _: Option<&str>, _: usize, wait: Duration) -> Answer<FeedBatch> {
        assert!(wait <= Duration::from_secs(1));
        self.ask("changes", 0)?;
        Ok(FeedBatch { changes: Vec::new(), cursor: self.place.to_string(), at_end: true })
    }

    fn scan(&self, _: Option<ScanPosition>, _: usize) -> Answer<LinesPage> {
        self.ask("scan", 0)?;
        Ok(LinesPage::default())
    }

    fn cursor(&self) -> Answer<String> {
        self.ask("cursor", 0)?;
        Ok(self.place.to_string())
    }

    fn totals(&self) -> Answer<Totals> {
        unreachable!("the test does not make this call")
    }

    fn writable(&self) -> Answer<()> {
        self.ask("writable", 0)
    }

    fn repair(&self, _: GroupId, _: bool, _: &str) -> Answer<Option<RepairReport>> {
        self.ask("repair", 1)?;
        Ok(None)
    }

    fn repairs(&self, _: Option<GroupId>, _: Option<&RepairPosition>, _: usize) -> Answer<RepairTrail> {
        unreachable!("the test does not make this call")
    }

    fn repair_details(&self, _: RepairId) -> Answer<Option<RepairDetails>> {
        self.ask("repair_details", 1)?;
        Ok(None)
    }

    fn purge(&self, pages: &[PageId]) -> Answer<u64> {
        self.ask("purge", pages.len())?;
        Ok(pages.len() as u64)
    }

    fn purge_host(&self, _: &str) -> Answer<u64> {
        self.asked.lock().unwrap().push(("purge_host", 0));
        Err(away())
    }

    fn backup(&self) -> Result<BackupStream, BackupError> {
        self.ask("backup", 0)?;
        Ok(Box::new(std::iter::once(Ok(BackupPiece::End(BackupSummary::default())))))
    }

    fn flush(&self, limit: Duration) -> Answer<bool> {
        assert!(limit <= Duration::from_secs(1));
        std::thread::sleep(*self.delay.lock().unwrap());
        self.ask("flush", 0)?;
        Ok(true)
    }
}

/// Node of each of the four shards.
const OF_SHARD: [usize; 4] = [0, 0, 1, 2];

fn nodes(change: impl Fn(&mut Node)) -> (SpreadTier1, Vec<Arc<Node>>) {
    let node = |place| {
        let mut node = Node { place, ..Node::default() };
        change(&mut node);
        Arc::new(node)
    };
    let nodes: Vec<_> = (0..3).map(node).collect();
    let spread = nodes.iter().map(|node| Arc::clone(node) as Arc<dyn Tier1Api>).collect();
    (SpreadTier1::new(spread, fixed()), nodes)
}

fn fixed() -> Arc<dyn OwnerLookup> {
    Arc::new(FixedOwners(OF_SHARD.to_vec()))
}

/// Owners that the test moves, and the number of lookups of each shard.
struct Moving(Mutex<[Option<usize>; 4]>, Mutex<[usize; 4]>);

impl Moving {
    fn new() -> Arc<Self> {
        Arc::new(Self(Mutex::new(OF_SHARD.map(Some)), Mutex::default()))
    }

    fn moves(&self, shard: u16, node: Option<usize>) {
        self.0.lock().unwrap()[usize::from(shard)] = node;
    }
}

impl OwnerLookup for Moving {
    fn shards(&self) -> u16 {
        4
    }

    fn of_shard(&self, shard: ShardId) -> Option<usize> {
        self.1.lock().unwrap()[usize::from(shard.0)] += 1;
        self.0.lock().unwrap()[usize::from(shard.0)]
    }
}

/// Returns nodes whose shards can move.
fn moving() -> (SpreadTier1, Vec<Arc<Node>>, Arc<Moving>) {
    let (_, nodes) = nodes(|_| ());
    let owners = Moving::new();
    let spread = nodes.iter().map(|node| Arc::clone(node) as Arc<dyn Tier1Api>).collect();
    (SpreadTier1::new(spread, owners.clone()), nodes, owners)
}

/// Returns URLs of all nodes, mixed, with the node of each.
fn urls(count: usize) -> Vec<(PageUrl, usize)> {
    let url = |n: usize| PageUrl::parse(&format!("http://a.example/{n}")).unwrap();
    let of = |url: &PageUrl| OF_SHARD[usize::from(url.id().shard(4).0)];
    (0..count).map(url).map(|url| (url.clone(), of(&url))).collect()
}

fn submission(url: PageUrl, body: Body) -> Submission {
    let fetched_at = Timestamp::from_millis(1);
    Submission { url, fetched_at, popularity: None, language: None, canonical: None, body }
}

/// Returns submissions of which every third is a dead page.
fn submissions() -> Vec<Submission> {
    let body =
        |n: usize, url: &PageUrl| if n.is_multiple_of(3) { Body::Dead } else { Body::Redirect(url.clone()) };
    urls(40).into_iter().enumerate().map(|(n, (url, _))| submission(url.clone(), body(n, &url))).collect()
}

#[test]
fn lists_are_split_by_node_and_answers_merged_in_order() {
    // The nodes are called in parallel; otherwise none of them would answer.
    let barrier = Arc::new(Barrier::new(3));
    let (spread, nodes) = nodes(|node| node.barrier = Some(Arc::clone(&barrier)));
    let outcomes = spread.submit(submissions()).unwrap();
    let expected = |n: usize| {
        if n.is_multiple_of(3) { SubmissionOutcome::Confirmed } else { SubmissionOutcome::Pending }
    };
    assert_eq!(outcomes, (0..40).map(expected).collect::<Vec<_>>());
    let urls = urls(40);
    for (place, node) in nodes.iter().enumerate() {
        let count = urls.iter().filter(|(_, of)| *of == place).count();
        assert_eq!(node.asked(), [("submit", count)]);
    }
    let pages: Vec<PageUrl> = urls.iter().map(|(url, _)| url.clone()).collect();
    let expected =
        |(url, place): &(PageUrl, usize)| Some(Advice::unknown(format!("{} of {place}", url.as_str())));
    assert_eq!(spread.known_advices(&pages).unwrap(), urls.iter().map(expected).collect::<Vec<_>>());
    let ids: Vec<PageId> = pages.iter().map(PageUrl::id).collect();
    assert_eq!(spread.pages(&ids).unwrap().len(), 40);
    assert_eq!(spread.purge(&ids).unwrap(), 40);
    nodes.iter().for_each(|node| drop(node.asked()));
    // A list of pages of one node goes to this node only.
    let own: Vec<PageId> = urls.iter().filter(|(_, of)| *of == 1).map(|(url, _)| url.id()).collect();
    assert_eq!(spread.pages(&own).unwrap().len(), own.len());
    assert_eq!(spread.pages(&[]).unwrap().len(), 0);
    assert_eq!((nodes[0].asked(), nodes[1].asked()), (vec![], vec![("pages", own.len())]));
    let too_many = vec![ids[0]; BATCH_PAGES_MAX + 1];
    assert!(matches!(spread.purge(&too_many), Err(Tier1Error::BatchTooLarge { .. })));
    assert!(nodes[0].asked().is_empty());
}

#[test]
fn a_part_that_fails_fails_the_whole_after_the_others_are_done() {
    let (spread, all) = nodes(|_| ());
    all[1].fail(Some(Tier1Error::Full { pending: 2, limit: 1 }));
    assert_eq!(spread.submit(submissions()), Err(Tier1Error::Full { pending: 2, limit: 1 }));
    assert!(all.iter().all(|node| node.asked().len() == 1), "every node was called once");
    let (spread, _) = nodes(|node| node.miscounts = node.place == 2);
    let Err(Tier1Error::Unavailable(why)) = spread.submit(submissions()) else {
        panic!("the wrong number of outcomes was not noticed")
    };
    assert!(why.contains("answers for"), "{why}");
}

#[test]
fn the_next_call_goes_to_the_new_owner() {
    let (spread, nodes, owners) = moving();
    let group = GroupId::new(7, ShardId(2));
    spread.group_summary(group).unwrap();
    assert_eq!((nodes[1].asked().len(), nodes[2].asked().len()), (1, 0));
    owners.moves(2, Some(2));
    spread.group_summary(group).unwrap();
    assert_eq!((nodes[1].asked().len(), nodes[2].asked().len()), (0, 1));
    *owners.1.lock().unwrap() = [0; 4];
    let ids: Vec<PageId> = urls(40).iter().map(|(url, _)| url.id()).collect();
    assert_eq!(spread.pages(&ids).unwrap().len(), 40);
    let of_node = |node: usize| urls(40).iter().filter(|(_, of)| (*of).min(1) == node.min(1)).count();
    let asked: Vec<_> = nodes.iter().map(|node| node.asked()).collect();
    assert_eq!(asked, [vec![("pages", of_node(0))], vec![], vec![("pages", of_node(2))]]);
    // One call looks up the owner of a shard once, however many pages it has.
    assert_eq!(*owners.1.lock().unwrap(), [1; 4]);
}

#[test]
fn items_without_a_known_owner_fail_and_the_others_succeed() {
    let (spread, nodes, owners) = moving();
    owners.moves(2, None);
    let unknown = || Tier1Error::Unavailable("no owner of shard 2 is known".to_owned());
    assert_eq!(spread.group_summary(GroupId::new(7, ShardId(2))), Err(unknown()));
    assert_eq!(spread.submit(submissions()), Err(unknown()));
    let asked: Vec<_> = nodes.iter().map(|node| node.asked().len()).collect();
    assert_eq!(asked, [1, 0, 1], "the other nodes were called");
    // The error of a node takes precedence, because it may be of another kind.
    nodes[2].fail(Some(Tier1Error::Full { pending: 2, limit: 1 }));
    assert_eq!(spread.submit(submissions()), Err(Tier1Error::Full { pending: 2, limit: 1 }));
    nodes[2].fail(None);
    let answers = spread.submit_each(ClientId::NONE, submissions());
    for ((n, answer), (_, of)) in answers.into_iter().enumerate().zip(urls(40)) {
        let outcome =
            if n.is_multiple_of(3) { SubmissionOutcome::Confirmed } else { SubmissionOutcome::Pending };
        assert_eq!(answer, if of == 1 { Err(unknown()) } else { Ok(outcome) });
    }
    (0..4).for_each(|shard| owners.moves(shard, None));
    assert!(matches!(spread.submit(submissions()), Err(Tier1Error::Unavailable(_))));
    for (answer, (url, _)) in spread.submit_each(ClientId::NONE, submissions()).into_iter().zip(urls(40)) {
        let why = format!("no owner of shard {} is known", url.id().shard(4).0);
        assert_eq!(answer, Err(Tier1Error::Unavailable(why)), "each error names its shard");
    }
    assert_eq!(spread.known_advice(&urls(1)[0].0), None);
    // A call about the whole collection needs no owner.
    assert_eq!(spread.cursor().unwrap(), "0");
    owners.moves(2, Some(1));
    assert_eq!(spread.group_summary(GroupId::new(7, ShardId(2))), Ok(None));
}

#[test]
fn calls_about_a_shard_go_only_to_its_owner() {
    let (spread, nodes) = nodes(|_| ());
    for (shard, place) in OF_SHARD.into_iter().enumerate() {
        let group = GroupId::new(7, ShardId(shard as u16));
        let shard = ShardId(shard as u16);
        let page = PageId::first_of(shard, 4);
        spread.signature(page).unwrap();
        spread.group_summary(group).unwrap();
        spread.group(group, None, 1, false).unwrap();
        spread.repair(group, true, "me").unwrap();
        spread.repair_details(RepairId { shard, number: 1 }).unwrap();
        for node in &nodes {
            assert_eq!(node.asked().len(), if node.place == place { 5 } else { 0 });
        }
    }
    // The shard does not exist, so the first node answers that the group does not exist.
    assert_eq!(spread.group_summary(GroupId::new(7, ShardId(900))), Ok(None));
    assert_eq!(nodes[0].asked(), [("group_summary", 1)]);
    nodes[1].fail(Some(away()));
    assert_eq!(spread.group_summary(GroupId::new(7, ShardId(2))), Err(away()));
}

#[test]
fn calls_about_the_whole_collection_go_to_any_node_that_answers() {
    let (spread, nodes) = nodes(|_| ());
    assert_eq!(spread.cursor().unwrap(), "0");
    nodes[0].fail(Some(away()));
    nodes[1].fail(Some(away()));
    let second = Duration::from_secs(1);
    assert_eq!(spread.changes(None, 1, second).unwrap().cursor, "2");
    assert_eq!((nodes[0].asked().len(), nodes[1].asked().len()), (2, 1));
    // The node that answered is now called first.
    spread.scan(None, 1).unwrap();
    assert!(spread.flush(second).unwrap());
    spread.writable().unwrap();
    assert_eq!(spread.backup().unwrap().count(), 1);
    assert!(nodes[0].asked().is_empty() && nodes[1].asked().is_empty());
    // Any other error counts as an answer.
    nodes[2].fail(Some(Tier1Error::CursorGone));
    assert_eq!(spread.changes(None, 1, second), Err(Tier1Error::CursorGone));
    assert!(nodes[0].asked().is_empty());
    nodes.iter().for_each(|node| node.fail(Some(away())));
    assert_eq!(spread.cursor(), Err(away()));
    assert!(matches!(spread.backup(), Err(BackupError::Tier1Error(Tier1Error::Unavailable(_)))));
    assert!(SpreadTier1::new(Vec::new(), fixed()).cursor().is_err());
}

#[test]
fn a_flush_returns_the_error_of_a_node_that_waited_until_the_limit() {
    let (spread, nodes) = nodes(|_| ());
    nodes[0].fail(Some(away()));
    *nodes[0].delay.lock().unwrap() = Duration::from_millis(20);
    assert_eq!(spread.flush(Duration::from_millis(10)), Err(away()));
    assert_eq!((nodes[0].asked().len(), nodes[1].asked().len()), (1, 0));
    // A node that cannot be reached has not waited, and neither has a call with a limit of zero.
    assert_eq!(spread.flush(Duration::from_secs(1)), Ok(true));
    assert_eq!((nodes[0].asked().len(), nodes[1].asked().len()), (1, 1));
    nodes[1].fail(Some(away()));
    assert_eq!(spread.flush(Duration::ZERO), Ok(true));
    assert_eq!((nodes[1].asked().len(), nodes[2].asked().len()), (1, 1));
}

#[test]
fn a_host_is_purged_by_one_node_that_answers() {
    let (spread, nodes) = nodes(|_| ());
    nodes[0].fail(Some(away()));
    assert_eq!(spread.purge_host("a.example"), Err(away()));
    let asked: Vec<_> = nodes.iter().map(|node| node.asked()).collect();
    assert_eq!(asked, [vec![("cursor", 0)], vec![("cursor", 0), ("purge_host", 0)], vec![]]);
}

/// Signatures whose number of tokens reveals the page and the node.
struct Signatures {
    place: usize,
    asked: AtomicUsize,
}

impl SignatureSource for Signatures {
    fn signatures(&self, pages: &[PageId]) -> Result<Vec<Option<Arc<Signature>>>, SourceError> {
        self.asked.fetch_add(pages.len(), Ordering::Relaxed);
        let tokens = |page: &PageId| vec![1; 10 * usize::from(page.bytes()[1]) + self.place];
        Ok(pages.iter().map(|page| Some(Arc::new(Builder::new().build(&tokens(page))))).collect())
    }
}

#[test]
fn signatures_come_from_the_nodes_of_their_pages() {
    let sources: Vec<_> =
        (0..3).map(|place| Arc::new(Signatures { place, asked: AtomicUsize::new(0) })).collect();
    let nodes = sources.iter().map(|source| Arc::clone(source) as Arc<dyn SignatureSource>).collect();
    let spread = SpreadSignatures::new(nodes, fixed());
    let mut pages = Vec::new();
    let mut expected = Vec::new();
    for n in 0..12_u8 {
        let shard = n % 4;
        let mut bytes = [0; 16];
        (bytes[0], bytes[1]) = (shard * 64, n);
        pages.push(PageId::from_bytes(bytes));
        expected.push(10 * u32::from(n) + OF_SHARD[usize::from(shard)] as u32);
    }
    let found = spread.signatures(&pages).unwrap();
    assert_eq!(found.iter().map(|one| one.as_ref().unwrap().tokens()).collect::<Vec<_>>(), expected);
    assert_eq!(spread.signatures(&vec![pages[0]; SIGNATURES_MAX + 1]).unwrap().len(), SIGNATURES_MAX);
    assert_eq!(sources[1].asked.load(Ordering::Relaxed), 3);
}

/// Owners that are present or count as dead, and replicas. Only questions use them.
struct Replicated {
    owners: Mutex<[Option<usize>; 4]>,
    replicas: [Vec<usize>; 4],
}

impl OwnerLookup for Replicated {
    fn shards(&self) -> u16 {
        4
    }

    fn of_shard(&self, shard: ShardId) -> Option<usize> {
        OF_SHARD.get(usize::from(shard.0)).copied()
    }

    fn present(&self, shard: ShardId) -> Option<usize> {
        self.owners.lock().unwrap().get(usize::from(shard.0)).copied().flatten()
    }

    fn may_change(&self) -> bool {
        true
    }

    fn replicas(&self, shard: ShardId) -> Vec<usize> {
        self.replicas[usize::from(shard.0)].clone()
    }
}

/// Returns three nodes, and the nodes to call if the owner of a shard does not answer.
fn replicated() -> (SpreadTier1, Vec<Arc<Node>>, Arc<Replicated>) {
    let (_, nodes) = nodes(|_| ());
    let replicas = [vec![1], vec![1], vec![2], vec![0, 1]];
    let owners = Arc::new(Replicated { owners: Mutex::new(OF_SHARD.map(Some)), replicas });
    let spread = nodes.iter().map(|node| Arc::clone(node) as Arc<dyn Tier1Api>).collect();
    (SpreadTier1::new(spread, owners.clone()), nodes, owners)
}

#[test]
fn a_question_goes_to_replicas_if_owners_do_not_answer() {
    let (spread, nodes, owners) = replicated();
    let ids: Vec<PageId> = urls(40).iter().map(|(url, _)| url.id()).collect();
    let of = |node: usize| urls(40).iter().filter(|(_, of)| *of == node).count();
    let asked = || nodes.iter().map(|node| node.asked()).collect::<Vec<_>>();
    let ask = || Question::default().ask(&spread, |reads| reads.pages(&ids));
    assert_eq!(ask().unwrap().len(), 40);
    assert_eq!(asked(), [0, 1, 2].map(|node| vec![("pages", of(node))]));
    // An owner that counts as dead is not called. Its pages go to their replicas, the others to their owners.
    owners.owners.lock().unwrap()[2] = None;
    assert_eq!(ask().unwrap().len(), 40);
    assert_eq!(asked(), [vec![("pages", of(0))], vec![], vec![("pages", of(2)), ("pages", of(1))]]);
    // A read without a question still goes to the owner.
    assert_eq!(spread.pages(&ids).unwrap().len(), 40);
    assert_eq!(asked()[1], [("pages", of(1))]);
    owners.owners.lock().unwrap()[2] = Some(1);
    // An owner that does not answer is called first. Of two replicas, the second answers.
    nodes[2].fail(Some(away()));
    nodes[0].fail(Some(Tier1Error::Stopping));
    assert_eq!(ask().unwrap().len(), 40);
    let last = &asked()[1];
    assert_eq!(last.iter().map(|(_, count)| count).sum::<usize>(), 40, "{last:?}");
    let known = Question::default().ask(&spread, |reads| {
        reads.known_advices(&urls(40).into_iter().map(|(url, _)| url).collect::<Vec<_>>())
    });
    let known = known.unwrap().into_iter().zip(urls(40));
    assert!(
        known.into_iter().all(|(known, (_, of))| known.is_some() == (of == 1)),
        "only owners know advice without reading rows"
    );
    asked();
    // If no node answers, the owner is called once more, and its error is returned.
    nodes[1].fail(Some(away()));
    let group = GroupId::new(7, ShardId(3));
    let answer = Question::default().ask(&spread, |reads| reads.group_summary(group));
    assert_eq!(answer, Err(away()));
    assert_eq!(asked().iter().map(Vec::len).collect::<Vec<_>>(), [1, 1, 2]);
    // A damaged row counts as an answer.
    nodes[2].fail(Some(Tier1Error::Damaged("a row".to_owned())));
    let answer = Question::default().ask(&spread, |reads| reads.group_summary(group));
    assert_eq!(answer, Err(Tier1Error::Damaged("a row".to_owned())));
    assert_eq!(asked().iter().map(Vec::len).sum::<usize>(), 1);
}

#[test]
fn answers_of_owners_age_and_sooner_if_owners_can_be_deposed() {
    let ((replicated, of_replicated, _), (fixed, of_fixed)) = (replicated(), nodes(|_| ()));
    let ids: Vec<PageId> = urls(40).iter().map(|(url, _)| url.id()).collect();
    *of_replicated[2].delay.lock().unwrap() = Duration::from_millis(1_100);
    *of_fixed[2].delay.lock().unwrap() = Duration::from_millis(1_100);
    let ask = |spread: &SpreadTier1| {
        let question = Question::default();
        assert_eq!(question.ask(spread, |reads| reads.pages(&ids)).unwrap().len(), 40);
        question.dated_answer(())
    };
    assert!(matches!(ask(&replicated), Err(Tier1Error::Unavailable(_))));
    assert_eq!(ask(&fixed).unwrap().age, None);
    *of_replicated[2].delay.lock().unwrap() = Duration::ZERO;
    assert_eq!(ask(&replicated).unwrap().age, None);
}

#[test]
fn the_node_that_answered_last_is_called_first_but_not_after_an_error() {
    let (spread, nodes) = nodes(|_| ());
    nodes[0].fail(Some(Tier1Error::Stopping));
    nodes[1].fail(Some(Tier1Error::CursorGone));
    assert_eq!(spread.cursor(), Err(Tier1Error::CursorGone));
    nodes[0].fail(None);
    assert_eq!(spread.cursor(), Ok("0".to_owned()), "a node does not become the preferred one by an error");
    nodes[0].fail(Some(away()));
    nodes[1].fail(None);
    assert_eq!(spread.cursor(), Ok("1".to_owned()));
    nodes[0].fail(None);
    assert_eq!(spread.cursor(), Ok("1".to_owned()));
}
