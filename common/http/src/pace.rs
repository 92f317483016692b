//! How slowly a client may take what it has asked for.
//!
//! A connection has some time to spend on waiting for its client. What the client takes earns time, at a rate, up to what it began
//! with. So a client that takes nothing is left after that time, and one that goes on taking less than the rate is left in the end,
//! however steadily it does so. Only waiting costs: an answer that is still being made costs nothing.
//!
//! What a client has taken is only known from the room that it leaves in the system's buffer, so that has to be told often:
//! [`hold_little`].

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, sleep_until};

/// Bytes of an answer that the system may hold of a connection and has not sent. It tells that there is room again when half of them
/// are sent, which takes 16 s at 4 KiB a second. Without a bound it tells that when a third of a buffer of megabytes is free.
const NOT_SENT: u32 = 128 << 10;

/// Has the system hold little that is not sent, so that a client that takes its answer slowly is seen to take it.
pub(crate) fn hold_little(stream: &TcpStream) -> io::Result<()> {
    SockRef::from(stream).set_tcp_notsent_lowat(NOT_SENT)
}

/// What a client may take its time for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    /// The longest that it may take nothing.
    pub(crate) pause: Duration,
    /// Bytes a second that it has to take, on average over such a time.
    pub(crate) rate: u32,
}

/// A stream to a client that has to keep a pace.
#[derive(Debug)]
pub(crate) struct Paced<S> {
    stream: S,
    pace: Pace,
    /// What may still be spent.
    left: Duration,
    /// Since when the client has been waited for.
    waits: Option<Instant>,
    end: Pin<Box<Sleep>>,
}

impl<S> Paced<S> {
    /// Has to be made within a runtime.
    pub(crate) fn new(stream: S, pace: Pace) -> Self {
        let end = Box::pin(sleep_until(Instant::now()));
        Self { stream, pace, left: pace.pause, waits: None, end }
    }

    /// The outcome of a write: what it costs, or earns, and the end of the client's time.
    fn settle(&mut self, cx: &mut Context<'_>, wrote: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if let Poll::Ready(wrote) = wrote {
            if let Some(since) = self.waits.take() {
                self.left = self.left.saturating_sub(since.elapsed());
            }
            let earned = wrote.as_ref().map_or(0.0, |bytes| *bytes as f64 / f64::from(self.pace.rate));
            let earned = Duration::try_from_secs_f64(earned).unwrap_or(self.pace.pause);
            self.left = self.left.saturating_add(earned).min(self.pace.pause);
            return Poll::Ready(wrote);
        }
        if self.waits.is_none() {
            let now = Instant::now();
            self.waits = Some(now);
            self.end.as_mut().reset(now + self.left);
        }
        ready!(self.end.as_mut().poll(cx));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client takes its answer too slowly")))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Paced<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Paced<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let wrote = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.settle(cx, wrote)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let wrote = Pin::new(&mut self.stream).poll_write_vectored(cx, bytes);
        self.settle(cx, wrote)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};
    use tokio::net::TcpListener;
    use tokio::time::sleep;

    use super::*;

    const PACE: Pace = Pace { pause: Duration::from_millis(500), rate: 10_000 };

    /// Writes so many bytes to a client, through little room between them; gives the outcome and how long it took.
    async fn write(bytes: usize, client: impl AsyncFnOnce(DuplexStream)) -> (io::Result<()>, Duration) {
        let (own, other) = duplex(100);
        let begin = Instant::now();
        let writing = async {
            let mut paced = Paced::new(own, PACE);
            let wrote = paced.write_all(&vec![b'x'; bytes]).await;
            (wrote, begin.elapsed())
        };
        tokio::join!(writing, client(other)).0
    }

    /// Reads `bytes` at a time, with a pause, until nothing comes.
    async fn reads(mut stream: DuplexStream, bytes: usize, pause: Duration) {
        let mut read = vec![0; bytes];
        while stream.read(&mut read).await.is_ok_and(|read| read > 0) {
            sleep(pause).await;
        }
    }

    #[tokio::test]
    async fn a_client_that_takes_nothing_is_left_after_the_pause() {
        let (wrote, took) = write(1_000, async |other| {
            sleep(PACE.pause * 4).await;
            drop(other);
        })
        .await;
        assert_eq!(wrote.unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert!(took >= PACE.pause && took < PACE.pause * 3, "{took:?}");
    }

    #[tokio::test]
    async fn a_client_that_takes_little_at_a_time_is_left_and_a_quick_one_is_not() {
        // A fifth of the rate: never a pause, and it would take five seconds.
        let slow = write(10_000, async |other| reads(other, 20, Duration::from_millis(10)).await).await;
        assert_eq!(slow.0.unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert!(slow.1 < Duration::from_secs(3), "{:?}", slow.1);
        // What was earned lasts for a pause.
        let (wrote, took) = write(10_000, async |mut other| {
            let mut some = [0; 4_000];
            other.read_exact(&mut some).await.unwrap();
            sleep(PACE.pause / 2).await;
            reads(other, 100, Duration::ZERO).await;
        })
        .await;
        wrote.unwrap();
        assert!(took >= PACE.pause / 2);
    }

    #[tokio::test]
    async fn over_a_network_a_client_that_takes_more_than_the_rate_gets_all() {
        const PACE: Pace = Pace { pause: Duration::from_secs(1), rate: 200_000 };
        const BYTES: usize = 12 << 20;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (accepted, client) = tokio::join!(listener.accept(), TcpStream::connect(address));
        let (own, mut client) = (accepted.unwrap().0, client.unwrap());
        hold_little(&own).unwrap();
        let writing = async {
            let mut paced = Paced::new(own, PACE);
            paced.write_all(&vec![b'x'; BYTES]).await
        };
        let reading = async {
            let (begin, mut some, mut read) = (Instant::now(), vec![0; 4 << 10], 0);
            while read < BYTES {
                // Half as much again as the rate for several times the pause, and then the rest.
                let (spent, due) = (begin.elapsed(), Duration::from_secs_f64(read as f64 / 300_000.0));
                if spent < PACE.pause * 5 {
                    sleep(due.saturating_sub(spent)).await;
                }
                match client.read(&mut some).await {
                    Ok(bytes) if bytes > 0 => read += bytes,
                    _ => break,
                }
            }
            read
        };
        let (wrote, read) = tokio::join!(writing, reading);
        wrote.unwrap();
        assert_eq!(read, BYTES);
    }
}
