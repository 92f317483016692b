//! The set of ids that share a fingerprint.
//!
//! Most fingerprints have one id, but a few have very many: for example, all empty pages share a fingerprint.
//! So a single id needs no memory allocation. Several ids are in a tree, so that adding or removing an id is
//! cheap in large sets, too.
//!
//! Invariant: a set contains each id at most once.

use std::collections::BTreeSet;

/// A set of ids that takes little memory if it has one id.
#[derive(Debug, Default)]
pub(crate) enum Ids {
    #[default]
    None,
    One(u64),
    Many(Box<Tree>),
}

/// A tree of at least two ids. Boxed, so that a set takes 16 bytes.
#[derive(Debug)]
pub(crate) struct Tree(BTreeSet<u64>);

impl Ids {
    /// Adds an id. Returns false if the set already contains it.
    pub(crate) fn insert(&mut self, id: u64) -> bool {
        match self {
            Self::None => *self = Self::One(id),
            Self::One(one) if *one == id => return false,
            Self::One(one) => *self = Self::Many(Box::new(Tree([*one, id].into()))),
            Self::Many(many) => return many.0.insert(id),
        }
        true
    }

    /// Removes an id. Returns false if the set does not contain it.
    pub(crate) fn remove(&mut self, id: u64) -> bool {
        match self {
            Self::One(one) if *one == id => *self = Self::None,
            Self::None | Self::One(_) => return false,
            Self::Many(many) => {
                if !many.0.remove(&id) {
                    return false;
                }
                if let (1, Some(&one)) = (many.0.len(), many.0.first()) {
                    *self = Self::One(one);
                }
            }
        }
        true
    }

    pub(crate) fn is_empty(&self) -> bool {
        matches!(self, Self::None)
    }

    /// All ids in ascending order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u64> {
        let (one, many) = match self {
            Self::None => (None, None),
            Self::One(one) => (Some(*one), None),
            Self::Many(many) => (None, Some(many.0.iter().copied())),
        };
        one.into_iter().chain(many.into_iter().flatten())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_changes_its_form_as_it_grows_and_shrinks() {
        let mut ids = Ids::default();
        assert!(ids.is_empty() && !ids.remove(7));
        assert!(ids.insert(7) && !ids.insert(7));
        assert!(ids.insert(3) && ids.insert(9) && !ids.insert(3));
        assert_eq!(ids.iter().collect::<Vec<_>>(), [3, 7, 9]);
        assert!(ids.remove(7) && !ids.remove(7) && ids.remove(3));
        assert!(matches!(ids, Ids::One(9)));
        assert!(!ids.remove(3) && ids.remove(9));
        assert!(ids.is_empty() && ids.iter().next().is_none());
        assert_eq!(size_of::<Ids>(), 16);
    }
}
