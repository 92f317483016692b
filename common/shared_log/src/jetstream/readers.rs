//! Reports of a stream's readers, sent as news. The encoding is the length of the reader's name in one byte,
//! the name, and the report.

use std::sync::Arc;
use std::time::Duration;

use async_nats::Client;
use bytes::Bytes;
use tokio::runtime::Handle;

use super::news_channel::{NewsChannel, NewsSubscription};
use super::sent_bytes::SentBytes;
use crate::reports::Reports;

/// Sends and receives the reports of a stream's readers.
pub(super) struct Readers {
    channel: NewsChannel,
    reports: Arc<Reports>,
    _listening: NewsSubscription,
}

fn receive(reports: &Reports, news: &[u8]) {
    let reader = |news: &[u8]| {
        let (length, rest) = news.split_first()?;
        let (name, report) = rest.split_at_checked(usize::from(*length))?;
        Some((std::str::from_utf8(name).ok()?.to_owned(), Bytes::copy_from_slice(report)))
    };
    if let Some((reader, report)) = reader(news) {
        reports.put(&reader, report);
    }
}

impl Readers {
    pub(super) fn start(handle: &Handle, client: Client, stream: &str, sent: SentBytes) -> Self {
        let channel = NewsChannel::new(client, handle.clone(), format!("{stream}.readers"), sent);
        let reports = Arc::<Reports>::default();
        let listening = {
            let reports = Arc::clone(&reports);
            channel.listen(move |news| receive(&reports, news))
        };
        Self { channel, reports, _listening: listening }
    }

    pub(super) fn report(&self, reader: &str, report: &Bytes) {
        // Names of nodes are far shorter than 256 bytes.
        let Ok(length) = u8::try_from(reader.len()) else { return };
        let mut news = Vec::with_capacity(1 + reader.len() + report.len());
        news.push(length);
        news.extend_from_slice(reader.as_bytes());
        news.extend_from_slice(report);
        self.channel.tell(Bytes::from(news));
    }

    pub(super) fn wait(&self, limit: Duration, is_wanted: &dyn Fn(&str, &Bytes) -> bool) -> bool {
        self.reports.wait(limit, is_wanted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn malformed_reports_are_ignored() {
        let reports = Reports::default();
        for news in [&b""[..], b"\x05ab", b"\x02\xff\xffx"] {
            receive(&reports, news);
        }
        assert!(!reports.wait(Duration::ZERO, &|_, _| true));
        receive(&reports, b"\x02abrest");
        assert!(reports.wait(Duration::ZERO, &|reader, report| reader == "ab" && *report == b"rest"[..]));
    }
}
