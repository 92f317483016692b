//! Records what a starting process is waiting for. The process logs it when it changes and from time to time,
//! and shows it to clients that ask whether the process is ready.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Time after which an unchanged reason is logged again.
const AGAIN: Duration = Duration::from_secs(15);

/// What the process is waiting for at present. Clones share the record.
#[derive(Debug, Clone, Default)]
pub struct StartupWait(Arc<Mutex<Option<WaitReason>>>);

/// The last logged reason for waiting.
#[derive(Debug)]
struct WaitReason {
    text: String,
    at: Instant,
}

impl StartupWait {
    /// Records that the process is waiting for `what`, and `why`; logs it if it is new or was logged long
    /// ago.
    pub fn note(&self, what: &str, why: &str) {
        let text = format!("waiting for {what}: {why}");
        let mut said = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if said.as_ref().is_none_or(|said| said.text != text || said.at.elapsed() >= AGAIN) {
            tracing::warn!("{text}");
            *said = Some(WaitReason { text, at: Instant::now() });
        }
    }

    /// Text that says what the process is waiting for.
    pub fn text(&self) -> String {
        let said = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        said.as_ref().map_or_else(|| "the cluster is being looked for".to_owned(), |said| said.text.clone())
    }
}
