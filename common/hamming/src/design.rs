//! Designs: the list of tables, and the leading bits that a query and a fingerprint must share in each table.
//!
//! A design splits the bits into r blocks. If at most k bits differ, at most k blocks differ, so the
//! fingerprints agree in some r - k blocks. The design has one table for each choice of r - k blocks, with
//! the bits of these blocks in the leading positions. The bits of the other k blocks can be split again, with
//! one table for each pair of choices. Source: Manku, Jain, Das Sarma, *Detecting Near-Duplicates for Web
//! Crawling*, WWW 2007, sections 3.1.1 and 3.1.2.
//!
//! Invariants:
//! - Complete: for every difference of at most k bits, at least one table has no differing bit among its
//!   leading bits.
//! - Unique: of all tables that find a difference, [`Design::is_first`] holds for exactly one. So each match
//!   is reported once.

use std::collections::HashMap;

use crate::error::HammingError;
use crate::limits::{TABLES_MAX, WIDTH_MAX};
use crate::patterns::{binomial, of_weight};
use crate::permutation::Permutation;

/// One table of a design: a permutation of the bits, and the number of leading bits that must agree (the
/// paper's π and p).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableLayout {
    permutation: Permutation,
    leading: u32,
    mask: u64,
}

impl TableLayout {
    fn new(leading: &[u32], width: u32) -> Self {
        // The remaining bits follow in circular order after the last leading bit. Contiguous blocks then
        // rotate together.
        let after = leading.last().map_or(width, |&last| last + width);
        let others = (1..=width).map(|step| (after - step) % width).filter(|bit| !leading.contains(bit));
        let order: Vec<u32> = leading.iter().copied().chain(others).collect();
        Self {
            permutation: Permutation::from_order(&order),
            leading: leading.len() as u32,
            mask: leading.iter().fold(0, |mask, bit| mask | 1 << bit),
        }
    }

    /// The permutation that arranges the bits of a fingerprint for this table.
    #[must_use]
    pub fn permutation(&self) -> &Permutation {
        &self.permutation
    }

    /// Number of leading bits in which a query and a stored fingerprint must agree, so that this table finds
    /// the pair: the paper's p.
    #[must_use]
    pub fn leading(&self) -> u32 {
        self.leading
    }

    /// Mask of the bits in an unpermuted fingerprint that lead in this table.
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
    layouts: Vec<TableLayout>,
}

impl Design {
    /// Creates a design of tables. The bits are split into `splits[0]` blocks, the bits outside the chosen
    /// blocks into `splits[1]` blocks, and so on.
    ///
    /// For 64 bits and distance 3, the designs of the paper with 20, 16, 10 and 4 tables are `[6]`, `[4, 4]`,
    /// `[5]` and `[4]`. Without splits there is one table, and each query reads that table from end to end.
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
            // This is the maximum number of bits that a choice leaves over. Other choices leave fewer bits
            // and may get empty blocks at the next level, which does no harm.
            bits -= smallest_choice(bits, blocks, distance);
        }
        let all: Vec<u32> = (0..width).rev().collect();
        let mut chosen = Vec::with_capacity(tables as usize);
        collect_leading(&all, distance, splits, &mut Vec::new(), &mut chosen);
        let layouts = chosen.iter().map(|leading| TableLayout::new(leading, width)).collect();
        Ok(Self { width, distance, splits: splits.to_vec(), layouts })
    }

    /// Finds the design with the fewest tables that all have at least `leading` leading bits: the paper's
    /// X(f, k, d) for 2^d fingerprints.
    ///
    /// The paper ends the recursion when d < tau = d - p, where p is `leading`. This demands more than p
    /// leading bits. This function ends the recursion at p or more leading bits, as the examples in the paper
    /// need. Blocks consist of whole bits, and the smallest choice of blocks must have enough leading bits.
    pub fn optimal(width: u32, distance: u32, leading: u32) -> Result<Self, HammingError> {
        check(width, distance)?;
        match minimal_plan(width, distance, leading, &mut HashMap::new()) {
            Some(plan) if plan.tables <= TABLES_MAX as u64 => Self::new(width, distance, &plan.splits),
            _ => Err(HammingError::Leading { width, distance, leading }),
        }
    }

    /// Finds the design with the fewest tables that makes a query read at most about [`SCANNED`] of
    /// `fingerprints` fingerprints per table. If no design reads so few, takes the design with the most
    /// leading bits.
    ///
    /// Each further table costs memory and a cache miss per query, while scanning adjacent fingerprints is
    /// fast.
    pub fn fitting(width: u32, distance: u32, fingerprints: usize) -> Result<Self, HammingError> {
        check(width, distance)?;
        let wanted = (fingerprints / SCANNED).checked_ilog2().map_or(0, |log| log + 1);
        let mut designs =
            (0..=wanted.min(width)).rev().map(|leading| Self::optimal(width, distance, leading));
        designs.find_map(Result::ok).map_or_else(|| Self::new(width, distance, &[]), Ok)
    }

    /// Number of bits in a fingerprint: the paper's f.
    #[must_use]
    pub fn width(&self) -> u32 {
        self.width
    }

    /// Maximum number of differing bits: the paper's k.
    #[must_use]
    pub fn distance(&self) -> u32 {
        self.distance
    }

    /// The number of blocks at each level, which the caller passed to [`new`](Self::new) or another
    /// constructor chose.
    #[must_use]
    pub fn splits(&self) -> &[u32] {
        &self.splits
    }

    /// The layouts of all tables.
    #[must_use]
    pub fn layouts(&self) -> &[TableLayout] {
        &self.layouts
    }

    /// Returns an error if the fingerprint has bits above the width.
    pub(crate) fn check(&self, fingerprint: u64) -> Result<(), HammingError> {
        match fingerprint.checked_shr(self.width) {
            None | Some(0) => Ok(()),
            Some(_) => Err(HammingError::Fingerprint { fingerprint, width: self.width }),
        }
    }

    /// Whether `layout` is the first table that finds two fingerprints with this `difference`.
    pub(crate) fn is_first(&self, layout: usize, difference: u64) -> bool {
        let finds = |layout: &TableLayout| layout.mask & difference == 0;
        finds(&self.layouts[layout]) && !self.layouts[..layout].iter().any(finds)
    }
}

/// Maximum number of fingerprints that a query should read per table; [`Design::fitting`] aims at this
/// number.
///
/// Measured with `cargo bench` for 64 bits, k = 3, and 67 million fingerprints. At this number, four tables
/// are as fast as ten tables in which a query reads few fingerprints. Below this number, four tables are
/// faster. Four tables take less than half of the memory of ten.
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

/// `bits` bits are split into `blocks` blocks, and all blocks but `distance` are chosen. Returns the number
/// of bits in the smallest such choice.
fn smallest_choice(bits: u32, blocks: u32, distance: u32) -> u32 {
    (blocks - distance) * (bits / blocks) + (bits % blocks).saturating_sub(distance)
}

/// Appends to `chosen` the leading bits of every table that begins with `leading`. `bits` are the bits that
/// are not chosen yet, and `splits` has the levels below.
fn collect_leading(
    bits: &[u32],
    distance: u32,
    splits: &[u32],
    leading: &mut Vec<u32>,
    chosen: &mut Vec<Vec<u32>>,
) {
    let Some((&blocks, deeper)) = splits.split_first() else {
        chosen.push(leading.clone());
        return;
    };
    let (size, larger) = (bits.len() / blocks as usize, bits.len() % blocks as usize);
    let start = |block: usize| block * size + block.min(larger);
    // Start with the choice that contains the first blocks.
    let mut choices: Vec<u64> = of_weight(blocks, distance).collect();
    choices.reverse();
    for left_out in choices {
        let (mut others, before) = (Vec::new(), leading.len());
        for block in 0..blocks as usize {
            let bits = &bits[start(block)..start(block + 1)];
            if left_out >> block & 1 == 0 { &mut *leading } else { &mut others }.extend_from_slice(bits);
        }
        collect_leading(&others, distance, deeper, leading, chosen);
        leading.truncate(before);
    }
}

/// The minimum number of tables, and splits that need no more tables.
#[derive(Clone)]
struct MinimalPlan {
    tables: u64,
    splits: Vec<u32>,
}

/// Computes the paper's X for `bits` remaining bits, of which `leading` must still be fixed. `None` if that
/// is impossible.
///
/// A choice that fixes more bits leaves fewer bits and needs fewer further leading bits. So the smallest
/// choice at each level is the hardest case, and a plan for it works for all choices.
fn minimal_plan(
    bits: u32,
    distance: u32,
    leading: u32,
    cache: &mut HashMap<(u32, u32), Option<MinimalPlan>>,
) -> Option<MinimalPlan> {
    if leading == 0 {
        return Some(MinimalPlan { tables: 1, splits: Vec::new() });
    }
    if let Some(plan) = cache.get(&(bits, leading)) {
        return plan.clone();
    }
    let mut best: Option<MinimalPlan> = None;
    for blocks in distance + 1..=bits {
        let fixed = smallest_choice(bits, blocks, distance);
        let Some(deeper) = minimal_plan(bits - fixed, distance, leading.saturating_sub(fixed), cache) else {
            continue;
        };
        let tables = binomial(blocks, distance).saturating_mul(deeper.tables);
        if best.as_ref().is_none_or(|best| tables < best.tables) {
            let splits = std::iter::once(blocks).chain(deeper.splits).collect();
            best = Some(MinimalPlan { tables, splits });
        }
    }
    cache.insert((bits, leading), best.clone());
    best
}

#[cfg(test)]
mod tests;
