//! Checks the grid of the paper against its definition and its examples.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use doppel_model::signature::Builder;

fn pages() -> impl Strategy<Value = Vec<Signature>> {
    let page = prop_oneof![vec(0u64..400, 0..200), vec(0u64..3, 0..30)];
    let build = |pages: Vec<Vec<u64>>| {
        let signature = |words: &Vec<u64>| {
            let tokens: Vec<u64> = words.iter().map(|word| (word % 300 + 1) << 52 | word).collect();
            Builder::new().build(&tokens)
        };
        pages.iter().map(signature).collect()
    };
    vec(page, 1..40).prop_map(build)
}

fn rhos() -> impl Strategy<Value = Rho> {
    prop::sample::select(vec![1.0, 1.1, 1.3]).prop_map(|rho| Rho::new(rho).unwrap())
}

/// A grid with these cuts, where each box has its own node.
fn grid(tau: &str, rho: f64, cuts: &[&[u32]]) -> PaperMap {
    let intervals: Vec<u32> = cuts.iter().map(|cuts| cuts.len() as u32 + 1).collect();
    let boxes: u32 = intervals.iter().product();
    PaperMap {
        tau: tau.parse().unwrap(),
        rho: Rho::new(rho).unwrap(),
        nodes: boxes,
        sub_dictionaries: vec![0; BUCKETS],
        cuts: cuts.iter().map(|cuts| cuts.to_vec()).collect(),
        intervals,
        boxes: (0..boxes).map(NodeId).collect(),
    }
}

fn lengths(of: &[u32]) -> PaperLengths {
    let mut lengths = [0; DIMENSIONS_MAX];
    lengths[..of.len()].copy_from_slice(of);
    PaperLengths(lengths)
}

/// The paper's figure 2: two intervals in each of two dimensions, [0, 300) and [300, infinity), and tau 0.9.
#[test]
fn the_probed_boxes_match_figure_2_of_the_paper() {
    let [low_low, low_high, high_low, high_high] = [0, 1, 2, 3].map(NodeId);
    for rho in [1.0, 1.05] {
        let map = grid("0.9", rho, &[&[300], &[300]]);
        let probed = |of: &[u32]| {
            let mut probed = Vec::new();
            map.probed(&lengths(of), &mut probed);
            probed
        };
        assert_eq!(map.node(map.home(&lengths(&[100, 500]))), low_high);
        assert_eq!(probed(&[100, 500]), [low_high]);
        assert_eq!(probed(&[280, 500]), [low_high, high_high]);
        assert_eq!(probed(&[299, 300]), [low_low, low_high, high_low, high_high]);
    }
}

#[test]
fn boxes_of_one_node_are_probed_once() {
    let mut map = grid("0.9", 1.0, &[&[300], &[300]]);
    (map.nodes, map.boxes) = (2, [0, 1, 0, 1].map(NodeId).to_vec());
    let mut probed = Vec::new();
    map.probed(&lengths(&[280, 500]), &mut probed);
    assert_eq!(probed, [NodeId(1)]);
    map.probed(&lengths(&[299, 300]), &mut probed);
    assert_eq!(probed, [0, 1].map(NodeId));
    let load = map.measure(&[lengths(&[280, 500]), lengths(&[299, 300]), lengths(&[10, 10])]);
    assert_eq!((load.stored, load.received), (vec![1, 2], vec![2, 2]));
}

#[test]
fn boxes_are_distributed_evenly_by_their_contents() {
    assert_eq!(distribute_boxes(&[9, 1, 5, 4, 0, 0], 2), [0, 0, 1, 1, 1, 1].map(NodeId));
    let mut alone = distribute_boxes(&[0, 7, 0, 7], 4);
    alone.sort_unstable();
    assert_eq!(alone, [0, 1, 2, 3].map(NodeId));
    let stored: Vec<u64> = (0..64).map(|number| number * number).collect();
    let mut sums = [0; 8];
    distribute_boxes(&stored, 8).iter().zip(&stored).for_each(|(node, stored)| sums[node.index()] += stored);
    let (least, most) = (sums.iter().min().unwrap(), sums.iter().max().unwrap());
    assert!(most - least <= most / 20, "{sums:?}");
}

proptest! {
    /// Compares with the definition: two contents are compared if all lengths are inside the open intervals.
    #[test]
    fn the_probed_nodes_have_the_homes_of_all_contents_inside_the_intervals(
        contents in pages(),
        nodes in 1u32..70,
        each in prop::sample::select(vec![1, 3, 8]),
        dimensions in 1usize..=4,
        rho in rhos(),
    ) {
        let map = PaperMap::learn(&contents, PlanSize { nodes, each }, Tau::DEFAULT, dimensions, rho).unwrap();
        prop_assert_eq!((map.nodes(), map.boxes()), (nodes, (nodes * each) as usize));
        prop_assert!(map.cuts.iter().zip(&map.intervals).all(|(cuts, count)| cuts.len() < *count as usize));
        let lengths: Vec<PaperLengths> = contents.iter().map(|s| map.lengths(s)).collect();
        let wide = rho.get() / 0.8;
        let mut probed = Vec::new();
        for (a, signature) in lengths.iter().zip(&contents) {
            prop_assert_eq!(a.0.iter().sum::<u32>(), signature.size());
            map.probed(a, &mut probed);
            prop_assert!(probed.is_sorted_by(|a, b| a < b) && probed.contains(&map.node(map.home(a))));
            prop_assert!(probed.iter().all(|node| node.0 < nodes));
            for b in &lengths {
                let inside = a.0.iter().zip(&b.0).all(|(a, b)| {
                    let (a, b) = (f64::from((*a).max(1)), f64::from((*b).max(1)));
                    b > a / wide + 1e-9 && b < a * wide - 1e-9
                });
                prop_assert!(!inside || probed.contains(&map.node(map.home(b))), "{:?} {:?}", a, b);
            }
        }
    }

    /// In one dimension, rho = 1 gives the exact bound.
    #[test]
    fn one_dimension_loses_no_near_duplicate(contents in pages(), nodes in 1u32..70, rho in rhos()) {
        let map = PaperMap::learn(&contents, PlanSize { nodes, each: 2 }, Tau::DEFAULT, 1, rho).unwrap();
        let mut probed = Vec::new();
        for a in &contents {
            map.probed(&map.lengths(a), &mut probed);
            for b in &contents {
                if Tau::DEFAULT.exceeded_by(a.shared_with(b).into(), a.size().into(), b.size().into()) {
                    prop_assert!(probed.contains(&map.node(map.home(&map.lengths(b)))));
                }
            }
        }
    }
}

#[test]
fn a_length_of_zero_is_compared_with_other_short_lengths() {
    let contents: Vec<Signature> =
        (1..300_u64).map(|n| Builder::new().build(&vec![1 << 52 | n; 40])).collect();
    let map =
        PaperMap::learn(&contents, PlanSize { nodes: 64, each: 1 }, Tau::DEFAULT, 3, Rho::new(1.0).unwrap())
            .unwrap();
    assert_eq!(
        (map.partner_lengths(0), map.partner_lengths(1), map.partner_lengths(4)),
        ((0, 1), (0, 1), (4, 4))
    );
    let mut probed = Vec::new();
    let lengths = map.lengths(&contents[0]);
    map.probed(&lengths, &mut probed);
    assert!(probed.contains(&map.node(map.home(&lengths))));
}

#[test]
fn grids_are_as_square_as_their_factors_allow() {
    assert_eq!(
        (sides(64, 3), sides(512, 3), sides(1_024, 3)),
        (vec![4, 4, 4], vec![8, 8, 8], vec![16, 8, 8])
    );
    assert_eq!((sides(16, 3), sides(7, 2)), (vec![4, 2, 2], vec![7, 1]));
    assert_eq!((sides(1, 2), sides(12, 1)), (vec![1, 1], vec![12]));
}

#[test]
fn rho_compensates_for_both_deviations() {
    let rho = |delta, epsilon| Rho::of(delta, epsilon).map(Rho::get);
    assert!((rho(0.1, 0.02).unwrap() - 1.1 * 1.02 / (0.9 * 0.98)).abs() < 1e-12);
    assert_eq!((rho(0.0, 0.0), rho(0.5, 0.0)), (Ok(1.0), Ok(3.0)));
    for (delta, epsilon) in
        [(1.0, 0.0), (0.9, 0.0), (f64::INFINITY, 0.0), (-0.1, 0.2), (0.0, f64::NAN), (3.0, 3.0)]
    {
        assert!(Rho::of(delta, epsilon).is_err(), "{delta} {epsilon}");
    }
}

#[test]
fn a_length_counts_shingles_by_their_first_word() {
    // 30 tokens, which are 30 shingles: each counts for its first word.
    let tokens: Vec<u64> = (0..30).map(|n| (n % 3 + 1) << 52 | n).collect();
    let mut map = grid("0.8", 1.0, &[&[], &[]]);
    // A third of the words in the first sub-dictionary, two thirds in the second.
    map.sub_dictionaries[2..=3].fill(1);
    let found = map.lengths(&Builder::new().build(&tokens));
    assert_eq!((found, found.first(map.dimensions())), (lengths(&[10, 20]), &[10, 20][..]));
}

#[test]
fn parameters_out_of_range_are_rejected() {
    let rho = Rho::new(1.1).unwrap();
    let learn = |(nodes, each), dimensions| {
        let size = PlanSize { nodes, each };
        PaperMap::learn::<Signature>(&[], size, Tau::DEFAULT, dimensions, rho).map(|map| map.boxes())
    };
    assert_eq!(learn((0, 1), 3), Err(MappingError::Nodes(0)));
    assert_eq!(learn((3, 0), 3), Err(MappingError::Partitions(0)));
    assert_eq!(learn((4_096, 2), 3), Err(MappingError::Partitions(8_192)));
    assert_eq!(learn((3, 1), 9), Err(MappingError::Dimensions(9)));
    assert_eq!(learn((6, 2), 2), Ok(12));
    for wrong in ["0.9", "11", "NaN", "x"] {
        assert_eq!(wrong.parse::<Rho>(), Err(MappingError::Rho(wrong.to_owned())));
    }
}
