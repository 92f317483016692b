//! Compares a key with many others, without a branch for each.
//!
//! Invariant: exactly the keys within the distance are reported, in their order.

use std::ops::ControlFlow;

/// Keys that are compared before the first branch.
const STRIDE: usize = 16;

/// Calls `hit` with the difference of each key that is within `distance`.
#[inline]
pub(crate) fn scan(
    keys: &[u64],
    key: u64,
    distance: u32,
    hit: &mut impl FnMut(u64) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let (strides, rest) = keys.as_chunks::<STRIDE>();
    for stride in strides {
        let any = stride.iter().fold(false, |any, &other| any | ((other ^ key).count_ones() <= distance));
        if any {
            each(stride, key, distance, hit)?;
        }
    }
    each(rest, key, distance, hit)
}

fn each(
    keys: &[u64],
    key: u64,
    distance: u32,
    hit: &mut impl FnMut(u64) -> ControlFlow<()>,
) -> ControlFlow<()> {
    for &other in keys {
        let difference = other ^ key;
        if difference.count_ones() <= distance {
            hit(difference)?;
        }
    }
    ControlFlow::Continue(())
}
