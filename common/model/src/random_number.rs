//! Random numbers for names that must be unique.

use std::hash::{BuildHasher, Hasher, RandomState};

/// Draws 64 random bits. A name made of them is almost certainly unique, even among processes.
///
/// The bits come from the operating system, through the random keys of the standard library's hasher. The
/// standard library does not promise their quality, so they must not be used for secrets.
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
