//! News that a stream has grown, so that readers need not ask all the time.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_nats::Client;
use bytes::Bytes;
use tokio::runtime::Handle;

use super::bulletin::{Bulletin, Listening};

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
    last: Mutex<u64>,
    grew: Condvar,
}

impl Heard {
    fn last(&self) -> MutexGuard<'_, u64> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Hints {
    pub(super) fn start(handle: &Handle, client: Client, stream: &str) -> Self {
        let bulletin = Bulletin::new(client, handle.clone(), format!("{stream}.grew"));
        let heard = Arc::<Heard>::default();
        let listening = {
            let heard = Arc::clone(&heard);
            bulletin.listen(move |news| {
                let bytes = news.first_chunk().copied().unwrap_or_default();
                let mut last = heard.last();
                *last = u64::from_be_bytes(bytes).max(*last);
                heard.grew.notify_all();
            })
        };
        Self { bulletin, heard, _listening: listening }
    }

    /// The stream has grown up to an entry.
    pub(super) fn tell(&self, sequence: u64) {
        self.bulletin.tell(Bytes::copy_from_slice(&sequence.to_be_bytes()));
    }

    /// The last entry that was told of.
    pub(super) fn last(&self) -> Option<u64> {
        Some(*self.heard.last()).filter(|last| *last > 0)
    }

    /// Waits until the stream is said to have grown beyond an entry.
    pub(super) fn wait(&self, after: u64, limit: Duration) {
        let last = self.heard.last();
        let wait = limit.min(SILENCE);
        drop(self.heard.grew.wait_timeout_while(last, wait, |last| *last <= after));
    }
}
