//! Tests of the service with its threads, over stores in memory.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use doppel_contract::{LoadReport, Status, SubmissionOutcome};
use doppel_model::pairwise::{Policy, Similarity};
use doppel_model::signature::{Builder, Signature};
use doppel_model::{ContentHash, Epoch, PageId, PageUrl, PartitionId, RangeId, Timestamp};
use doppel_protocol::{
    Body, ContentSource, IndexCommand, IndexError, IndexOrders, Orders, PartitionLookup, RefusedOrders,
    SearchResult, Submission, Tier1Api, Tier1Error, Tier1Reads, Tier2Api, VerifiedPartner, WinnerOrder,
};

use super::{Config, Tier1};
use crate::machine::{Retention, Rules};
use crate::rows::key;
use crate::storage::store::{Memory, Store};

/// A tier 2 that reports every other page as a partner.
struct LinkingIndex {
    answer: OnceLock<Arc<dyn ContentSource>>,
    /// Most partners that a search reports.
    partners: AtomicUsize,
    /// Number of following calls that are refused.
    refusals: AtomicUsize,
    /// Index of the last order of each owner of a range.
    submitted: Mutex<HashMap<(RangeId, Epoch), u64>>,
    known: Mutex<Vec<(PageId, ContentHash)>>,
}

impl LinkingIndex {
    fn naming(partners: usize) -> Self {
        let (partners, refusals) = (AtomicUsize::new(partners), AtomicUsize::new(0));
        Self {
            answer: OnceLock::new(),
            partners,
            refusals,
            submitted: Mutex::default(),
            known: Mutex::default(),
        }
    }
}

impl IndexOrders for LinkingIndex {
    fn submit(&self, orders: Orders) -> Result<(), RefusedOrders> {
        let less = |left: usize| left.checked_sub(1);
        if self.refusals.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok() {
            let error = IndexError::Unavailable("it is refused".to_owned());
            return Err(RefusedOrders { orders, error });
        }
        let mut submitted = self.submitted.lock().unwrap();
        let last = submitted.entry((orders.range, orders.epoch)).or_default();
        // The first order of an owner may have any index.
        if *last == 0 {
            *last = orders.first - 1;
        }
        assert_eq!(orders.first, *last + 1, "orders are missing or come twice");
        *last += orders.commands.len() as u64;
        drop(submitted);
        let mut known = self.known.lock().unwrap();
        let mut searches = Vec::new();
        for command in orders.commands {
            match command {
                IndexCommand::Put { page, signature, search } => {
                    known.push((page, signature.content()));
                    searches.extend(search.map(|search| (page, signature.content(), search.ticket)));
                }
                IndexCommand::Remove { page, content } => known.retain(|entry| *entry != (page, content)),
                IndexCommand::Search { page, content, search } => {
                    searches.push((page, content, search.ticket));
                }
            }
        }
        let pair = |(page, content): &(PageId, ContentHash)| VerifiedPartner {
            page: *page,
            content: *content,
            similarity: Similarity { shared: 1, of: 2 },
        };
        let result = |(page, content, ticket)| {
            let others = known.iter().filter(|(other, _)| *other != page).map(pair);
            let pairs = others.take(self.partners.load(Ordering::Relaxed)).collect();
            SearchResult { page, content, ticket, pairs }
        };
        let results = searches.into_iter().map(result).collect();
        self.answer.get().unwrap().deliver(results).unwrap();
        Ok(())
    }
}

impl Tier2Api for LinkingIndex {
    fn probe(&self, _: &Signature) -> Result<Vec<VerifiedPartner>, IndexError> {
        Ok(Vec::new())
    }

    fn locate(&self, _: &Signature) -> Result<PartitionLookup, IndexError> {
        Ok(PartitionLookup { home: PartitionId(0), lengths: Vec::new(), probed_partitions: Vec::new() })
    }

    fn load(&self) -> Result<LoadReport, IndexError> {
        unreachable!("no test asks for the load")
    }

    fn waiting(&self) -> Result<usize, IndexError> {
        Ok(0)
    }

    fn flush_batch(&self) -> Result<(), IndexError> {
        Ok(())
    }
}

/// Defines each test twice: over one range, and over three.
macro_rules! over_ranges {
    ($($name:ident,)*) => {
        mod one_range {
            $(#[test] fn $name() { super::$name(1); })*
        }
        mod three_ranges {
            $(#[test] fn $name() { super::$name(3); })*
        }
    };
}

mod backup;
mod bounds;
mod failures;
mod held_back;

mod ownership;
mod peers;
mod progress;
mod repair_trail;
mod replication;
mod scan;
mod shares;
mod statuses;
mod stopping;
mod waiting;

over_ranges! {
    the_feed_gives_every_shard_its_share_and_refuses_cursors_it_never_gave,
    a_host_is_purged_in_steps,
    retention_drops_pages_and_refuses_cursors_that_may_have_missed_them,
    a_group_is_listed_in_pieces_with_the_redirects_that_end_in_it,
    orders_that_tier_2_refuses_are_sent_again_in_order,
}

fn start(store: &Arc<Memory>, ranges: u16) -> Arc<Tier1> {
    start_keeping(store, Retention::DEFAULT, ranges)
}

fn config(retention: Retention, ranges: u16) -> Config {
    Config {
        dir: std::path::PathBuf::new(),
        shards: 3,
        ranges,
        policy: Policy::default(),
        winners: WinnerOrder::DEFAULT,
        pending_max: 100,
        group_members_max: 1_000,
        low_cohesion_percent: 25,
        rules: Rules::EXACT,
        retention,
        status_table: true,
        snapshot_pause: Duration::ZERO,
        durable: true,
        collection: 1,
        manifest: String::new(),
    }
}

fn start_keeping(store: &Arc<Memory>, retention: Retention, ranges: u16) -> Arc<Tier1> {
    start_with(store, &config(retention, ranges), usize::MAX).0
}

fn start_with<S: Store + 'static>(
    store: &Arc<S>,
    config: &Config,
    partners: usize,
) -> (Arc<Tier1>, Arc<LinkingIndex>) {
    // Several ranges may share a store, because each has rows of its own.
    let stores = (0..config.ranges).map(|_| Arc::clone(store) as Arc<dyn Store>);
    let tier1 = Tier1::open_over_stores(stores.collect(), config).unwrap();
    let tier2 = Arc::new(LinkingIndex::naming(partners));
    assert!(tier2.answer.set(Arc::clone(&tier1) as Arc<dyn ContentSource>).is_ok());
    tier1.start(Arc::clone(&tier2) as Arc<dyn IndexOrders>).unwrap();
    (tier1, tier2)
}

fn url(page: u64) -> PageUrl {
    PageUrl::parse(&format!("http://host/{page}")).unwrap()
}

fn version(page: u64, at: i64, body: Body) -> Submission {
    Submission {
        url: url(page),
        fetched_at: Timestamp::from_millis(at),
        popularity: None,
        language: None,
        canonical: None,
        body,
    }
}

/// A submission of a page with its own content.
fn submission(page: u64) -> Submission {
    version(page, 1, content(page))
}

fn submit(tier1: &Tier1, page: u64, at: i64, body: Body) -> SubmissionOutcome {
    tier1.submit(vec![version(page, at, body)]).unwrap()[0]
}

/// A content of 100 tokens, one of which only this page has.
fn content(page: u64) -> Body {
    let tokens: Vec<u64> = (0..100).map(|i| if i == 50 { 1_000 + page } else { i }).collect();
    Body::Content(Arc::new(Builder::new().build(&tokens)))
}

const PATIENCE: Duration = Duration::from_secs(120);

fn the_feed_gives_every_shard_its_share_and_refuses_cursors_it_never_gave(ranges: u16) {
    let store = Arc::new(Memory::default());
    let tier1 = start(&store, ranges);
    for page in 0..30 {
        submit(&tier1, page, 1, content(page * 1_000));
    }
    assert!(tier1.flush(PATIENCE).unwrap());
    let mut seen = Vec::new();
    let mut cursor = None;
    loop {
        let changes = tier1.changes(cursor.as_deref(), 4, Duration::ZERO).unwrap();
        assert!(changes.changes.len() <= 4);
        seen.extend(changes.changes.into_iter().map(|change| change.line.url));
        cursor = Some(changes.cursor);
        if changes.at_end {
            break;
        }
    }
    seen.sort();
    let mut all: Vec<PageUrl> = (0..30).map(url).collect();
    all.sort();
    assert_eq!(seen, all);
    let first: Vec<_> = tier1.changes(None, 3, Duration::ZERO).unwrap().changes;
    let shards: std::collections::HashSet<_> =
        first.iter().map(|change| tier1.collection.shard_of(change.line.url.id())).collect();
    assert_eq!(shards.len(), 3);

    let ahead = format!("{:x}.ffff.0.0", 1);
    assert_eq!(tier1.changes(Some(&ahead), 4, Duration::ZERO).unwrap_err(), Tier1Error::CursorGone);
    tier1.stop();
}

fn a_host_is_purged_in_steps(ranges: u16) {
    let store = Arc::new(Memory::default());
    let tier1 = start(&store, ranges);
    let body = || Body::Redirect(url(0));
    for page in 0..4_000 {
        submit(&tier1, page, 1, body());
    }
    assert_eq!(tier1.purge_host("HOST").unwrap(), 4_000);
    assert_eq!(tier1.purge_host("host").unwrap(), 0);
    assert!(tier1.pages(&[url(5).id()]).unwrap()[0].is_none());
    tier1.stop();
}

fn retention_drops_pages_and_refuses_cursors_that_may_have_missed_them(ranges: u16) {
    let store = Arc::new(Memory::default());
    let now = Duration::ZERO;
    let retention = Retention { dead: now, purged: now, merged: now, ..Retention::DEFAULT };
    let tier1 = start_keeping(&store, retention, ranges);
    for page in 0..20 {
        submit(&tier1, page, 1, content(page * 1_000));
    }
    submit(&tier1, 30, 1, Body::Redirect(url(0)));
    assert!(tier1.flush(PATIENCE).unwrap());
    let replay = |tier1: &Tier1, mut cursor: Option<String>| loop {
        let changes = tier1.changes(cursor.as_deref(), 2, Duration::ZERO)?;
        if changes.at_end {
            return Ok::<_, Tier1Error>(changes.cursor);
        }
        cursor = Some(changes.cursor);
    };
    let up_to_date = replay(&tier1, None).unwrap();
    let begun = tier1.changes(None, 2, Duration::ZERO).unwrap().cursor;
    submit(&tier1, 0, 2, Body::Dead);
    tier1.purge(&[url(1).id(), url(2).id()]).unwrap();
    let (dead, purged) = (url(0).id(), url(1).id());
    let has = |page| store.get(&key::page(tier1.collection.shard_of(page), page)).unwrap().is_some();
    let deadline = std::time::Instant::now() + PATIENCE;
    while has(dead) || has(purged) {
        assert!(std::time::Instant::now() < deadline, "the rows are still there");
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(tier1.flush(PATIENCE).unwrap());
    // The purge leaves no row of the page, except the target that the redirect names.
    let mut rows = Vec::new();
    store
        .range(&[], &[0xff; 4], &mut |key, value| {
            rows.push((key.to_vec(), value.to_vec()));
            true
        })
        .unwrap();
    let named = |url: &PageUrl| {
        let (text, id) = (url.as_str().as_bytes(), url.id());
        let has = |bytes: &[u8], part: &[u8]| bytes.windows(part.len()).any(|window| window == part);
        rows.iter()
            .filter(|(key, value)| has(value, text) || has(value, id.bytes()) || has(key, id.bytes()))
            .count()
    };
    // Other URLs begin with "http://host/1", so only page 2 is looked for.
    assert_eq!(named(&url(2)), 0);
    let redirect = tier1.pages(&[url(30).id()]).unwrap().remove(0).unwrap();
    assert_eq!(redirect.unresolved, Some(doppel_contract::UnresolvedReason::UnknownTarget));

    assert_eq!(replay(&tier1, Some(up_to_date)).unwrap_err(), Tier1Error::CursorGone);
    assert_eq!(replay(&tier1, Some(begun)).unwrap_err(), Tier1Error::CursorGone);
    let fresh = replay(&tier1, None).unwrap();
    assert_eq!(replay(&tier1, Some(fresh.clone())).unwrap(), fresh);
    tier1.stop();
}

fn a_group_is_listed_in_pieces_with_the_redirects_that_end_in_it(ranges: u16) {
    let store = Arc::new(Memory::default());
    let tier1 = start(&store, ranges);
    for page in 0..3 {
        submit(&tier1, page, 1, content(page));
    }
    for page in 10..17 {
        submit(&tier1, page, 1, Body::Redirect(url(page % 2)));
    }
    assert!(tier1.flush(PATIENCE).unwrap());
    let group = tier1.pages(&[url(0).id()]).unwrap().remove(0).unwrap().line.group.unwrap();
    let list = |limit: usize, redirects: bool| {
        let (mut urls, mut after) = (Vec::new(), None);
        loop {
            let view = tier1.group(group, after, limit, redirects).unwrap().unwrap();
            assert!(view.members.len() <= limit);
            urls.extend(view.members.into_iter().map(|member| member.line.url));
            after = view.next.map(|next| next.to_string().parse().unwrap());
            if after.is_none() {
                urls.sort();
                return urls;
            }
        }
    };
    let mut all: Vec<PageUrl> = (0..3).chain(10..17).map(url).collect();
    all.sort();
    for limit in [1, 2, 3, 4, 100] {
        assert_eq!(list(limit, true), all, "{limit}");
        assert_eq!(list(limit, false), (0..3).map(url).collect::<Vec<_>>(), "{limit}");
    }
    tier1.stop();
}

fn orders_that_tier_2_refuses_are_sent_again_in_order(ranges: u16) {
    let store = Arc::new(Memory::default());
    let (tier1, tier2) = start_with(&store, &config(Retention::DEFAULT, ranges), usize::MAX);
    for page in 0..30 {
        // Each further commit adds orders to those that were refused.
        tier2.refusals.store(3, Ordering::Relaxed);
        submit(&tier1, page, 1, content(page));
    }
    assert!(tier1.flush(PATIENCE).unwrap());
    assert!(tier1.totals().unwrap().counters.searches >= 30);
    tier1.stop();
}
