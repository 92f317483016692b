//! Numbers of incarnations.

use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use doppel_model::Incarnation;

/// Returns a number that no earlier incarnation had, in this process or an earlier one. The number grows with
/// the clock, and always exceeds the last number of this process.
pub(crate) fn next_incarnation() -> Incarnation {
    static LAST: Mutex<u64> = Mutex::new(0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64);
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    *last = now.max(*last + 1);
    Incarnation(*last)
}
