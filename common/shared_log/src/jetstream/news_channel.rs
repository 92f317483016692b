//! Sends news between processes: messages over a subject of the log servers, which the servers do not store.
//! News may be lost, late, or repeated, so no decision may depend on it.

use std::time::Duration;

use async_nats::Client;
use bytes::Bytes;
use futures_util::StreamExt as _;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use super::sent_bytes::SentBytes;

/// How long a message waits for room in the queue to the servers before it is dropped.
const PATIENCE: Duration = Duration::from_millis(200);

/// Pause before a subscription that has ended is renewed.
const PAUSE: Duration = Duration::from_secs(1);

/// A subject on which processes send each other news.
#[derive(Clone)]
pub struct NewsChannel {
    client: Client,
    handle: Handle,
    subject: String,
    sent: SentBytes,
}

/// A subscription to news. It ends when this value is dropped.
#[derive(Debug)]
pub struct NewsSubscription(JoinHandle<()>);

impl NewsChannel {
    pub(super) fn new(client: Client, handle: Handle, subject: String, sent: SentBytes) -> Self {
        Self { client, handle, subject, sent }
    }

    /// Sends news to all subscribers. Waits a short time for room in the queue to the servers, and drops the
    /// news if there is none.
    pub fn tell(&self, news: Bytes) {
        self.sent.count(news.len());
        let published = self.client.publish(self.subject.clone(), news);
        // The queue fills while there is no connection.
        let published = self.handle.block_on(async { tokio::time::timeout(PATIENCE, published).await });
        if !matches!(published, Ok(Ok(()))) {
            tracing::debug!(
                subject = self.subject,
                "news is dropped, because the queue to the log servers is full or closed"
            );
        }
    }

    /// Calls `hear` with all news from now on. `hear` runs on a thread of the runtime, which it must not
    /// block.
    #[must_use]
    pub fn listen(&self, hear: impl Fn(&[u8]) + Send + 'static) -> NewsSubscription {
        let (client, subject) = (self.client.clone(), self.subject.clone());
        NewsSubscription(self.handle.spawn(async move {
            loop {
                match client.subscribe(subject.clone()).await {
                    Ok(mut news) => {
                        while let Some(message) = news.next().await {
                            hear(&message.payload);
                        }
                    }
                    Err(error) => tracing::debug!(%error, subject, "cannot subscribe to news; trying again"),
                }
                tokio::time::sleep(PAUSE).await;
            }
        }))
    }
}

impl Drop for NewsSubscription {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl std::fmt::Debug for NewsChannel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NewsChannel").field("subject", &self.subject).finish_non_exhaustive()
    }
}
