//! News that a stream has grown, so that readers need not ask all the time. A hint may be lost, late or wrong: it decides nothing.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_nats::Client;
use bytes::Bytes;
use futures_util::StreamExt as _;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

/// Readers that have heard nothing for so long look all the same.
const SILENCE: Duration = Duration::from_millis(250);

/// The pause before a subscription that has ended is made again.
const PAUSE: Duration = Duration::from_secs(1);

/// What was heard of a stream.
pub(super) struct Hints {
    client: Client,
    handle: Handle,
    subject: String,
    heard: Arc<Heard>,
    listener: JoinHandle<()>,
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
        let subject = format!("{stream}.grew");
        let heard = Arc::<Heard>::default();
        let listen = {
            let (client, subject, heard) = (client.clone(), subject.clone(), Arc::clone(&heard));
            async move {
                loop {
                    if let Ok(mut messages) = client.subscribe(subject.clone()).await {
                        while let Some(message) = messages.next().await {
                            let bytes = message.payload.first_chunk().copied().unwrap_or_default();
                            let mut last = heard.last();
                            *last = u64::from_be_bytes(bytes).max(*last);
                            heard.grew.notify_all();
                        }
                    }
                    tokio::time::sleep(PAUSE).await;
                }
            }
        };
        let listener = handle.spawn(listen);
        Self { client, handle: handle.clone(), subject, heard, listener }
    }

    /// The stream has grown up to an entry.
    pub(super) fn tell(&self, sequence: u64) {
        let told = self.client.publish(self.subject.clone(), Bytes::copy_from_slice(&sequence.to_be_bytes()));
        if let Err(error) = self.handle.block_on(told) {
            tracing::debug!(%error, stream = self.subject, "readers are not told; they look all the same");
        }
    }

    /// Waits until the stream is said to have grown beyond an entry.
    pub(super) fn wait(&self, after: u64, limit: Duration) {
        let last = self.heard.last();
        let wait = limit.min(SILENCE);
        drop(self.heard.grew.wait_timeout_while(last, wait, |last| *last <= after));
    }
}

impl Drop for Hints {
    fn drop(&mut self) {
        self.listener.abort();
    }
}
