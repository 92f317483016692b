//! Several versions of a page in one batch. The newest is applied first, and the record is the same as after
//! any other order.

use doppel_contract::SubmissionOutcome;
use doppel_model::ClientId;
use proptest::prelude::*;

use super::*;
use crate::machine::newest_first;
use crate::rows::record::PublicState;

const PAGES: usize = 4;

/// A version of one page out of a few.
#[derive(Debug, Clone)]
struct Version {
    page: usize,
    date: i64,
    body: VersionBody,
    popularity: Option<u8>,
    language: Option<bool>,
}

#[derive(Debug, Clone)]
enum VersionBody {
    Content(usize),
    Redirect(usize),
    Dead,
}

fn name(page: usize) -> String {
    format!("http://h{}/{}", page % 2, "x".repeat(page + 1))
}

impl Version {
    fn submission(&self, world: &World) -> Submission {
        Submission {
            url: PageUrl::parse(&name(self.page)).unwrap(),
            fetched_at: Timestamp::from_millis(self.date),
            popularity: self.popularity.map(f64::from),
            language: self.language.map(|one| if one { "de" } else { "en" }.into()),
            canonical: None,
            body: match self.body {
                VersionBody::Content(k) => Body::Content(Arc::clone(&world.signatures[k])),
                VersionBody::Redirect(to) => Body::Redirect(PageUrl::parse(&name(to)).unwrap()),
                VersionBody::Dead => Body::Dead,
            },
        }
    }
}

fn version() -> impl Strategy<Value = Version> {
    let body = prop_oneof![
        3 => (0..6_usize).prop_map(VersionBody::Content),
        2 => (0..PAGES).prop_map(VersionBody::Redirect),
        1 => Just(VersionBody::Dead),
    ];
    (0..PAGES, 0..6_i64, body, proptest::option::of(0..3_u8), proptest::option::of(any::<bool>())).prop_map(
        |(page, date, body, popularity, language)| Version { page, date, body, popularity, language },
    )
}

/// Applies submissions as one commit, and returns their outcomes in the order of application.
fn apply(world: &mut World, submissions: Vec<Submission>) -> Vec<SubmissionOutcome> {
    let submit =
        |submission| Command::Submit { submission: Box::new(submission), hint: None, client: ClientId::NONE };
    let CommitOutput { writes, effects, .. } = {
        let mut machine =
            Machine::new(&world.store, &mut world.shards, COMMIT_ROWS, Timestamp::from_millis(world.wall));
        submissions.into_iter().for_each(|one| machine.apply(submit(one)).unwrap());
        machine.finish().unwrap()
    };
    world.store.commit(writes).unwrap();
    let mut outcomes = Vec::new();
    for effect in effects {
        match effect {
            Effect::Outcome(outcome) => outcomes.push(outcome),
            Effect::Index(order) => world.orders.push_back(order),
            Effect::Verify { page, content, winner, winner_content } => {
                world.verify.push((page, content, winner, winner_content));
            }
            Effect::Dirty(group) => drop(world.dirty.insert(group)),
            Effect::Uncovered(group) => drop(world.uncovered.insert(group)),
            Effect::Deferred(page) => world.deferred.push(page),
            Effect::Quarantine { .. } | Effect::Crowded { .. } | Effect::Changed => {}
        }
    }
    outcomes
}

/// Returns the records of the pages as text, without the group ids, which depend on the order of arrival.
fn recorded(world: &World) -> Vec<String> {
    let of_page = |record: PageRecord| {
        let state = match &record.state {
            State::Content(state) => format!("{:?}", state.content),
            State::Redirect(state) => format!("{:?} {:?}", state.to, state.resolution),
            other => format!("{other:?}"),
        };
        let PageRecord { rank, fetched_at, language, canonical, published, .. } = record;
        let PublicState { status, winner, duplicate_of, reason, .. } = published;
        format!(
            "{rank:?} {fetched_at:?} {language:?} {canonical:?} {state} {status:?} {winner:?} {duplicate_of:?} {reason:?}"
        )
    };
    (0..PAGES).map(|page| world.record(PageId::of(&name(page))).map_or_else(String::new, of_page)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn applying_the_newest_version_first_gives_the_same_record_as_any_order(
        before in proptest::collection::vec(version(), 0..6),
        batch in proptest::collection::vec(version(), 1..14),
    ) {
        let world = |reorders: bool| {
            let mut world = World::new(4, 1);
            world.repairs = false;
            let submissions = before.iter().map(|version| version.submission(&world)).collect();
            apply(&mut world, submissions);
            world.settle();
            let mut batch: Vec<Submission> = batch.iter().map(|version| version.submission(&world)).collect();
            let in_order = newest_first(&batch, |one| one);
            if let Some(order) = in_order.filter(|_| reorders) {
                batch = order.iter().map(|at| batch[*at].clone()).collect();
            }
            let outcomes = apply(&mut world, batch.clone());
            world.settle();
            (world, batch, outcomes)
        };
        let (one_by_one, ..) = world(false);
        let (newest, batch, outcomes) = world(true);
        prop_assert_eq!(recorded(&newest), recorded(&one_by_one));
        // Only the newest version of a page changes it.
        let mut met = BTreeSet::new();
        for (version, outcome) in batch.iter().zip(outcomes) {
            if !met.insert(version.url.id()) {
                prop_assert!(matches!(outcome, SubmissionOutcome::Stale | SubmissionOutcome::Unchanged), "{:?}: {:?}", version, outcome);
            }
        }
    }

    #[test]
    fn newest_first_reorders_only_versions_of_the_same_page(batch in proptest::collection::vec(version(), 0..14)) {
        let world = World::new(4, 1);
        let batch: Vec<Submission> = batch.iter().map(|version| version.submission(&world)).collect();
        let pages: BTreeSet<PageId> = batch.iter().map(|one| one.url.id()).collect();
        let Some(order) = newest_first(&batch, |one| one) else {
            prop_assert_eq!(pages.len(), batch.len());
            return Ok(());
        };
        prop_assert!(pages.len() < batch.len());
        let mut sorted = order.clone();
        sorted.sort_unstable();
        prop_assert_eq!(sorted, (0..batch.len()).collect::<Vec<_>>());
        for (place, from) in order.iter().enumerate() {
            prop_assert_eq!(&batch[place].url, &batch[*from].url);
        }
        // The newest version of a page comes first, then the oldest, then the others.
        for page in pages {
            let of_page = order.iter().map(|at| &batch[*at]).filter(|one| one.url.id() == page);
            let places: Vec<_> = of_page.map(Submission::place).collect();
            let mut expected = places.clone();
            expected.sort_by(|a, b| b.cmp(a));
            if expected.len() > 2 {
                let oldest = expected.pop().into_iter();
                expected.splice(1..1, oldest);
            }
            prop_assert_eq!(places, expected);
        }
    }
}
