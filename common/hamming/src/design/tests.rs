//! Checks that designs are complete, and that they have the numbers of tables that the paper states.

use std::collections::BTreeSet;

use crate::design::{Design, TableLayout};
use crate::error::HammingError;
use crate::patterns::up_to;

fn leading(design: &Design) -> (u32, u32) {
    let leading = || design.layouts().iter().map(TableLayout::leading);
    (leading().min().unwrap(), leading().max().unwrap())
}

/// Asserts that some table finds every difference, and that exactly one of these tables reports it.
fn assert_complete(design: &Design) {
    for difference in up_to(design.width(), design.distance()) {
        let finds = |number: &usize| design.layouts()[*number].mask() & difference == 0;
        let finding: Vec<usize> = (0..design.layouts().len()).filter(finds).collect();
        let first: Vec<usize> =
            (0..design.layouts().len()).filter(|&n| design.is_first(n, difference)).collect();
        assert_eq!(first, finding[..1], "design {:?}, difference {difference:#x}", design.splits());
    }
}

/// Asserts that each layout is a permutation that moves the bits of its mask to the front.
fn assert_permutes(design: &Design) {
    for layout in design.layouts() {
        let permutation = layout.permutation();
        let images: BTreeSet<u64> = (0..design.width()).map(|bit| permutation.apply(1 << bit)).collect();
        assert_eq!(images.len() as u32, design.width());
        for bit in 0..design.width() {
            let image = permutation.apply(1 << bit);
            assert_eq!(image.count_ones(), 1);
            assert!(image.leading_zeros() < design.width());
            assert_eq!(permutation.invert(image), 1 << bit);
            assert_eq!(image.leading_zeros() < layout.leading(), layout.mask() >> bit & 1 == 1);
        }
    }
}

#[test]
fn the_designs_of_the_paper_have_its_numbers_of_tables_and_leading_bits() {
    let designs: [(&[u32], usize, (u32, u32)); 4] =
        [(&[6], 20, (31, 33)), (&[4, 4], 16, (28, 28)), (&[5], 10, (25, 26)), (&[4], 4, (16, 16))];
    for (splits, tables, bits) in designs {
        let design = Design::new(64, 3, splits).unwrap();
        assert_eq!((design.layouts().len(), leading(&design)), (tables, bits), "{splits:?}");
        assert_complete(&design);
        assert_permutes(&design);
        // Each design of the paper has the minimum number of tables for its leading bits. One more leading
        // bit needs more tables.
        assert_eq!(Design::optimal(64, 3, bits.0).unwrap().layouts().len(), tables);
        assert!(Design::optimal(64, 3, bits.0 + 1).unwrap().layouts().len() > tables);
    }
    // The number of fingerprints that a probe retrieves from 2^34 fingerprints, as the paper states: 8, 64,
    // 512 and 256 Ki.
    let retrieved = |splits| 1u64 << (34 - leading(&Design::new(64, 3, splits).unwrap()).0);
    assert_eq!([&[6][..], &[4, 4], &[5], &[4]].map(retrieved), [8, 64, 512, 1 << 18]);
}

#[test]
fn designs_of_other_widths_and_distances_are_complete() {
    let designs: [(u32, u32, &[u32]); 12] = [
        (64, 0, &[1]),
        (64, 1, &[2, 2, 2, 2]),
        (64, 2, &[3, 3]),
        (64, 2, &[7]),
        (64, 3, &[]),
        (32, 3, &[4]),
        (32, 3, &[6]),
        (32, 2, &[5, 4]),
        (32, 4, &[5]),
        (13, 2, &[4, 3]),
        (7, 3, &[7]),
        (1, 0, &[1]),
    ];
    for (width, distance, splits) in designs {
        let design = Design::new(width, distance, splits).unwrap();
        assert_complete(&design);
        assert_permutes(&design);
    }
}

#[test]
fn optimal_designs_have_the_fewest_tables() {
    /// The minimum number of tables over all designs with up to three levels, by exhaustive search.
    fn minimum(width: u32, distance: u32, wanted: u32, splits: &mut Vec<u32>) -> Option<usize> {
        let mut best = None;
        if let Ok(design) = Design::new(width, distance, splits) {
            if leading(&design).0 >= wanted {
                return Some(design.layouts().len());
            }
            if splits.len() == 3 {
                return None;
            }
            for blocks in distance + 1..=width {
                splits.push(blocks);
                best = best.into_iter().chain(minimum(width, distance, wanted, splits)).min();
                splits.pop();
            }
        }
        best
    }
    for (width, distance) in [(8, 1), (10, 2), (12, 3), (16, 1)] {
        for wanted in 0..=width / 2 {
            let minimum = minimum(width, distance, wanted, &mut Vec::new());
            match Design::optimal(width, distance, wanted) {
                Ok(design) => {
                    assert!(leading(&design).0 >= wanted);
                    assert_complete(&design);
                    let tables = design.layouts().len();
                    assert!(
                        minimum.is_none_or(|minimum| tables <= minimum),
                        "width {width}, distance {distance}, {wanted} leading bits"
                    );
                    assert!(design.splits().len() > 3 || minimum == Some(tables));
                }
                Err(_) => {
                    assert_eq!(minimum, None, "width {width}, distance {distance}, {wanted} leading bits");
                }
            }
        }
    }
}

#[test]
fn a_design_fits_the_number_of_fingerprints() {
    let tables = |fingerprints| Design::fitting(64, 3, fingerprints).unwrap().layouts().len();
    assert_eq!([0, 1_000].map(tables), [1, 1]);
    assert_eq!(tables(10_000_000), 4);
    assert_eq!([1 << 25, 1 << 26, 1 << 34, 1 << 35].map(tables), [4, 10, 10, 16]);
    // If no design has enough leading bits, `fitting` takes the design with the most leading bits.
    assert!(Design::fitting(32, 12, 1 << 31).unwrap().layouts().len() > 1);
    for width in 1..=64 {
        for distance in (0..width).step_by(5) {
            Design::fitting(width, distance, 1 << 20).unwrap();
        }
    }
}

#[test]
fn invalid_designs_are_rejected() {
    let error = |width, distance, splits: &[u32]| Design::new(width, distance, splits).unwrap_err();
    assert_eq!(error(0, 0, &[1]), HammingError::Width(0));
    assert_eq!(error(65, 3, &[4]), HammingError::Width(65));
    assert_eq!(error(8, 8, &[4]), HammingError::Distance { distance: 8, width: 8 });
    assert_eq!(error(64, 3, &[3]), HammingError::Split { bits: 64, blocks: 3, least: 4 });
    assert_eq!(error(64, 3, &[65]), HammingError::Split { bits: 64, blocks: 65, least: 4 });
    assert_eq!(error(64, 3, &[16]), HammingError::Tables(560));
    assert_eq!(error(64, 32, &[64]), HammingError::Tables(1_832_624_140_942_590_534));
    let none = HammingError::Leading { width: 64, distance: 3, leading: 62 };
    assert_eq!(Design::optimal(64, 3, 62).unwrap_err(), none);
}
