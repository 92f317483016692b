//! Designs: which tables are built, and which leading bits a query and a fingerprint must share in them.
//!
//! The bits are split into r blocks, of which k differing bits can touch at most k. So there is a choice of r - k blocks in
//! which both fingerprints agree, and for each choice there is a table that has these blocks in the leading positions.
//! The bits of the other k blocks can be split again, with a table for each pair of choices (Manku, Jain, Das Sarma,
//! *Detecting Near-Duplicates for Web Crawling*, WWW 2007, sections 3.1.1 and 3.1.2).
//!
//! Invariants:
//! - Complete: for every difference of at most k bits there is a table whose leading bits are free of it.
//! - [`Design::is_first`] holds for exactly one of the tables that find a difference, so that each match is reported once.

use std::collections::HashMap;

use crate::error::HammingError;
use crate::limits::{TABLES_MAX, WIDTH_MAX};
use crate::patterns::{binomial, of_weight};
use crate::permutation::Permutation;

/// One table of a design: the paper's permutation and its p.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    permutation: Permutation,
    leading: u32,
    mask: u64,
}

impl Layout {
    fn new(leading: &[u32], width: u32) -> Self {
        // The others follow the last chosen bit in a circle, so that contiguous blocks move together.
        let after = leading.last().map_or(width, |&last| last + width);
        let others = (1..=width).map(|step| (after - step) % width).filter(|bit| !leading.contains(bit));
        let order: Vec<u32> = leading.iter().copied().chain(others).collect();
        Self {
            permutation: Permutation::from_order(&order),
            leading: leading.len() as u32,
            mask: leading.iter().fold(0, |mask, bit| mask | 1 << bit),
        }
    }

    /// How the bits are arranged.
    #[must_use]
    pub fn permutation(&self) -> &Permutation {
        &self.permutation
    }

    /// How many leading bits must agree: the paper's p.
    #[must_use]
    pub fn leading(&self) -> u32 {
        self.leading
    }

    /// Where these bits are in a fingerprint.
    #[must_use]
    pub fn mask(&self) -> u64 {
        self.mask
    }
}

/// The tables for fingerprints of one width and one distance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Design {
    width: u32,
    distance: u32,
    splits: Vec<u32>,
    layouts: Vec<Layout>,
}

impl Design {
    /// Splits the bits into `splits[0]` blocks, the bits outside the chosen blocks into `splits[1]` blocks, and so on.
    ///
    /// For 64 bits and distance 3 the designs of the paper with 20, 16, 10 and 4 tables are `[6]`, `[4, 4]`, `[5]` and
    /// `[4]`. Without a split there is one table, which a query reads from end to end.
    pub fn new(width: u32, distance: u32, splits: &[u32]) -> Result<Self, HammingError> {
        check(width, distance)?;
        let mut tables = 1u64;
        let mut bits = width;
        for &blocks in splits {
            if blocks <= distance || blocks > bits {
                return Err(HammingError::Split { bits, blocks, least: distance + 1 });
            }
            tables = tables.saturating_mul(binomial(blocks, distance));
            if tables > TABLES_MAX as u64 {
                return Err(HammingError::Tables(tables));
            }
            // The most that a choice leaves. Others may leave some blocks of the next level empty, which does no harm.
            bits -= smallest_choice(bits, blocks, distance);
        }
        let all: Vec<u32> = (0..width).rev().collect();
        let mut chosen = Vec::with_capacity(tables as usize);
        choose(&all, distance, splits, &mut Vec::new(), &mut chosen);
        let layouts = chosen.iter().map(|leading| Layout::new(leading, width)).collect();
        Ok(Self { width, distance, splits: splits.to_vec(), layouts })
    }

    /// The design with the fewest tables in each of which at least `leading` bits must agree: the paper's X(f, k, d).
    ///
    /// The paper ends the recursion when d < tau = d - p, which asks for more than p leading bits. Here it ends when they
    /// are at least p, which its own examples need. Blocks are of whole bits, and the smallest choice counts.
    pub fn optimal(width: u32, distance: u32, leading: u32) -> Result<Self, HammingError> {
        check(width, distance)?;
        match fewest(width, distance, leading, &mut HashMap::new()) {
            Some(plan) if plan.tables <= TABLES_MAX as u64 => Self::new(width, distance, &plan.splits),
            _ => Err(HammingError::Leading { width, distance, leading }),
        }
    }

    /// The design with the fewest tables in which a query meets at most about [`SCANNED`] of so many fingerprints in a table.
    ///
    /// Memory grows with the tables, and so does the time of a query, because each is a cache miss; scanning is fast.
    pub fn fitting(width: u32, distance: u32, fingerprints: usize) -> Result<Self, HammingError> {
        check(width, distance)?;
        let wanted = (fingerprints / SCANNED).checked_ilog2().map_or(0, |log| log + 1);
        let mut designs =
            (0..=wanted.min(width)).rev().map(|leading| Self::optimal(width, distance, leading));
        designs.find_map(Result::ok).map_or_else(|| Self::new(width, distance, &[]), Ok)
    }

    /// Bits of a fingerprint: the paper's f.
    #[must_use]
    pub fn width(&self) -> u32 {
        self.width
    }

    /// Bits that may differ: the paper's k.
    #[must_use]
    pub fn distance(&self) -> u32 {
        self.distance
    }

    /// The number of blocks at each level, as [`new`](Self::new) takes it.
    #[must_use]
    pub fn splits(&self) -> &[u32] {
        &self.splits
    }

    /// One for each table.
    #[must_use]
    pub fn layouts(&self) -> &[Layout] {
        &self.layouts
    }

    /// Fails if the fingerprint has bits above the width.
    pub(crate) fn check(&self, fingerprint: u64) -> Result<(), HammingError> {
        match fingerprint.checked_shr(self.width) {
            None | Some(0) => Ok(()),
            Some(_) => Err(HammingError::Fingerprint { fingerprint, width: self.width }),
        }
    }

    /// Whether this is the first table that finds fingerprints which differ so.
    pub(crate) fn is_first(&self, layout: usize, difference: u64) -> bool {
        let finds = |layout: &Layout| layout.mask & difference == 0;
        finds(&self.layouts[layout]) && !self.layouts[..layout].iter().any(finds)
    }
}

/// How many fingerprints of a table a query of [`Design::fitting`] may meet.
///
/// With so many in each of four tables a query takes as long as with ten tables in which it meets few; with fewer, it
/// is faster, and takes less than half of the memory (64 bits, k = 3, 67 million, `cargo bench`).
pub const SCANNED: usize = 1024;

fn check(width: u32, distance: u32) -> Result<(), HammingError> {
    if !(1..=WIDTH_MAX).contains(&width) {
        return Err(HammingError::Width(width));
    }
    if distance >= width {
        return Err(HammingError::Distance { distance, width });
    }
    Ok(())
}

/// The bits of the smallest choice of all blocks but `distance`.
fn smallest_choice(bits: u32, blocks: u32, distance: u32) -> u32 {
    (blocks - distance) * (bits / blocks) + (bits % blocks).saturating_sub(distance)
}

/// Collects the leading bits of every table below one choice.
fn choose(bits: &[u32], distance: u32, splits: &[u32], leading: &mut Vec<u32>, chosen: &mut Vec<Vec<u32>>) {
    let Some((&blocks, deeper)) = splits.split_first() else {
        chosen.push(leading.clone());
        return;
    };
    let (size, larger) = (bits.len() / blocks as usize, bits.len() % blocks as usize);
    let start = |block: usize| block * size + block.min(larger);
    // The choice with the first blocks comes first.
    let mut choices: Vec<u64> = of_weight(blocks, distance).collect();
    choices.reverse();
    for left_out in choices {
        let (mut others, before) = (Vec::new(), leading.len());
        for block in 0..blocks as usize {
            let bits = &bits[start(block)..start(block + 1)];
            if left_out >> block & 1 == 0 { &mut *leading } else { &mut others }.extend_from_slice(bits);
        }
        choose(&others, distance, deeper, leading, chosen);
        leading.truncate(before);
    }
}

/// The fewest tables, and the splits that need no more.
#[derive(Clone)]
struct Fewest {
    tables: u64,
    splits: Vec<u32>,
}

/// X for `bits` of which `leading` still have to be fixed; `None` where that is impossible.
///
/// A choice that fixes more bits leaves fewer, and needs fewer: the smallest choice at each level decides for all.
fn fewest(
    bits: u32,
    distance: u32,
    leading: u32,
    known: &mut HashMap<(u32, u32), Option<Fewest>>,
) -> Option<Fewest> {
    if leading == 0 {
        return Some(Fewest { tables: 1, splits: Vec::new() });
    }
    if let Some(known) = known.get(&(bits, leading)) {
        return known.clone();
    }
    let mut best: Option<Fewest> = None;
    for blocks in distance + 1..=bits {
        let fixed = smallest_choice(bits, blocks, distance);
        let Some(deeper) = fewest(bits - fixed, distance, leading.saturating_sub(fixed), known) else {
            continue;
        };
        let tables = binomial(blocks, distance).saturating_mul(deeper.tables);
        if best.as_ref().is_none_or(|best| tables < best.tables) {
            let splits = std::iter::once(blocks).chain(deeper.splits).collect();
            best = Some(Fewest { tables, splits });
        }
    }
    known.insert((bits, leading), best.clone());
    best
}
