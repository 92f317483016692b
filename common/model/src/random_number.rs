//! Numbers that nobody else has drawn.

use std::hash::{BuildHasher, Hasher, RandomState};

/// 64 random bits, which make a name that is unique in all likelihood, also among processes. They come from the operating
/// system's randomness by way of the keys of the standard library's hasher, which promises nothing of their quality:
/// they are not for secrets.
#[must_use]
pub fn random_number() -> u64 {
    RandomState::new().build_hasher().finish()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::thread;

    use super::*;

    #[test]
    fn no_number_is_drawn_twice() {
        let draw = || (0..1_000).map(|_| random_number()).collect::<Vec<_>>();
        let threads: Vec<_> = (0..4).map(|_| thread::spawn(draw)).collect();
        let numbers: HashSet<u64> = threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
        assert_eq!(numbers.len(), 4_000);
    }
}
