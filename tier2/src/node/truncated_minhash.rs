//! Four bits of each sketch byte: enough in memory to reject a candidate, never to accept one.
//!
//! Two minima agree with probability J, and where they do not, their low four bits agree by chance one time
//! in 16: so two of them agree with probability p = J + (1 - J) / 16.

use doppel_model::Tau;
use doppel_model::sketch::{BINS, Sketch};

/// The low four bits of each byte of a sketch, 16 to a word.
pub(crate) type TruncatedMinHash = [u64; 4];

/// The greatest probability that a pair at J = tau is rejected. The bands pass over twenty times as many,
/// but those are not linked by definition; what is rejected here would be.
const LOSS_MAX: f64 = 1e-5;

/// Packs a sketch.
pub(crate) fn pack(sketch: &Sketch) -> TruncatedMinHash {
    let mut truncated = [0; 4];
    for (word, bytes) in truncated.iter_mut().zip(sketch.chunks_exact(BINS / 4)) {
        *word = bytes.iter().fold(0, |word, byte| word << 4 | u64::from(byte & 0xf));
    }
    truncated
}

/// In how many of the 64 places two sketches agree.
#[inline]
pub(crate) fn agreeing(a: &TruncatedMinHash, b: &TruncatedMinHash) -> u32 {
    let differing = |(a, b): (&u64, &u64)| {
        let x = a ^ b;
        let x = x | x >> 2;
        ((x | x >> 1) & 0x1111_1111_1111_1111).count_ones()
    };
    BINS as u32 - a.iter().zip(b).map(differing).sum::<u32>()
}

/// The least number of agreeing places at which a pair may still be above `tau`: below it is a
/// probability of at most [`LOSS_MAX`], at J = tau and so at any J above.
pub(crate) fn least_agreeing(tau: Tau) -> u32 {
    let p = tau.as_f64() + (1.0 - tau.as_f64()) / 16.0;
    let places = BINS as i32;
    let mut term = (1.0 - p).powi(places);
    let mut below = 0.0;
    for agreeing in 0..places {
        below += term;
        if below > LOSS_MAX {
            return agreeing as u32;
        }
        term *= p / (1.0 - p) * f64::from(places - agreeing) / f64::from(agreeing + 1);
    }
    places as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn rejects_only_far_below_tau() {
        for (tau, least) in [("0.5", 17), ("0.8", 37), ("0.9", 46)] {
            let tau: Tau = tau.parse().unwrap();
            assert_eq!(least_agreeing(tau), least);
            let p = tau.as_f64() + (1.0 - tau.as_f64()) / 16.0;
            let deviation = (64.0 * p * (1.0 - p)).sqrt();
            assert!(f64::from(least) < 64.0 * p - 4.0 * deviation);
        }
        assert!(least_agreeing("0.9999".parse().unwrap()) <= 64);
    }

    proptest! {
        #[test]
        fn counts_agreeing_truncated_minima(a in any::<[u8; 32]>(), b in any::<[u8; 32]>(), same in 0usize..64) {
            let sketch = |half: [u8; 32]| -> Sketch { std::array::from_fn(|i| half[i / 2] >> (i % 2 * 4)) };
            let (a, mut b) = (sketch(a), sketch(b));
            b[..same].copy_from_slice(&a[..same]);
            let expected = a.iter().zip(&b).filter(|(a, b)| *a & 0xf == *b & 0xf).count();
            prop_assert_eq!(agreeing(&pack(&a), &pack(&b)) as usize, expected);
        }
    }
}
