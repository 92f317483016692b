//! The record of a page is a function of its versions, independent of their order of arrival. Bulk grouping
//! gives the same record.

use doppel_contract::SubmissionOutcome;
use doppel_model::ClientId;
use doppel_protocol::FetchResult;
use proptest::prelude::*;

use super::*;
use crate::bulk::{Bulk, BulkConfig, BulkOutput, Unit};

const URL: &str = "http://a.example/page";

/// A version of the tested page.
#[derive(Debug, Clone)]
struct Version {
    at: i64,
    popularity: Option<u8>,
    language: Option<&'static str>,
    canonical: Option<&'static str>,
    body: Fetched,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Fetched {
    Content(usize),
    Redirect(&'static str),
    Dead,
}

/// Visible part of a page's record.
#[derive(Debug, Clone, PartialEq)]
struct Visible {
    at: i64,
    first_seen: i64,
    popularity: Option<f64>,
    language: Option<String>,
    canonical: Option<String>,
    content: Option<ContentHash>,
    redirect_to: Option<String>,
    status: Status,
}

fn parsed(url: &str) -> PageUrl {
    PageUrl::parse(url).unwrap()
}

impl Version {
    fn of(at: i64, body: Fetched) -> Self {
        Self { at, popularity: None, language: None, canonical: None, body }
    }

    fn submission(&self, signatures: &[Arc<Signature>]) -> Submission {
        Submission {
            url: parsed(URL),
            fetched_at: Timestamp::from_millis(self.at),
            popularity: self.popularity.map(f64::from),
            language: self.language.map(Into::into),
            canonical: self.canonical.map(parsed),
            body: match self.body {
                Fetched::Content(k) => Body::Content(Arc::clone(&signatures[k])),
                Fetched::Redirect(to) => Body::Redirect(parsed(to)),
                Fetched::Dead => Body::Dead,
            },
        }
    }
}

fn visible(record: &PageRecord) -> Visible {
    let redirect_to = match &record.state {
        State::Redirect(state) => Some(state.to.to_string()),
        _ => None,
    };
    Visible {
        at: record.fetched_at.millis(),
        first_seen: record.rank.first_seen.millis(),
        popularity: record.rank.popularity,
        language: record.language.as_deref().map(Into::into),
        canonical: record.canonical.as_ref().map(ToString::to_string),
        content: record.content().map(|state| state.content),
        redirect_to,
        status: record.published.status,
    }
}

/// Computes the record of the versions by the definition, without applying them one after the other.
fn expected(versions: &[Version], signatures: &[Arc<Signature>]) -> Visible {
    let hash = |body| match body {
        Fetched::Content(k) => Some(signatures[k].content()),
        Fetched::Redirect(_) | Fetched::Dead => None,
    };
    let place = |version: &Version| match version.body {
        Fetched::Redirect(to) => (version.at, 0, to, None),
        Fetched::Content(_) => (version.at, 1, "", hash(version.body)),
        Fetched::Dead => (version.at, 2, "", None),
    };
    let last = versions.iter().map(place).max().unwrap();
    let equal: Vec<&Version> = versions.iter().filter(|version| place(version) == last).collect();
    let is_dead = last.1 == 2;
    let details = equal.iter().map(|version| (version.language, version.canonical)).max().unwrap();
    let (language, canonical) = if is_dead { (None, None) } else { details };
    let popular = versions.iter().filter_map(|version| Some((version.at, version.popularity?))).max();
    Visible {
        at: last.0,
        first_seen: versions.iter().map(|version| version.at).min().unwrap(),
        popularity: popular.map(|(_, value)| f64::from(value)),
        language: language.map(Into::into),
        canonical: canonical.map(Into::into),
        content: last.3,
        redirect_to: (last.1 == 0).then(|| last.2.to_owned()),
        status: match last.1 {
            0 => Status::Unresolved,
            1 => Status::Unique,
            _ => Status::Dead,
        },
    }
}

/// Returns the outcome of each version, and the record at rest.
fn in_machine(versions: &[Version], replays: &[Version]) -> (Vec<SubmissionOutcome>, Visible) {
    let mut world = World::new(0, 2);
    let mut outcomes = Vec::new();
    for version in versions.iter().chain(replays) {
        let submission = Box::new(version.submission(&world.signatures));
        let now = Timestamp::from_millis(0);
        let mut machine = Machine::new(&world.store, &mut world.shards, COMMIT_ROWS, now);
        machine.command(Command::Submit { submission, hint: None, client: ClientId::NONE }).unwrap();
        machine.deliver(usize::MAX).unwrap();
        let CommitOutput { writes, effects, .. } = machine.finish().unwrap();
        world.store.commit(writes).unwrap();
        for effect in effects {
            match effect {
                Effect::Outcome(outcome) => outcomes.push(outcome),
                Effect::Index(order) => world.orders.push_back(order),
                _ => {}
            }
        }
    }
    world.settle();
    assert_sound(std::slice::from_ref(&world.store), 2, WinnerOrder::DEFAULT);
    (outcomes, visible(&world.record(PageId::of(URL)).unwrap()))
}

/// Returns the record that bulk grouping gives.
fn in_bulk(versions: &[Version], signatures: &[Arc<Signature>]) -> Visible {
    let config = BulkConfig {
        policy: Policy::default(),
        winners: WinnerOrder::DEFAULT,
        market: None,
        group_members_max: 100,
        unit: Unit::Page,
        keep: BulkOutput::Answer { memory_max: usize::MAX, temp_dir: &std::env::temp_dir() },
    };
    let map = RangeMap::new(2, 1).unwrap();
    let submissions = versions.iter().map(|version| version.submission(signatures));
    let (_, rows) = Bulk::rows(&config, map, submissions).unwrap();
    let page = PageId::of(URL);
    let (key, row) =
        rows.into_iter().flatten().find(|(key, _)| *key == key::page(page.shard(2), page)).unwrap();
    visible(&decode(&key, &row.unwrap()).unwrap())
}

fn versions() -> impl Strategy<Value = (Vec<Version>, Vec<Version>)> {
    let body = prop_oneof![
        4 => (0..3_usize).prop_map(Fetched::Content),
        1 => Just(Fetched::Redirect("http://b.example/")),
        1 => Just(Fetched::Redirect("http://c.example/")),
        1 => Just(Fetched::Dead),
    ];
    let popularity = proptest::option::of(0..3_u8);
    let language = proptest::option::of(prop_oneof![Just("de"), Just("en")]);
    let canonical = proptest::option::weighted(0.2, Just("http://a.example/"));
    let version = (0..3_i64, popularity, language, canonical, body).prop_map(
        |(at, popularity, language, canonical, body)| Version { at, popularity, language, canonical, body },
    );
    proptest::collection::vec(version, 1..7)
        .prop_flat_map(|versions| (Just(versions.clone()), Just(versions).prop_shuffle()))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn any_order_of_arrival_leaves_the_same_record((versions, shuffled) in versions()) {
        let signatures = World::new(0, 2).signatures;
        let expected = expected(&versions, &signatures);
        prop_assert_eq!(&in_machine(&versions, &[]).1, &expected);
        // A replay of all versions in another order changes nothing.
        let (outcomes, replayed) = in_machine(&versions, &shuffled);
        prop_assert_eq!(&replayed, &expected);
        let is_taken = |outcome: &SubmissionOutcome| matches!(outcome, SubmissionOutcome::Pending | SubmissionOutcome::Confirmed);
        prop_assert!(!outcomes[versions.len()..].iter().any(is_taken), "{:?}", outcomes);
        prop_assert_eq!(&in_machine(&shuffled, &[]).1, &expected);
        prop_assert_eq!(&in_bulk(&versions, &signatures), &expected);
        prop_assert_eq!(&in_bulk(&shuffled, &signatures), &expected);
    }
}

#[test]
fn a_replay_never_undoes_a_later_version_of_its_date() {
    let signatures = World::new(0, 2).signatures;
    let (low, high) = if signatures[0].content() < signatures[9].content() { (0, 9) } else { (9, 0) };
    let [moved, less, more, dead] = [
        Fetched::Redirect("http://b.example/"),
        Fetched::Content(low),
        Fetched::Content(high),
        Fetched::Dead,
    ]
    .map(|body| Version::of(5, body));
    let ascending = [moved, less, more, dead];
    let (outcomes, last) = in_machine(&ascending, &ascending);
    assert_eq!(
        outcomes[4..],
        [
            SubmissionOutcome::Stale,
            SubmissionOutcome::Stale,
            SubmissionOutcome::Stale,
            SubmissionOutcome::Unchanged
        ]
    );
    assert_eq!(last.status, Status::Dead);
    let (outcomes, last) = in_machine(&ascending[..3], &ascending[..3]);
    assert_eq!(
        outcomes[3..],
        [SubmissionOutcome::Stale, SubmissionOutcome::Stale, SubmissionOutcome::Unchanged]
    );
    assert_eq!(last.content, Some(signatures[high].content()));
    // The newest date has precedence over everything else.
    let (outcomes, last) = in_machine(&ascending, &[Version::of(6, Fetched::Redirect("http://b.example/"))]);
    assert_eq!((outcomes[4], last.status), (SubmissionOutcome::Pending, Status::Unresolved));
}

#[test]
fn the_popularity_of_the_newest_version_with_a_popularity_stays() {
    let version = |at, popularity| Version { popularity, ..Version::of(at, Fetched::Content(0)) };
    let (new, late, older) = (version(9, None), version(7, Some(3)), version(5, Some(8)));
    let (outcomes, record) = in_machine(&[new, late], &[older]);
    assert_eq!(outcomes, [SubmissionOutcome::Pending, SubmissionOutcome::Stale, SubmissionOutcome::Stale]);
    assert_eq!((record.popularity, record.first_seen), (Some(3.0), 5));
}

#[test]
fn a_hint_for_an_earlier_version_of_the_date_confirms_nothing() {
    let mut world = World::new(0, 1);
    let page = PageId::of(URL);
    // The two contents are neighbours in a family, so they are linked.
    let (low, high) =
        if world.signatures[0].content() < world.signatures[1].content() { (0, 1) } else { (1, 0) };
    let submit = |world: &mut World, k: usize| {
        let hint = world.hint(page, &ModelBody::Content(k as u64));
        let submission = Box::new(Version::of(5, Fetched::Content(k)).submission(&world.signatures));
        world.commit(vec![Command::Submit { submission, hint, client: ClientId::NONE }], usize::MAX);
        world.settle();
    };
    submit(&mut world, high);
    submit(&mut world, low);
    let record = world.record(page).unwrap();
    assert_eq!(record.place().unwrap().result, FetchResult::Content(world.signatures[high].content()));
    assert_eq!(world.shards.metas[0].counters.confirmed, 0);
    assert_eq!(world.shards.metas[0].counters.stale, 1);
}
