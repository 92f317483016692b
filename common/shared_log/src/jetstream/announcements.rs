//! Announcements of new entries in a stream. Readers learn about an entry without polling, and do not have to
//! request it.
//!
//! An announcement contains the sequence number in 8 bytes and the bytes of the entry. The content of an
//! empty entry is not announced, so a reader has to request it.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_nats::Client;
use bytes::Bytes;
use tokio::runtime::Handle;

use super::news_channel::{NewsChannel, NewsSubscription};
use super::sent_bytes::SentBytes;
use crate::announced::AnnouncedEntries;
use crate::log::{LogEntry, Sequence};

/// Longest time that a reader waits for an announcement. Then the reader checks the stream anyway, because
/// the announcement may be lost.
const ANNOUNCEMENT_WAIT_MAX: Duration = Duration::from_millis(250);

/// Sends and receives the announcements of a stream.
pub(super) struct Announcements {
    channel: NewsChannel,
    received: Arc<ReceivedAnnouncements>,
    _listening: NewsSubscription,
}

#[derive(Default)]
struct ReceivedAnnouncements {
    state: Mutex<State>,
    /// Signals that an entry was announced.
    grew: Condvar,
}

#[derive(Default)]
struct State {
    /// Sequence number of the last announced entry. 0 if no entry has been announced.
    last: u64,
    entries: AnnouncedEntries,
    /// Position after which a reader last waited, and the last announced entry at that time.
    last_wait: (u64, u64),
}

impl ReceivedAnnouncements {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn receive(&self, news: &[u8]) {
        let Some((sequence, entry)) = news.split_first_chunk() else { return };
        let sequence = u64::from_be_bytes(*sequence);
        let mut state = self.state();
        state.last = state.last.max(sequence);
        if !entry.is_empty() {
            state.entries.put(Sequence(sequence), Bytes::copy_from_slice(entry));
        }
        self.grew.notify_all();
    }
}

impl Announcements {
    pub(super) fn start(handle: &Handle, client: Client, stream: &str, sent: SentBytes) -> Self {
        let channel = NewsChannel::new(client, handle.clone(), format!("{stream}.grew"), sent);
        let received = Arc::<ReceivedAnnouncements>::default();
        let listening = {
            let received = Arc::clone(&received);
            channel.listen(move |news| received.receive(news))
        };
        Self { channel, received, _listening: listening }
    }

    /// Announces an acknowledged entry to the other processes, and wakes the waiting readers of this process.
    pub(super) fn announce(&self, sequence: Sequence, entry: &Bytes) {
        let mut state = self.received.state();
        state.last = state.last.max(sequence.0);
        // The process that appends an entry does not need its announcement.
        state.entries.forget(sequence);
        drop(state);
        self.received.grew.notify_all();
        let mut news = Vec::with_capacity(8 + entry.len());
        news.extend(sequence.0.to_be_bytes());
        news.extend_from_slice(entry);
        self.channel.tell(Bytes::from(news));
    }

    /// Returns the sequence number of the last announced entry. `None` if no entry has been announced.
    pub(super) fn last(&self) -> Option<u64> {
        Some(self.received.state().last).filter(|last| *last > 0)
    }

    /// Records that the stream has no entry after `end`, although announcements up to `last` arrived before.
    /// The stream may have lost its tail, so waiting readers ignore these announcements. Does nothing if a
    /// later entry has been announced since.
    pub(super) fn note_end(&self, end: Sequence, last: Option<u64>) {
        let mut state = self.received.state();
        if last == Some(state.last) && state.last > end.0 {
            state.last = end.0;
        }
    }

    /// Returns the announced entries after a position, up to the first gap. Drops the entries up to the
    /// position.
    pub(super) fn entries_after(&self, after: Sequence) -> Vec<LogEntry> {
        self.received.state().entries.entries_after(after)
    }

    /// Drops the announced entries up to `through`, because they were read.
    pub(super) fn forget(&self, through: Sequence) {
        self.received.state().entries.forget(through);
    }

    /// Waits until an entry beyond `after` is announced, but at most `limit` and at most
    /// [`ANNOUNCEMENT_WAIT_MAX`]. If the last call waited for an entry beyond `after` too, only a later
    /// announcement ends the wait early.
    pub(super) fn wait(&self, after: u64, limit: Duration) {
        let state = self.received.state();
        // If an announced entry was not found, the log has lost it or lags behind. Wait for a newer
        // announcement.
        let known = if state.last_wait.0 == after { state.last_wait.1.max(after) } else { after };
        let wait = limit.min(ANNOUNCEMENT_WAIT_MAX);
        let grew = self.received.grew.wait_timeout_while(state, wait, |state| state.last <= known);
        let (mut state, _) = grew.unwrap_or_else(PoisonError::into_inner);
        state.last_wait = (after, state.last);
    }
}
