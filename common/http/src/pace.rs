//! Closes connections of clients that read their answers too slowly.
//!
//! Each connection has a time budget for waiting until its client reads. Every byte that the client reads
//! earns time at a fixed rate, up to the initial budget. A client that reads nothing is therefore
//! disconnected after the initial budget. A client that reads steadily, but more slowly than the rate, is
//! disconnected eventually. Only waiting costs time: an answer that the server is still computing costs
//! nothing.
//!
//! The server cannot see what a client reads. It only sees free room in the operating system's send buffer.
//! [`limit_unsent`] keeps that buffer small, so that the operating system reports free room often.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, sleep_until};

/// Bytes of an answer that the operating system may buffer before it sends them. The operating system reports
/// free room once it has sent half of them, which takes 16 s at 4 KiB a second. Without this limit it reports
/// free room only when a third of a buffer of several megabytes is free.
const UNSENT_MAX: u32 = 128 << 10;

/// Limits the unsent bytes in the operating system's buffer, so that even slow reading by the client becomes
/// visible.
pub(crate) fn limit_unsent(stream: &TcpStream) -> io::Result<()> {
    SockRef::from(stream).set_tcp_notsent_lowat(UNSENT_MAX)
}

/// The limits for how slowly a client may read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    /// The longest time for which the client may read nothing.
    pub(crate) pause: Duration,
    /// Slowest rate, in bytes per second, at which the client may read in the long run.
    pub(crate) rate: u32,
}

/// A stream whose writes fail with [`io::ErrorKind::TimedOut`] when its client falls behind the [`Pace`].
#[derive(Debug)]
pub(crate) struct PacedStream<S> {
    stream: S,
    pace: Pace,
    /// Time that the server will still wait for the client. Bytes that the client reads add time, up to
    /// [`Pace::pause`].
    remaining: Duration,
    /// Start of the current wait for the client. `None` while the client keeps up.
    waiting_since: Option<Instant>,
    /// Fires when the client has no time left in the current wait.
    deadline: Pin<Box<Sleep>>,
}

impl<S> PacedStream<S> {
    /// Wraps `stream`. Must be called within a Tokio runtime, because it creates a timer.
    pub(crate) fn new(stream: S, pace: Pace) -> Self {
        let deadline = Box::pin(sleep_until(Instant::now()));
        Self { stream, pace, remaining: pace.pause, waiting_since: None, deadline }
    }

    /// Charges the time of a pending write, and credits the bytes of a finished write. Returns the result of
    /// the write, or an error when the client has no time left.
    fn charge(&mut self, cx: &mut Context<'_>, wrote: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if let Poll::Ready(wrote) = wrote {
            if let Some(since) = self.waiting_since.take() {
                self.remaining = self.remaining.saturating_sub(since.elapsed());
            }
            let earned = wrote.as_ref().map_or(0.0, |bytes| *bytes as f64 / f64::from(self.pace.rate));
            let earned = Duration::try_from_secs_f64(earned).unwrap_or(self.pace.pause);
            self.remaining = self.remaining.saturating_add(earned).min(self.pace.pause);
            return Poll::Ready(wrote);
        }
        if self.waiting_since.is_none() {
            let now = Instant::now();
            self.waiting_since = Some(now);
            self.deadline.as_mut().reset(now + self.remaining);
        }
        ready!(self.deadline.as_mut().poll(cx));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client reads its answer too slowly")))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for PacedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for PacedStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let wrote = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.charge(cx, wrote)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let wrote = Pin::new(&mut self.stream).poll_write_vectored(cx, bytes);
        self.charge(cx, wrote)
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

    /// Writes `bytes` bytes to a client through a buffer of 100 bytes. Returns the outcome and how long it
    /// took.
    async fn write(bytes: usize, client: impl AsyncFnOnce(DuplexStream)) -> (io::Result<()>, Duration) {
        let (own, other) = duplex(100);
        let begin = Instant::now();
        let writing = async {
            let mut paced = PacedStream::new(own, PACE);
            let wrote = paced.write_all(&vec![b'x'; bytes]).await;
            (wrote, begin.elapsed())
        };
        tokio::join!(writing, client(other)).0
    }

    /// Reads `bytes` bytes at a time, with a pause after each read, until the stream ends.
    async fn reads(mut stream: DuplexStream, bytes: usize, pause: Duration) {
        let mut read = vec![0; bytes];
        while stream.read(&mut read).await.is_ok_and(|read| read > 0) {
            sleep(pause).await;
        }
    }

    #[tokio::test]
    async fn a_client_that_reads_nothing_is_disconnected_after_the_pause() {
        let (wrote, took) = write(1_000, async |other| {
            sleep(PACE.pause * 4).await;
            drop(other);
        })
        .await;
        assert_eq!(wrote.unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert!(took >= PACE.pause && took < PACE.pause * 3, "{took:?}");
    }

    #[tokio::test]
    async fn a_slow_steady_client_is_disconnected_and_a_quick_client_is_not() {
        // A fifth of the rate. The client never pauses, and reading everything would take five seconds.
        let slow = write(10_000, async |other| reads(other, 20, Duration::from_millis(10)).await).await;
        assert_eq!(slow.0.unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert!(slow.1 < Duration::from_secs(3), "{:?}", slow.1);
        // The time that a client earns by quick reading lets it pause later.
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
    async fn over_a_network_a_client_that_reads_faster_than_the_rate_gets_the_whole_answer() {
        const PACE: Pace = Pace { pause: Duration::from_secs(1), rate: 200_000 };
        const BYTES: usize = 12 << 20;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (accepted, client) = tokio::join!(listener.accept(), TcpStream::connect(address));
        let (own, mut client) = (accepted.unwrap().0, client.unwrap());
        limit_unsent(&own).unwrap();
        let writing = async {
            let mut paced = PacedStream::new(own, PACE);
            paced.write_all(&vec![b'x'; BYTES]).await
        };
        let reading = async {
            let (begin, mut some, mut read) = (Instant::now(), vec![0; 4 << 10], 0);
            while read < BYTES {
                // Read at 1.5 times the rate for several times the pause, and then everything else at full
                // speed.
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
