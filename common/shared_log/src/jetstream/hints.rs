//! News that a stream has grown, with the entry that was acknowledged: readers need not ask all the time, nor for each entry.
//!
//! News have the place of the entry in 8 bytes, and then its bytes; one that is empty is asked for.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_nats::Client;
use bytes::Bytes;
use tokio::runtime::Handle;

use super::bulletin::{Bulletin, Listening};
use super::sent::Sent;
use crate::log::{Entry, Sequence};
use crate::told::Told;

/// Readers that have heard nothing for so long look all the same.
const SILENCE: Duration = Duration::from_millis(250);

/// What was heard of a stream.
pub(super) struct Hints {
    bulletin: Bulletin,
    heard: Arc<Heard>,
    _listening: Listening,
}

#[derive(Default)]
struct Heard {
    state: Mutex<State>,
    grew: Condvar,
}

#[derive(Default)]
struct State {
    last: u64,
    told: Told,
    /// Behind which place a reader has last waited, and what it was told then.
    waited: (u64, u64),
}

impl Heard {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn hear(&self, news: &[u8]) {
        let Some((sequence, entry)) = news.split_first_chunk() else { return };
        let sequence = u64::from_be_bytes(*sequence);
        let mut state = self.state();
        state.last = state.last.max(sequence);
        if !entry.is_empty() {
            state.told.put(Sequence(sequence), Bytes::copy_from_slice(entry));
        }
        self.grew.notify_all();
    }
}

impl Hints {
    pub(super) fn start(handle: &Handle, client: Client, stream: &str, sent: Sent) -> Self {
        let bulletin = Bulletin::new(client, handle.clone(), format!("{stream}.grew"), sent);
        let heard = Arc::<Heard>::default();
        let listening = {
            let heard = Arc::clone(&heard);
            bulletin.listen(move |news| heard.hear(news))
        };
        Self { bulletin, heard, _listening: listening }
    }

    /// An entry was acknowledged.
    pub(super) fn tell(&self, sequence: Sequence, entry: &Bytes) {
        let mut state = self.heard.state();
        state.last = state.last.max(sequence.0);
        // Whoever appends has it.
        state.told.forget(sequence);
        drop(state);
        self.heard.grew.notify_all();
        let mut news = Vec::with_capacity(8 + entry.len());
        news.extend(sequence.0.to_be_bytes());
        news.extend_from_slice(entry);
        self.bulletin.tell(Bytes::from(news));
    }

    /// The last entry that was told of.
    pub(super) fn last(&self) -> Option<u64> {
        Some(self.heard.state().last).filter(|last| *last > 0)
    }

    /// The stream has nothing behind a place, though news of more had come, `last` the latest of them: it may have lost its
    /// tail. Whoever waits does not believe them any more.
    pub(super) fn note_end(&self, end: Sequence, last: Option<u64>) {
        let mut state = self.heard.state();
        if last == Some(state.last) && state.last > end.0 {
            state.last = end.0;
        }
    }

    /// What was told, behind a place and without a gap.
    pub(super) fn told(&self, after: Sequence) -> Vec<Entry> {
        self.heard.state().told.behind(after)
    }

    /// Entries up to this one were read.
    pub(super) fn forget(&self, through: Sequence) {
        self.heard.state().told.forget(through);
    }

    /// Waits until the stream is said to have grown beyond an entry.
    pub(super) fn wait(&self, after: u64, limit: Duration) {
        let state = self.heard.state();
        // Where that was said before and is not there, the log has lost it, or lags behind.
        let known = if state.waited.0 == after { state.waited.1.max(after) } else { after };
        let wait = limit.min(SILENCE);
        let grew = self.heard.grew.wait_timeout_while(state, wait, |state| state.last <= known);
        let (mut state, _) = grew.unwrap_or_else(PoisonError::into_inner);
        state.waited = (after, state.last);
    }
}
