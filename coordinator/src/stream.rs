//! Answers that are written while they are sent: a thread writes, at the pace of the connection.

use std::fmt::Display;
use std::io::{self, Write};

use axum::body::{Body, Bytes};
use futures_util::stream::try_unfold;
use tokio::sync::mpsc;
use tracing::Span;

use crate::limits::PIECE_BYTES;

/// Pieces between the thread and the connection.
const PIECES: usize = 4;

/// The body that `write` writes on a thread of its own, which holds `permit` until it ends. An answer that
/// fails on the way breaks off: the client is told that it is incomplete.
pub(crate) fn stream<E: Display>(
    permit: impl Send + 'static,
    what: &'static str,
    write: impl FnOnce(&mut dyn Write) -> Result<(), E> + Send + 'static,
) -> Body {
    let (sender, receiver) = mpsc::channel(PIECES);
    let span = Span::current();
    tokio::task::spawn_blocking(move || {
        let _permit = permit;
        let _span = span.entered();
        let mut pieces = Pieces { sender, buffer: Vec::with_capacity(PIECE_BYTES) };
        let written = write(&mut pieces).map_err(|error| error.to_string());
        match written.and_then(|()| pieces.flush().map_err(|error| error.to_string())) {
            Ok(()) => drop(pieces.send(Piece::End)),
            Err(error) => tracing::warn!(error, what, "an answer broke off"),
        }
    });
    Body::from_stream(try_unfold(receiver, |mut receiver| async move {
        match receiver.recv().await {
            Some(Piece::Bytes(bytes)) => Ok(Some((bytes, receiver))),
            Some(Piece::End) => Ok(None),
            // Without an end what was sent so far must not look like all there is.
            None => Err(io::Error::other("the answer broke off")),
        }
    }))
}

enum Piece {
    Bytes(Bytes),
    End,
}

/// Sends what is written to it in pieces, at the pace of the connection, which ends when the client does
/// not read.
struct Pieces {
    sender: mpsc::Sender<Piece>,
    buffer: Vec<u8>,
}

impl Pieces {
    fn send(&self, piece: Piece) -> io::Result<()> {
        let gone = |_| io::Error::new(io::ErrorKind::BrokenPipe, "the client has gone");
        self.sender.blocking_send(piece).map_err(gone)
    }
}

impl Write for Pieces {
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
        self.send(Piece::Bytes(full.into()))
    }
}
