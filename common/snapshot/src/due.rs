//! Decides when a process should write its next snapshot.

use std::time::Duration;

/// Interval at which a process should call [`is_due`].
pub const LOOK: Duration = Duration::from_secs(1);

/// A snapshot is worthwhile once 1/32 of the items have changed. Every snapshot contains all items, so its
/// cost does not depend on how many have changed.
const PART: u64 = 32;

/// Age of a snapshot that makes the next snapshot due, even if no item has changed.
const OLD: Duration = Duration::from_secs(60 * 60);

/// Whether the next snapshot is due: the last snapshot is at least `pause` old, and either 1/32 of the items
/// have changed since or the snapshot is an hour old.
///
/// `age` is the age of the last snapshot. `changed` of all `items` have changed since the last snapshot.
#[must_use]
pub fn is_due(age: Duration, pause: Duration, changed: u64, items: u64) -> bool {
    age >= pause && (age >= OLD || changed.saturating_mul(PART) >= items)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_is_due_after_the_pause_with_many_changes_and_after_an_hour_with_few() {
        let [pause, short, hour] = [300, 299, 3_600].map(Duration::from_secs);
        assert!(is_due(pause, pause, 10, 320) && !is_due(short, pause, 320, 320));
        assert!(is_due(hour, pause, 1, 320) && !is_due(pause, pause, 9, 320));
    }
}
