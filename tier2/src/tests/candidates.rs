//! Tests of the candidate tables against a model of sets.

use std::collections::{BTreeMap, BTreeSet};

use doppel_model::pairwise::Policy;
use doppel_model::{ContentHash, InsertSeq};
use doppel_partitioning::LengthVector;
use proptest::collection::vec;
use proptest::prelude::*;

use super::model::{page, signature_of};
use crate::node::partition::buckets::{BucketVisits, CrowdingLimits};
use crate::node::partition::candidates::{CandidateTables, CrowdedList, EntryKeys, KeyChange, band_keys};
use crate::node::partition::columns::{Center, ColumnEntry, Columns, FIRST_INSERT_SEQ, SignatureRecord};
use crate::seed::BandSeed;

#[derive(Debug, Clone, Copy)]
enum Step {
    /// Adds `count` entries with the same band keys.
    Insert {
        family: u32,
        count: u32,
    },
    Remove(prop::sample::Index),
    /// Gives the first entry a center, close to the second entry, with this distance.
    Center(prop::sample::Index, prop::sample::Index, u8),
    IsCenter(prop::sample::Index),
    Visit {
        family: u32,
        steps: u32,
    },
    /// Moves every `part`th entry of a family to the keys of another.
    ChangeKeys {
        family: u32,
        to: u32,
        part: usize,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let index = || any::<prop::sample::Index>();
    prop_oneof![
        3 => (0u32..3, 1u32..30).prop_map(|(family, count)| Step::Insert { family, count }),
        3 => index().prop_map(Step::Remove),
        6 => (index(), index(), any::<u8>()).prop_map(|(a, b, distance)| Step::Center(a, b, distance)),
        1 => index().prop_map(Step::IsCenter),
        3 => (0u32..3, 1u32..2_000).prop_map(|(family, steps)| Step::Visit { family, steps }),
        2 => (0u32..3, 0u32..3, 1usize..4)
            .prop_map(|(family, to, part)| Step::ChangeKeys { family, to, part }),
    ]
}

/// The band keys of all entries of a family. Half of them are also band keys of the next family.
fn family_band_keys(seed: BandSeed, family: u32) -> EntryKeys {
    let policy = Policy::default();
    let of = |n: u32| band_keys(policy, seed, &signature_of(&(n * 100..n * 100 + 60).collect::<Vec<_>>()));
    of(family).into_iter().take(8).chain(of(family + 1).into_iter().take(8)).collect()
}

fn run(steps: &[Step]) {
    let seed = BandSeed::new();
    let mut tables = CandidateTables::new();
    let mut columns = Columns::new(1);
    let mut model: BTreeMap<u32, u32> = BTreeMap::new();
    let mut next_insert_seq = FIRST_INSERT_SEQ;
    let families: Vec<EntryKeys> = (0..3).map(|family| family_band_keys(seed, family)).collect();
    let pick = |model: &BTreeMap<u32, u32>, at: prop::sample::Index| {
        (!model.is_empty()).then(|| *at.get(&model.keys().copied().collect::<Vec<_>>()))
    };
    for step in steps {
        match *step {
            Step::Insert { family, count } => {
                for _ in 0..count {
                    let entry = ColumnEntry {
                        content: ContentHash([0; 16]),
                        lengths: LengthVector::new(&[9]).unwrap(),
                        bitmap: &[0; 8],
                        record: SignatureRecord { offset: 0, bytes: 0 },
                        insert_seq: next_insert_seq,
                        page: page(0),
                        comparable: true,
                    };
                    next_insert_seq = InsertSeq(next_insert_seq.0 + 1);
                    let slot = columns.insert(&entry);
                    tables.insert(&families[family as usize], slot);
                    model.insert(slot, family);
                }
            }
            Step::Remove(at) => {
                let Some(slot) = pick(&model, at) else { continue };
                let family = model.remove(&slot).unwrap();
                tables.remove(&families[family as usize], slot, &columns);
                columns.remove(slot);
            }
            Step::Center(at, center, distance) => {
                let (Some(slot), Some(center)) = (pick(&model, at), pick(&model, center)) else { continue };
                // Few different centers, so that runs form.
                let insert_seq = InsertSeq(columns.insert_seq(center).0 / 16 * 16);
                let center = Center { insert_seq: insert_seq.max(FIRST_INSERT_SEQ), distance };
                tables.leave_run(&families[model[&slot] as usize], slot, &columns);
                columns.set_center(slot, center);
            }
            Step::IsCenter(at) => {
                let Some(slot) = pick(&model, at) else { continue };
                tables.leave_run(&families[model[&slot] as usize], slot, &columns);
                columns.set_is_center(slot);
            }
            Step::ChangeKeys { family, to, part } => {
                let change = KeyChange::new(&families[family as usize], &families[to as usize]);
                let mut slots: Vec<u32> = model
                    .iter()
                    .filter(|(_, of)| **of == family)
                    .map(|(slot, _)| *slot)
                    .step_by(part)
                    .collect();
                for slot in &slots {
                    tables.insert_by_age(&change.added, *slot, &columns);
                    model.insert(*slot, to);
                }
                slots.sort_unstable();
                change.removed.iter().for_each(|key| tables.remove_all(*key, &slots, &columns));
            }
            Step::Visit { family, steps } => {
                for key in &families[family as usize] {
                    let list = CrowdedList { key: *key, is_of_family: false };
                    let visits = BucketVisits { rest: steps, vain: steps };
                    tables.add_visits(list, visits, CrowdingLimits::DEFAULT, &columns);
                }
            }
        }
        check(&tables, &columns, &model, &families);
    }
    for (slot, family) in model {
        tables.remove(&families[family as usize], slot, &columns);
    }
    for key in families.iter().flatten() {
        tables.lists(*key, |list| panic!("the tables still contain {list:?}"));
    }
}

fn check(tables: &CandidateTables, columns: &Columns, model: &BTreeMap<u32, u32>, families: &[EntryKeys]) {
    let band_key_of = |key: &crate::node::partition::candidates::TableKey| format!("{key:?}");
    let mut expected: BTreeMap<String, BTreeSet<u32>> = BTreeMap::new();
    for (slot, family) in model {
        for key in &families[*family as usize] {
            expected.entry(band_key_of(key)).or_default().insert(*slot);
        }
    }
    for key in families.iter().flatten() {
        let mut members = Vec::new();
        tables.lists(*key, |list| {
            assert!(list.slots.is_sorted_by_key(|slot| columns.insert_seq(*slot)));
            for slot in list.slots.iter().filter(|_| list.center.is_some()) {
                let (run, own) = (list.center.unwrap(), columns.center(*slot));
                assert_eq!(own.insert_seq, run.insert_seq);
                assert!(own.distance <= run.distance && !columns.is_center(*slot));
            }
            members.extend_from_slice(list.slots);
        });
        let set: BTreeSet<u32> = members.iter().copied().collect();
        assert_eq!(set.len(), members.len(), "an entry is in two lists of a bucket");
        assert_eq!(set, expected.get(&band_key_of(key)).cloned().unwrap_or_default());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn candidate_tables_behave_like_sets(steps in vec(step(), 1..60)) {
        run(&steps);
    }
}

#[test]
fn memory_grows_with_the_entries_and_not_in_jumps() {
    let seed = BandSeed::new();
    let policy = Policy::default();
    let mut tables = CandidateTables::new();
    let mut most: f64 = 0.0;
    for slot in 0..20_000u32 {
        let signature = signature_of(&(slot * 30..slot * 30 + 25).collect::<Vec<_>>());
        tables.insert(&band_keys(policy, seed, &signature), slot);
        if slot >= 5_000 {
            most = most.max(tables.bytes() as f64 / f64::from(slot + 1));
        }
    }
    // With all tables as empty as they can be, 16 items of 8 bytes would take 168 bytes.
    assert!(most < 163.0, "{most} bytes per page");
}
