//! Compares a key with many other keys, without a branch per key. Uses the processor's bit-counting
//! instructions if the processor has them.
//!
//! The program must run on every processor of its architecture. Most processors can count the bits of a
//! number in one instruction, and the newest can count eight numbers at once. So the scan is compiled once
//! for each instruction set, and the processor's features select the version at run time. This saves a
//! considerable part of the time of a query among ten million fingerprints. Calling these versions is the
//! only `unsafe` code of the crate.
//!
//! Invariant: on every processor, the scan reports exactly the keys within the distance, in their order.

use std::ops::ControlFlow;

/// Number of keys that are compared together, before one branch for all of them.
const STRIDE: usize = 16;

/// Compares `key` with each of `keys`. Calls `hit` with the difference (the XOR) for each of them that is
/// within `distance` of `key`, until `hit` breaks.
#[inline]
pub(crate) fn scan(
    keys: &[u64],
    key: u64,
    distance: u32,
    hit: &mut impl FnMut(u64) -> ControlFlow<()>,
) -> ControlFlow<()> {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::is_x86_feature_detected as has;
        if has!("avx512vpopcntdq") && has!("avx512vl") && has!("popcnt") {
            #[expect(unsafe_code, reason = "the processor has the features of the target function")]
            // SAFETY: the three features were just detected.
            return unsafe { with_avx512(keys, key, distance, hit) };
        }
        if has!("avx2") && has!("popcnt") {
            #[expect(unsafe_code, reason = "the processor has the features of the target function")]
            // SAFETY: both features were just detected.
            return unsafe { with_popcnt(keys, key, distance, hit) };
        }
    }
    compare_strides(keys, key, distance, hit)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512vpopcntdq,avx512vl,popcnt")]
fn with_avx512(
    keys: &[u64],
    key: u64,
    distance: u32,
    hit: &mut impl FnMut(u64) -> ControlFlow<()>,
) -> ControlFlow<()> {
    compare_strides(keys, key, distance, hit)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,popcnt")]
fn with_popcnt(
    keys: &[u64],
    key: u64,
    distance: u32,
    hit: &mut impl FnMut(u64) -> ControlFlow<()>,
) -> ControlFlow<()> {
    compare_strides(keys, key, distance, hit)
}

/// Works like [`scan`]. Inlined into each caller, so that the compiler uses the instruction set of the
/// caller.
#[inline(always)]
fn compare_strides(
    keys: &[u64],
    key: u64,
    distance: u32,
    hit: &mut impl FnMut(u64) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let (strides, rest) = keys.as_chunks::<STRIDE>();
    for stride in strides {
        let any = stride.iter().fold(false, |any, &other| any | ((other ^ key).count_ones() <= distance));
        if any {
            compare_each(stride, key, distance, hit)?;
        }
    }
    compare_each(rest, key, distance, hit)
}

#[inline(always)]
fn compare_each(
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    type Hit<'a> = dyn FnMut(u64) -> ControlFlow<()> + 'a;

    proptest! {
        #[test]
        fn every_instruction_set_reports_the_same_keys(
            keys in prop::collection::vec(prop_oneof![any::<u64>(), 0..64u64], 0..100),
            key in 0..64u64,
            distance in 0..=64u32,
            most in 0..100usize,
        ) {
            fn first(most: usize, scan: impl FnOnce(&mut Hit<'_>) -> ControlFlow<()>) -> Vec<u64> {
                let mut found = Vec::new();
                let _ = scan(&mut |difference| {
                    if found.len() == most {
                        return ControlFlow::Break(());
                    }
                    found.push(difference);
                    ControlFlow::Continue(())
                });
                found
            }
            let near = keys.iter().map(|other| other ^ key).filter(|d| d.count_ones() <= distance);
            let near: Vec<u64> = near.take(most).collect();
            prop_assert_eq!(&first(most, |mut hit| scan(&keys, key, distance, &mut hit)), &near);
            prop_assert_eq!(&first(most, |mut hit| compare_strides(&keys, key, distance, &mut hit)), &near);
            #[cfg(target_arch = "x86_64")]
            if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("popcnt") {
                #[expect(unsafe_code, reason = "the processor has the features of the target function")]
                // SAFETY: both features were just detected.
                let found = first(most, |mut hit| unsafe { with_popcnt(&keys, key, distance, &mut hit) });
                prop_assert_eq!(&found, &near);
            }
        }
    }
}
