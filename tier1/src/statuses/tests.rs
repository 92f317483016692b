//! Tests of the status tables of one and of several ranges, over rows in memory.

use std::sync::Arc;

use doppel_contract::answer::Advice;
use doppel_contract::{Status, WinnerRule};
use doppel_model::pairwise::Similarity;
use doppel_model::{ClientId, ContentHash, RangeId, ShardId, Timestamp};
use doppel_protocol::{RangeMap, Rank, WinnerOrder};

use super::*;
use crate::machine::public_state;
use crate::rows::key;
use crate::rows::record::{
    ContentComparison, ContentState, Cover, ForwardProbe, Group as GroupRow, GroupRecord, Member, Membership,
    PageRecord, PublicState, RedirectState, SearchState, State, Winner, encode,
};
use crate::storage::store::{Intercept, Intercepted, Memory, Store, StoreError, Write};

mod snapshot;

const SHARDS: u16 = 8;

fn url(page: &str) -> PageUrl {
    PageUrl::parse(&format!("http://host/{page}")).unwrap()
}

fn content(number: u8) -> ContentHash {
    ContentHash([number; 16])
}

fn record(page: &str, state: State) -> PageRecord {
    let rank = Rank { url: url(page), popularity: None, first_seen: Timestamp::from_millis(0) };
    let published = PublicState {
        status: Status::Pending,
        group: None,
        winner: None,
        duplicate_of: None,
        similarity: None,
        reason: None,
    };
    let mut record = PageRecord {
        rank,
        fetched_at: Timestamp::from_millis(1_700_000_000_000),
        popularity_at: None,
        language: None,
        canonical: None,
        state,
        membership_number: 0,
        ticket: 0,
        inbound_redirects: 0,
        ended: None,
        event: 1,
        published,
    };
    record.published = public_state(url(page).id(), &record);
    record
}

fn ungrouped(number: u8) -> State {
    State::Content(ContentState {
        client: ClientId::NONE,
        content: content(number),
        tokens: 100,
        size: 100,
        search: SearchState::Compared,
        partner_query: None,
        membership: None,
        measured: Vec::new(),
    })
}

/// Returns the state of a page that is a near-duplicate of its winner.
fn member(number: u8, group: GroupId, winner: (&str, u8)) -> State {
    compared(number, group, winner, true)
}

/// Returns the state of a page in a group that was compared with its winner.
fn compared(number: u8, group: GroupId, winner: (&str, u8), similar: bool) -> State {
    let State::Content(state) = ungrouped(number) else { unreachable!() };
    let winner_content = content(winner.1);
    let verdict = ContentComparison {
        content: winner_content,
        similarity: Similarity { shared: 95, of: 105 },
        similar,
    };
    let membership = Membership {
        group,
        enrolled_at: group,
        content: content(number),
        compared: true,
        winner: Some(Winner {
            page: url(winner.0).id(),
            content: winner_content,
            url: url(winner.0),
            quarantined: false,
        }),
        verdict: Some(verdict),
        forward_probe: ForwardProbe::Idle,
        dissimilar: false,
        covered_by: None,
        cover_number: 0,
    };
    State::Content(ContentState { membership: Some(membership), ..state })
}

fn page_row(page: &str, state: State) -> Write {
    let id = url(page).id();
    (key::page(id.shard(SHARDS), id), Some(encode(&record(page, state)).unwrap()))
}

fn group_row(group: GroupId, winner: &str, number: u8, quarantined: bool) -> Write {
    let rank = Rank { url: url(winner), popularity: None, first_seen: Timestamp::from_millis(0) };
    let member = Member {
        membership_number: 0,
        content: content(number),
        rank,
        has_inbound_redirects: false,
        dissimilar: false,
        cover: Cover::Unsent,
        cover_number: 0,
    };
    let record = GroupRecord::Active(GroupRow {
        winner: Some((url(winner).id(), member)),
        members: 2,
        with_inbound_redirects: 0,
        dissimilar: 0,
        secondaries: 0,
        changes: 0,
        losses: 0,
        dirty: false,
        uncovered: false,
        cover_changes: 0,
        quarantined,
        contents_max: 0,
        contents_at_repair: 0,
        dissimilar_at_recheck: 0,
        election: None,
        announcement: None,
        incoming: Vec::new(),
    });
    (key::group(group), Some(encode(&record).unwrap()))
}

fn gone(row: Write) -> Write {
    (row.0, None)
}

/// Ranges with rows in memory and status tables.
struct Ranges {
    map: RangeMap,
    statuses: Statuses,
    stores: Vec<Arc<Memory>>,
    watched: Vec<TrackedStore>,
}

impl Ranges {
    fn new(ranges: u16) -> Self {
        let map = RangeMap::new(SHARDS, ranges).unwrap();
        let statuses = Statuses::new(map, WinnerOrder::DEFAULT, SecretKey::random());
        let stores: Vec<Arc<Memory>> = map.ranges().map(|_| Arc::default()).collect();
        let watched = map.ranges().zip(&stores);
        let watched = watched.map(|(range, store)| {
            TrackedStore::new(Arc::clone(store) as Arc<dyn Store>, statuses.of_range(range))
        });
        Self { map, watched: watched.collect(), stores, statuses }
    }

    fn complete(ranges: u16) -> Self {
        let this = Self::new(ranges);
        this.fill();
        this
    }

    fn fill(&self) {
        for (range, store) in self.map.ranges().zip(&self.stores) {
            let mut fill = self.statuses.fill(range);
            loop {
                fill.read(&**store, 3).unwrap();
                if !fill.put() {
                    break;
                }
            }
        }
    }

    fn commit(&self, row: Write) {
        self.watched[usize::from(key::range_of(self.map, &row.0).0)].commit(vec![row]).unwrap();
    }

    fn advise(&self, page: &str) -> Option<Advice> {
        self.statuses.advise(&url(page))
    }

    fn status(&self, page: &str) -> Option<Status> {
        self.advise(page).map(|advice| advice.status)
    }
}

fn a_group() -> GroupId {
    GroupId::new(7, ShardId(3))
}

/// Returns the rows of a winner, a duplicate of it, and their group.
fn three() -> [Write; 3] {
    let winner = ("w", 1);
    [
        page_row("w", member(1, a_group(), winner)),
        page_row("copy", member(2, a_group(), winner)),
        group_row(a_group(), "w", 1, false),
    ]
}

#[test]
fn the_table_answers_common_questions_and_leaves_others_to_the_rows() {
    for ranges in [1, 3, 8] {
        let of = Ranges::complete(ranges);
        three().into_iter().for_each(|row| of.commit(row));
        let to_winner = RedirectState { to: url("w"), stands_for: None, resolution: None, target: None };
        let pending = |state| {
            let State::Content(state) = state else { unreachable!() };
            State::Content(ContentState { search: SearchState::Pending, ..state })
        };
        of.commit(page_row("alone", ungrouped(3)));
        of.commit(page_row("new", pending(ungrouped(4))));
        of.commit(page_row("changed", pending(member(5, a_group(), ("w", 1)))));
        of.commit(page_row("member", compared(6, a_group(), ("w", 1), false)));
        of.commit(page_row("dead", State::Dead));
        of.commit(page_row("purged", State::Purged));
        of.commit(page_row("redirect", State::Redirect(to_winner)));
        for (page, status) in [
            ("alone", Some(Status::Unique)),
            ("new", Some(Status::Pending)),
            ("changed", Some(Status::Pending)),
            ("dead", Some(Status::Dead)),
            ("purged", Some(Status::Unknown)),
            ("never", Some(Status::Unknown)),
            ("redirect", None),
            ("w", Some(Status::Winner)),
            ("copy", Some(Status::Duplicate)),
            ("member", Some(Status::Secondary)),
        ] {
            assert_eq!(of.status(page), status, "{page}");
        }
        let copy = of.advise("copy").unwrap();
        assert_eq!((copy.group.as_deref(), copy.winner), (Some("g7-3"), Some(url("w"))));
        assert_eq!((copy.similarity, copy.rule), (Some(95.0 / 105.0), Some(WinnerRule::ShorterUrl)));
        assert_eq!(copy.fetched_at.as_deref(), Some("2023-11-14T22:13:20Z"));
        let winner = of.advise("w").unwrap();
        assert_eq!((winner.group, winner.winner, winner.rule), (copy.group, Some(url("w")), None));
        of.commit(group_row(a_group(), "w", 1, true));
        assert_eq!(
            (of.status("w"), of.status("copy")),
            (None, None),
            "the table answered about a quarantined group"
        );
    }
}

#[test]
fn a_duplicate_is_reported_only_for_the_contents_it_was_verified_on() {
    for ranges in [1, 3, 8] {
        let of = Ranges::complete(ranges);
        three().into_iter().for_each(|row| of.commit(row));
        assert_eq!(of.status("copy"), Some(Status::Duplicate));
        let changes = [
            page_row("w", member(9, a_group(), ("w", 9))),
            page_row("w", member(1, a_group(), ("other", 1))),
            page_row("w", State::Dead),
            gone(page_row("w", State::Dead)),
            group_row(a_group(), "other", 1, false),
            gone(group_row(a_group(), "w", 1, false)),
            page_row("copy", member(2, a_group(), ("w", 9))),
        ];
        for change in changes {
            let key = change.0.clone();
            of.commit(change);
            assert_eq!(of.status("copy"), None, "{key:02x?}");
            three().into_iter().for_each(|row| of.commit(row));
            assert_eq!(of.status("copy"), Some(Status::Duplicate));
        }
    }
}

#[test]
fn a_url_with_the_id_of_another_url_is_unknown() {
    let of = Ranges::complete(1);
    for state in [ungrouped(1), member(2, a_group(), ("w", 1)), State::Dead] {
        three().into_iter().for_each(|row| of.commit(row));
        // The id leads to the record of another URL.
        let (key, _) = page_row("asked", State::Dead);
        of.commit((key, page_row("other", state).1));
        assert_eq!(of.status("asked"), Some(Status::Unknown));
    }
}

#[test]
fn no_page_is_reported_unknown_before_all_rows_were_read() {
    let of = Ranges::new(1);
    three()
        .into_iter()
        .chain([page_row("alone", ungrouped(3))])
        .for_each(|row| of.stores[0].commit(vec![row]).unwrap());
    assert_eq!((of.advise("never"), of.advise("alone")), (None, None));
    of.commit(page_row("new", ungrouped(3)));
    assert_eq!((of.advise("never"), of.status("new")), (None, Some(Status::Unique)));
    of.fill();
    let statuses = ["never", "alone", "new", "w", "copy"].map(|page| of.status(page).unwrap());
    assert_eq!(
        statuses,
        [Status::Unknown, Status::Unique, Status::Unique, Status::Winner, Status::Duplicate]
    );
}

#[test]
fn commits_take_precedence_over_rows_that_were_read_earlier() {
    let of = Ranges::new(1);
    for row in three().into_iter().chain(["a", "b", "c"].map(|page| page_row(page, ungrouped(3)))) {
        of.stores[0].commit(vec![row]).unwrap();
    }
    let mut fill = of.statuses.fill(RangeId(0));
    let mut changed = false;
    loop {
        fill.read(&*of.stores[0], 100).unwrap();
        if !std::mem::replace(&mut changed, true) {
            continue;
        }
        of.commit(gone(page_row("a", State::Dead)));
        of.commit(page_row("b", State::Dead));
        of.commit(gone(group_row(a_group(), "w", 1, false)));
        if !fill.put() {
            break;
        }
    }
    let statuses = ["a", "b", "c", "w", "copy"].map(|page| of.status(page));
    let [unknown, dead, unique] = [Status::Unknown, Status::Dead, Status::Unique].map(Some);
    assert_eq!(statuses, [unknown, dead, unique, None, None]);
}

/// Asks for pages while a commit is made. The commit may fail.
struct QueryDuringCommit {
    ask: Box<dyn Fn() + Send + Sync>,
    fails: bool,
}

impl Intercept for QueryDuringCommit {
    fn commit(&self, rows: &Memory, writes: Vec<Write>) -> Result<(), StoreError> {
        (self.ask)();
        if self.fails { Err(StoreError::DiskFull) } else { rows.commit(writes) }
    }
}

#[test]
fn entries_of_a_commit_are_left_to_the_rows_until_it_counts() {
    for fails in [false, true] {
        let of = Arc::new(Ranges::complete(1));
        three().into_iter().for_each(|row| of.commit(row));
        of.commit(page_row("alone", ungrouped(3)));
        let asks = Arc::clone(&of);
        let ask = move || {
            let statuses = ["w", "copy", "new", "alone"].map(|page| asks.status(page));
            assert_eq!(statuses, [None, None, None, Some(Status::Unique)]);
        };
        let store = Intercepted::new(QueryDuringCommit { fails, ask: Box::new(ask) });
        let watched = TrackedStore::new(Arc::new(store), of.statuses.of_range(RangeId(0)));
        let done = watched.commit(vec![
            page_row("w", State::Dead),
            group_row(a_group(), "copy", 2, false),
            page_row("copy", member(2, a_group(), ("copy", 2))),
            page_row("new", ungrouped(5)),
        ]);
        assert_eq!(done.is_err(), fails);
        let statuses = ["w", "copy", "new"].map(|page| of.status(page));
        let now = [Status::Dead, Status::Winner, Status::Unique].map(Some);
        assert_eq!(statuses, if fails { [None; 3] } else { now });
    }
}

#[test]
fn the_size_includes_the_urls_of_winners() {
    let of = Ranges::complete(1);
    let empty = of.statuses.bytes();
    three().into_iter().for_each(|row| of.commit(row));
    let three_rows = of.statuses.bytes();
    assert!(three_rows > empty);
    three().into_iter().for_each(|row| of.commit(row));
    assert_eq!(of.statuses.bytes(), three_rows);
    of.commit(group_row(a_group(), "another", 1, false));
    assert_eq!(of.statuses.bytes(), three_rows + 6);
}
