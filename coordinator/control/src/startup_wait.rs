//! What a process waits for while it starts: in its log when it changes and from time to time, and for whoever asks.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How often it is said again.
const AGAIN: Duration = Duration::from_secs(15);

/// What is awaited at present. Clones are of the same.
#[derive(Debug, Clone, Default)]
pub struct StartupWait(Arc<Mutex<Option<LastMessage>>>);

#[derive(Debug)]
struct LastMessage {
    text: String,
    at: Instant,
}

impl StartupWait {
    /// `what` is awaited, and `why` it is not there.
    pub fn note(&self, what: &str, why: &str) {
        let text = format!("waiting for {what}: {why}");
        let mut said = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if said.as_ref().is_none_or(|said| said.text != text || said.at.elapsed() >= AGAIN) {
            tracing::warn!("{text}");
            *said = Some(LastMessage { text, at: Instant::now() });
        }
    }

    /// What is awaited.
    pub fn text(&self) -> String {
        let said = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        said.as_ref().map_or_else(|| "the cluster is being looked for".to_owned(), |said| said.text.clone())
    }
}
