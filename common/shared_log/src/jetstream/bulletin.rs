//! News between processes on a subject of the engine. Nothing of it is kept: news may be lost, late, or come twice, so it decides
//! nothing.

use std::time::Duration;

use async_nats::Client;
use bytes::Bytes;
use futures_util::StreamExt as _;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use super::sent::Sent;

/// How long news wait for a place in the queue to the engine.
const PATIENCE: Duration = Duration::from_millis(200);

/// The pause before a subscription that has ended is made again.
const PAUSE: Duration = Duration::from_secs(1);

/// A subject on which processes tell each other news.
#[derive(Clone)]
pub struct Bulletin {
    client: Client,
    handle: Handle,
    subject: String,
    sent: Sent,
}

/// News are listened to as long as this is kept.
#[derive(Debug)]
pub struct Listening(JoinHandle<()>);

impl Bulletin {
    pub(super) fn new(client: Client, handle: Handle, subject: String, sent: Sent) -> Self {
        Self { client, handle, subject, sent }
    }

    /// Tells news to all that listen. It waits for a place in the queue to the engine, and not for long.
    pub fn tell(&self, news: Bytes) {
        self.sent.count(news.len());
        let told = self.client.publish(self.subject.clone(), news);
        // While there is no connection the queue fills.
        let told = self.handle.block_on(async { tokio::time::timeout(PATIENCE, told).await });
        if !matches!(told, Ok(Ok(()))) {
            tracing::debug!(subject = self.subject, "news are not told");
        }
    }

    /// Has `hear` take all news from now on, on a thread of the runtime, which it must not block.
    #[must_use]
    pub fn listen(&self, hear: impl Fn(&[u8]) + Send + 'static) -> Listening {
        let (client, subject) = (self.client.clone(), self.subject.clone());
        Listening(self.handle.spawn(async move {
            loop {
                match client.subscribe(subject.clone()).await {
                    Ok(mut news) => {
                        while let Some(message) = news.next().await {
                            hear(&message.payload);
                        }
                    }
                    Err(error) => tracing::debug!(%error, subject, "news are not heard"),
                }
                tokio::time::sleep(PAUSE).await;
            }
        }))
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl std::fmt::Debug for Bulletin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bulletin").field("subject", &self.subject).finish_non_exhaustive()
    }
}
