//! When a bucket is crowded: searches visit its members in vain, and that costs more than other keys of its
//! members would cost.

/// When a bucket is crowded. A visit of a member is *vain* if its length, its bitmap or a comparison shows that
/// it is no partner.
#[derive(Debug, Clone, Copy)]
pub struct CrowdingLimits {
    /// Vain visits of a bucket before it is crowded.
    pub vain_free: u64,
    /// Further vain visits for each member.
    pub vain_per_member: u64,
}

impl CrowdingLimits {
    /// The limits that cost least on families of 5,000 to 200,000 pages of 100 words.
    pub const DEFAULT: Self = Self { vain_free: 1 << 10, vain_per_member: 32 };

    /// No bucket is ever crowded.
    pub(in crate::node) const NEVER: Self = Self { vain_free: u64::MAX, vain_per_member: 0 };

    /// The limits for the lists of families.
    pub(in crate::node) const fn of_lists(self) -> Self {
        Self { vain_free: self.vain_free / 4, vain_per_member: self.vain_per_member.div_ceil(4) }
    }
}

/// How many times as many vain visits are made before a bucket is called crowded again.
const GROWTH: u64 = 4;

/// The vain visits of one bucket.
#[derive(Debug, Default)]
pub(super) struct Crowding {
    /// Vain visits since the bucket was last called crowded.
    vain: u64,
    /// How often the bucket was called crowded.
    calls: u32,
}

impl Crowding {
    /// Counts vain visits of a bucket that has so many members. Returns whether the bucket has become crowded.
    pub(super) fn add(&mut self, vain: u32, members: u64, limits: CrowdingLimits) -> bool {
        self.vain += u64::from(vain);
        let vain_max = limits.vain_free.saturating_add(limits.vain_per_member.saturating_mul(members));
        let is_crowded = self.vain > vain_max.saturating_mul(GROWTH.saturating_pow(self.calls));
        if is_crowded {
            self.vain = 0;
            self.calls += 1;
        }
        is_crowded
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_is_called_crowded_at_growing_intervals() {
        let limits = CrowdingLimits { vain_free: 10, vain_per_member: 2 };
        let mut crowding = Crowding::default();
        let mut add = |vain| crowding.add(vain, 5, limits);
        assert_eq!(
            [add(20), add(1), add(80), add(1), add(320), add(1)],
            [false, true, false, true, false, true]
        );
    }
}
