use super::*;

/// Sizes of the union of two sets, from the shortest comparable text to a typical text.
const UNIONS: [usize; 3] = [20, 60, 400];

/// The sketches of two sets. Their union has `union` elements, of which `shared` are in both sets; the others
/// are divided evenly. Each `number` gives different elements.
fn pair(union: usize, shared: usize, number: u64) -> [Sketch; 2] {
    let elements: Vec<u64> = (0..union as u64).map(|i| mix(number << 16 | i) >> 24).collect();
    let split = shared + (union - shared) / 2;
    let second = [&elements[..shared], &elements[split..]].concat();
    [sketch(&elements[..split]), sketch(&second)]
}

#[test]
fn bytes_agree_with_the_expected_probability() {
    const PAIRS: u64 = 4_000;
    for union in UNIONS {
        for tenths in [0, 3, 5, 8, 9, 10] {
            let equal: usize = (0..PAIRS)
                .map(|number| {
                    let [a, b] = pair(union, union * tenths / 10, number);
                    a.iter().zip(b).filter(|(x, y)| **x == *y).count()
                })
                .sum();
            let jaccard = tenths as f64 / 10.0;
            let expected = jaccard + (1.0 - jaccard) / 256.0;
            let draws = (PAIRS * BINS as u64) as f64;
            let measured = equal as f64 / draws;
            let deviation = (expected * (1.0 - expected) / draws).sqrt();
            assert!(
                (measured - expected).abs() <= 4.0 * deviation,
                "union {union}, J {jaccard}: {measured:.5} of the bytes agree, expected {expected:.5}"
            );
        }
    }
}

/// 16 bands of 4 bytes share a band with probability 0.99978 at J = 0.8, and 12 bands of 5 bytes with 0.99998
/// at 0.9.
#[test]
fn similar_pairs_share_a_band() {
    const PAIRS: u64 = 40_000;
    for (tenths, rows) in [(8, 4), (9, 5)] {
        for union in UNIONS {
            let missed = (0..PAIRS)
                .filter(|number| {
                    let [a, b] = pair(union, union * tenths / 10, *number);
                    !a.chunks_exact(rows).zip(b.chunks_exact(rows)).any(|(x, y)| x == y)
                })
                .count();
            println!("J 0.{tenths}, union {union}: {missed} of {PAIRS} pairs share no band");
            assert!(missed as f64 <= 0.0005 * PAIRS as f64, "J 0.{tenths}, union {union}: {missed}");
        }
    }
}

#[test]
fn the_order_of_elements_does_not_matter() {
    let mut set: Vec<u64> = (0..100).map(mix).collect();
    let forwards = sketch(&set);
    set.reverse();
    assert_eq!(sketch(&set), forwards);
    assert_eq!(sketch(&[]), [0; BINS]);
}

#[test]
fn rounds_after_the_last_empty_bin_change_nothing() {
    for size in [1, 2, 5, 20, 64, 500] {
        let set: Vec<u64> = (0..size).map(|i| mix(i) >> 24).collect();
        let mut minima = [u64::MAX; BINS];
        for round in 0..ROUNDS {
            throw(round, &set, &mut minima);
        }
        assert_eq!(minima.map(|m| m.to_le_bytes()[0]), sketch(&set), "{size} elements");
    }
}
