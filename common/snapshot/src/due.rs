//! When the next snapshot is due.

use std::time::Duration;

/// How often it is looked whether one is due.
pub const LOOK: Duration = Duration::from_secs(1);

/// Changed items that are worth a snapshot, as a part of all: it has all of them, and so costs as much.
const PART: u64 = 32;

/// A snapshot that is so old is followed by another one, however little has changed.
const OLD: Duration = Duration::from_secs(60 * 60);

/// Whether another snapshot is due, `age` after the last one, when so many of so many items have changed since. `pause` is
/// the least time between two.
#[must_use]
pub fn is_due(age: Duration, pause: Duration, changed: u64, items: u64) -> bool {
    age >= pause && (age >= OLD || changed.saturating_mul(PART) >= items)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn much_that_has_changed_is_due_after_the_pause_and_little_after_an_hour() {
        let [pause, short, hour] = [300, 299, 3_600].map(Duration::from_secs);
        assert!(is_due(pause, pause, 10, 320) && !is_due(short, pause, 320, 320));
        assert!(is_due(hour, pause, 1, 320) && !is_due(pause, pause, 9, 320));
    }
}
