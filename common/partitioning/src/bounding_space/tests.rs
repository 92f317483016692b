//! Checks every decision of the bound against the inequalities that it comes from, in plain integers, on both
//! sides of each edge.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

/// The numerator and the denominator of tau.
fn fraction(tau: Tau) -> (i64, i64) {
    (tau.numerator() as i64, Tau::DENOMINATOR as i64)
}

fn taus() -> impl Iterator<Item = Tau> + Clone {
    ["0.5", "0.75", "0.8", "0.8333", "0.9", "0.9999"].into_iter().map(|text| text.parse().unwrap())
}

/// The least and the greatest total strictly between tau and 1 / tau times `total`.
fn totals(total: i64, tau: Tau) -> (i64, i64) {
    let (t, d) = fraction(tau);
    let least = (0..).find(|other| other * d > t * total).unwrap();
    let most = (0..).find(|other| other * t >= d * total).unwrap() - 1;
    (least, most)
}

/// Like [`totals`], but widened by the slack of two shingles on both sides.
fn widened(total: i64, tau: Tau) -> (i64, i64) {
    let (least, most) = totals(total, tau);
    (least - 2, most + 2)
}

/// Whether contents with `both` shingles together may differ in `apart` shingles, with a slack of two.
fn near(apart: i64, both: i64, tau: Tau) -> bool {
    let (t, d) = fraction(tau);
    (apart - 2) * (d + t) <= (d - t) * both
}

fn space(lengths: &[u32], tau: Tau) -> BoundingSpace {
    BoundingSpace::new(LengthVector::new(lengths).unwrap(), tau)
}

#[test]
fn near_duplicates_have_totals_between_tau_and_its_inverse() {
    for tau in taus() {
        for total in 1..=200 {
            let (least, most) = totals(total as i64, tau);
            for other in 0..=3 * total {
                // Two contents cannot share more shingles than the smaller content has.
                let possible = tau.exceeded_by(total.min(other), total, other);
                assert_eq!(
                    (least..=most).contains(&(other as i64)),
                    possible,
                    "tau {tau}, totals {total} and {other}"
                );
            }
        }
    }
}

#[test]
fn a_total_is_admitted_up_to_two_shingles_beyond_a_partner() {
    for tau in taus() {
        for total in (0..=200).chain([999, 1_000, 1_001, 10_000, 12_345, 100_000]) {
            let (least, most) = widened(total.into(), tau);
            let space = space(&[total], tau);
            for other in (least - 3..=least + 3).chain(most - 3..=most + 3) {
                let Ok(admitted) = u32::try_from(other).map(|other| space.admits_total(other)) else {
                    continue;
                };
                assert_eq!(
                    admitted,
                    (least..=most).contains(&other),
                    "tau {tau}, totals {total} and {other}"
                );
                assert_eq!(space.admits(&[other as u32]), admitted, "tau {tau}, totals {total} and {other}");
            }
        }
        assert!(space(&[u32::MAX], tau).admits_total(u32::MAX));
        assert!(!space(&[u32::MAX], tau).admits_total(u32::MAX / 3));
    }
}

#[test]
fn a_content_without_lengths_is_not_admitted() {
    assert!(!space(&[10, 5], Tau::DEFAULT).admits(&[]));
}

#[test]
fn lengths_are_admitted_up_to_two_shingles_beyond_the_bound() {
    for tau in taus() {
        for (total, half) in (0..=20).flat_map(|total| (0..=total).map(move |half| (total, half))) {
            let space = space(&[total, half], tau);
            let (least, most) = widened(total.into(), tau);
            for other in 0..=44 {
                for other_half in 0..=other {
                    let feature = |total: u32, half: u32| 2 * i64::from(half) - i64::from(total);
                    let apart = (feature(total, half) - feature(other, other_half)).abs();
                    let expected = (least..=most).contains(&i64::from(other))
                        && near(apart, (total + other).into(), tau);
                    let admitted = space.admits(&[other, other_half]);
                    assert_eq!(
                        admitted, expected,
                        "tau {tau}, {half} of {total} and {other_half} of {other}"
                    );
                }
            }
        }
    }
}

/// The farthest feature decides, whichever it is.
#[test]
fn each_half_is_compared() {
    let space = space(&[100, 50, 50, 50, 50, 50, 50, 50], Tau::DEFAULT);
    // At tau 0.8, two near-duplicates of 100 shingles each differ in fewer than 200 / 9 shingles.
    let (inside, outside) = (50 + 12, 50 + 13);
    for half in 1..DIMENSIONS_MAX {
        for (length, admitted) in
            [(inside, true), (outside, false), (100 - inside, true), (100 - outside, false)]
        {
            let mut other = [100, 50, 50, 50, 50, 50, 50, 50];
            other[half] = length;
            assert_eq!(space.admits(&other), admitted, "half {half}, length {length}");
            let mut bounds = Bounds::all(DIMENSIONS_MAX);
            (bounds.lo[0], bounds.hi[0]) = (100, 100);
            let feature = 2 * i64::from(length) - 100;
            (bounds.lo[half], bounds.hi[half]) = (feature, feature);
            assert_eq!(space.meets(&bounds), admitted, "half {half}, length {length}");
        }
    }
}

/// A reference implementation of [`BoundingSpace::meets`] that checks one condition after the other.
fn expected_meets(lengths: &[u32], tau: Tau, bounds: &Bounds) -> bool {
    let total = i64::from(lengths[0]);
    let (least, most) = widened(total, tau);
    let (least, most) = (least.max(bounds.lo[0]), most.min(bounds.hi[0]));
    let half = |m: usize| {
        let (value, lo, hi) = (2 * i64::from(lengths[m]) - total, bounds.lo[m], bounds.hi[m]);
        let apart = if value < lo {
            lo - value
        } else if value > hi {
            value - hi
        } else {
            0
        };
        let empty = lo > hi || lo > most || hi < -most;
        !empty && near(apart, total + most, tau)
    };
    least <= most && (1..lengths.len()).all(half)
}

#[test]
fn a_box_is_met_up_to_two_shingles_beyond_the_bound() {
    const NONE: i64 = Bounds::UNLIMITED;
    for tau in taus() {
        for total in [0, 1, 2, 7, 20, 33] {
            let (least, most) = widened(total.into(), tau);
            let ranges = [
                (-NONE, NONE),
                (-NONE, least - 1),
                (-NONE, least),
                (most, NONE),
                (most + 1, NONE),
                (least + 1, most - 1),
                (total.into(), total.into()),
                (i64::from(total) + 1, i64::from(total)),
            ];
            for half in [0, total / 3, total] {
                let lengths = [total, half];
                let space = space(&lengths, tau);
                for (range, lo, size) in ranges
                    .iter()
                    .flat_map(|range| (-60..=60).map(move |lo| (range, lo)))
                    .flat_map(|(range, lo)| [-1, 0, 4, NONE].map(|size| (range, lo, size)))
                {
                    let mut above = Bounds::all(2);
                    (above.lo[0], above.hi[0]) = *range;
                    let mut below = above;
                    (above.lo[1], above.hi[1]) = (lo, (lo + size).min(NONE));
                    (below.lo[1], below.hi[1]) = ((lo - size).max(-NONE), lo);
                    for bounds in [above, below] {
                        let expected = expected_meets(&lengths, tau, &bounds);
                        assert_eq!(space.meets(&bounds), expected, "{tau} {lengths:?} {bounds:?}");
                    }
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(
        ProptestConfig { cases: 3_000, failure_persistence: None, ..ProptestConfig::default() }
    )]

    #[test]
    fn a_box_of_any_dimensions_is_met_as_the_bound_says(
        total in 0u32..60,
        shares in vec(0.0..=1.0, 0..DIMENSIONS_MAX),
        ranges in vec((-50i64..50, -1i64..60), DIMENSIONS_MAX),
        tau in prop::sample::select(taus().collect::<Vec<_>>()),
    ) {
        let halves = shares.iter().map(|share| (share * f64::from(total)).round() as u32);
        let lengths: Vec<u32> = std::iter::once(total).chain(halves).collect();
        // Only the dimensions of the box count.
        let mut bounds = Bounds::all(lengths.len());
        for (m, (lo, size)) in ranges.iter().enumerate() {
            (bounds.lo[m], bounds.hi[m]) = (*lo, lo + size);
        }
        prop_assert_eq!(space(&lengths, tau).meets(&bounds), expected_meets(&lengths, tau, &bounds));
    }
}

#[test]
fn a_box_is_cut_in_two_parts_that_share_nothing() {
    let all = Bounds::all(3);
    let none = (None, None);
    assert_eq!(all.ranges().collect::<Vec<_>>(), [none; 3]);
    let (left, right) = all.split(1, 10);
    assert_eq!(left.ranges().collect::<Vec<_>>(), [none, (None, Some(10)), none]);
    assert_eq!(right.ranges().collect::<Vec<_>>(), [none, (Some(11), None), none]);
    // A cut beyond a box leaves it whole and the other part empty.
    let (whole, empty) = left.split(1, 20);
    assert_eq!(whole, left);
    assert_eq!(empty.ranges().nth(1), Some((Some(21), Some(10))));
    let (empty, whole) = right.split(1, -20);
    assert_eq!(whole, right);
    assert_eq!(empty.ranges().nth(1), Some((Some(11), Some(-20))));
    let (left, right) = right.split(1, 10 + 5);
    assert_eq!(left.ranges().nth(1), Some((Some(11), Some(15))));
    assert_eq!(right.ranges().nth(1), Some((Some(16), None)));
    let lengths = space(&[100, 60, 50], Tau::DEFAULT);
    assert!(lengths.meets(&all) && !lengths.meets(&whole.split(1, 20).0.split(1, 25).1));
}

#[test]
fn the_largest_limits_are_still_reported_as_limits() {
    let mut bounds = Bounds::all(1);
    (bounds.lo[0], bounds.hi[0]) = (1 - Bounds::UNLIMITED, Bounds::UNLIMITED - 1);
    assert_eq!(bounds.ranges().next(), Some((Some(bounds.lo[0]), Some(bounds.hi[0]))));
    // No arithmetic of the bound overflows at the limits.
    assert!(space(&[u32::MAX, 0], "0.5".parse().unwrap()).meets(&Bounds::all(2)));
    assert!(space(&[u32::MAX, u32::MAX], "0.9999".parse().unwrap()).meets(&Bounds::all(2)));
}
