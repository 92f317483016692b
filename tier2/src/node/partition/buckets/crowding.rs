//! When a bucket is crowded: searches reject its members in vain, and that costs more than other keys of its
//! members would cost.

/// When a bucket is crowded, and what is done then. A visit of a member is *vain* if its length, its bitmap or a
/// comparison shows that it is no partner.
#[derive(Debug, Clone, Copy)]
pub struct CrowdingLimits {
    /// Vain visits of a bucket before it is crowded.
    pub vain_free: u64,
    /// Further vain visits for each member.
    pub vain_per_member: u64,
    /// A new family is learned from a bucket of at least so many members.
    pub learn_min: usize,
}

impl CrowdingLimits {
    /// The limits that cost least on a family of 200,000 pages of 100 words.
    pub const DEFAULT: Self = Self { vain_free: 256, vain_per_member: 8, learn_min: 128 };

    /// No bucket is ever crowded.
    pub(in crate::node) const NEVER: Self = Self { vain_free: u64::MAX, ..Self::DEFAULT };
}

/// How many times as many vain visits are made before a bucket of the same size is called crowded again.
const GROWTH: u64 = 4;

/// The vain visits of one bucket.
#[derive(Debug, Default)]
pub(super) struct Crowding {
    /// Vain visits since the bucket was last called crowded.
    vain: u64,
    /// How often the bucket was called crowded since its members doubled.
    calls: u32,
    /// Number of members when the bucket was first called crowded since then.
    members: u64,
}

impl Crowding {
    /// Counts vain visits of a bucket that has so many members. Returns whether the bucket has become crowded.
    pub(super) fn add(&mut self, vain: u32, members: u64, limits: CrowdingLimits) -> bool {
        self.vain += u64::from(vain);
        if members >= 2 * self.members {
            self.calls = 0;
        }
        let vain_max = limits.vain_free.saturating_add(limits.vain_per_member.saturating_mul(members));
        let is_crowded = self.vain > vain_max.saturating_mul(GROWTH.saturating_pow(self.calls));
        if is_crowded {
            self.vain = 0;
            if self.calls == 0 {
                self.members = members;
            }
            self.calls += 1;
        }
        is_crowded
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_is_called_crowded_at_growing_intervals_until_it_doubles() {
        let limits = CrowdingLimits { vain_free: 10, vain_per_member: 2, learn_min: 1 };
        let mut crowding = Crowding::default();
        let mut add = |vain, members| crowding.add(vain, members, limits);
        let calls =
            [(20, 5), (1, 5), (80, 5), (1, 5), (320, 5), (1, 5)].map(|(vain, members)| add(vain, members));
        assert_eq!(calls, [false, true, false, true, false, true]);
        assert_eq!([add(28, 9), add(29, 10), add(2, 10)], [false, true, false]);
    }
}
