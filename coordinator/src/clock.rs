//! What time it is.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use doppel_model::Timestamp;

/// The present moment; passed in, so that tests have their own.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// The computer's clock.
#[must_use]
pub fn system_clock() -> Clock {
    Arc::new(|| {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    })
}
