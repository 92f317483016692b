//! Streams answers that are written while they are sent. A thread writes the answer at the speed of the
//! connection.

use std::fmt::Display;
use std::io::{self, Write};
use std::time::Duration;

use axum::body::{Body, Bytes};
use futures_util::stream::try_unfold;
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::SendTimeoutError;
use tokio::time::Instant;
use tracing::Span;

use crate::limits::PIECE_BYTES;

/// Number of pieces that can wait between the writing thread and the connection.
const PIECES: usize = 4;

/// Returns a body that `write` produces on a thread of its own. The thread holds `permit` until it ends.
///
/// If `write` fails, or takes longer than `within`, the answer breaks off in a way that shows the client that
/// it is incomplete.
pub(crate) fn stream<E: Display>(
    permit: impl Send + 'static,
    (what, within): (&'static str, Option<Duration>),
    write: impl FnOnce(&mut dyn Write) -> Result<(), E> + Send + 'static,
) -> Body {
    let (sender, receiver) = mpsc::channel(PIECES);
    let span = Span::current();
    let limit = within.map(|within| (Handle::current(), Instant::now() + within));
    tokio::task::spawn_blocking(move || {
        let _permit = permit;
        let _span = span.entered();
        let mut pieces = PieceWriter { sender, limit, buffer: Vec::with_capacity(PIECE_BYTES) };
        let written = write(&mut pieces).map_err(|error| error.to_string());
        match written.and_then(|()| pieces.flush().map_err(|error| error.to_string())) {
            Ok(()) => drop(pieces.send(StreamPiece::End)),
            Err(error) => tracing::warn!(error, what, "an answer broke off and is incomplete"),
        }
    });
    Body::from_stream(try_unfold(receiver, |mut receiver| async move {
        match receiver.recv().await {
            Some(StreamPiece::Bytes(bytes)) => Ok(Some((bytes, receiver))),
            Some(StreamPiece::End) => Ok(None),
            // If the end is missing, the part sent so far must not look like a complete answer.
            None => Err(io::Error::other("the answer is incomplete")),
        }
    }))
}

enum StreamPiece {
    Bytes(Bytes),
    End,
}

/// Writer that sends its bytes in pieces at the speed of the connection. The connection ends if the client
/// stops reading.
struct PieceWriter {
    sender: mpsc::Sender<StreamPiece>,
    /// Time by which the answer must be sent, and the runtime whose clock counts.
    limit: Option<(Handle, Instant)>,
    buffer: Vec<u8>,
}

impl PieceWriter {
    fn send(&self, piece: StreamPiece) -> io::Result<()> {
        let gone = || io::Error::new(io::ErrorKind::BrokenPipe, "the client has disconnected");
        let Some((runtime, end)) = &self.limit else {
            return self.sender.blocking_send(piece).map_err(|_| gone());
        };
        let left = end.saturating_duration_since(Instant::now());
        runtime.block_on(self.sender.send_timeout(piece, left)).map_err(|error| match error {
            SendTimeoutError::Timeout(_) => {
                io::Error::new(io::ErrorKind::TimedOut, "the client reads the answer too slowly")
            }
            SendTimeoutError::Closed(_) => gone(),
        })
    }
}

impl Write for PieceWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.buffer.is_empty() && self.buffer.len() + bytes.len() > PIECE_BYTES {
            self.flush()?;
        }
        self.buffer.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let full = std::mem::replace(&mut self.buffer, Vec::with_capacity(PIECE_BYTES));
        self.send(StreamPiece::Bytes(full.into()))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    /// Writes more pieces than fit between the thread and the connection.
    fn write(out: &mut dyn Write) -> io::Result<()> {
        (0..PIECES * 4).try_for_each(|_| out.write_all(&[b'x'; PIECE_BYTES]))
    }

    #[tokio::test]
    async fn a_client_that_does_not_read_loses_its_permit_after_the_time_limit() {
        let place = Arc::new(());
        let body = stream(Arc::clone(&place), ("test", Some(Duration::from_millis(50))), write);
        let returned = async {
            while Arc::strong_count(&place) > 1 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), returned).await.unwrap();
        assert!(axum::body::to_bytes(body, usize::MAX).await.is_err(), "the answer looks complete");

        let in_time = stream((), ("test", Some(Duration::from_secs(60))), write);
        assert_eq!(axum::body::to_bytes(in_time, usize::MAX).await.unwrap().len(), PIECES * 4 * PIECE_BYTES);
    }
}
