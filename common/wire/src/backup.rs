//! Reads a backup from another process.
//!
//! The answer is a stream of pieces, each preceded by its length in 4 bytes. The stream advances as the
//! reader consumes it, so a slow reader delays only the backup. A stream that ends without
//! [`BackupPiece::End`] is incomplete.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf as _, Bytes, BytesMut};
use doppel_protocol::{BACKUP_PIECE_BYTES, BackupError, BackupPiece, BackupStream, Tier1Api, Tier1Error};

use crate::transport::call::calls;
use crate::transport::listener::CallListener;
use crate::transport::peer::{AnswerStream, Peer};

/// A piece of the stream. An error is sent as text, because other processes may not know its type.
type WirePiece = Result<BackupPiece, String>;

/// Maximum length of an encoded piece in bytes.
const PIECE_BYTES_MAX: usize = BACKUP_PIECE_BYTES + 1_024;

calls! {
    Backup = "tier1/backup": () => ()
        { REPEATABLE: bool = false, DEADLINE: Duration = Duration::from_secs(120) };
}

/// Adds the backup call to a listener.
pub(crate) fn serve(listener: CallListener, tier1: &Arc<dyn Tier1Api>) -> CallListener {
    let tier1 = Arc::clone(tier1);
    serve_from(listener, move || tier1.backup())
}

/// Like [`serve`], but with a function that begins a backup of any source.
pub(crate) fn serve_from(
    listener: CallListener,
    begin: impl Fn() -> Result<BackupStream, BackupError> + Send + Sync + 'static,
) -> CallListener {
    listener.stream::<Backup>(move || match begin() {
        Ok(pieces) => Box::new(pieces.map(|piece| frame(&piece.map_err(|error| error.to_string())))),
        Err(error) => Box::new(std::iter::once(frame(&Err(error.to_string())))),
    })
}

fn frame(piece: &WirePiece) -> Bytes {
    let body = postcard::to_allocvec(piece).unwrap_or_default();
    let mut framed = BytesMut::with_capacity(4 + body.len());
    framed.extend_from_slice(&(body.len() as u32).to_le_bytes());
    framed.extend_from_slice(&body);
    framed.freeze()
}

/// Begins a backup on another node.
pub(crate) fn begin(peer: &Peer) -> Result<BackupStream, BackupError> {
    let stream = peer.stream::<Backup>(&()).map_err(Tier1Error::from)?;
    Ok(Box::new(RemoteBackup { stream: Some(stream), unread: BytesMut::new() }))
}

struct RemoteBackup {
    /// `None` after the end of the stream.
    stream: Option<AnswerStream>,
    unread: BytesMut,
}

impl RemoteBackup {
    /// Decodes the next piece if it has arrived completely.
    fn next_buffered(&mut self) -> Result<Option<BackupPiece>, BackupError> {
        let Some(length) = self.unread.first_chunk() else { return Ok(None) };
        let length = u32::from_le_bytes(*length) as usize;
        if length > PIECE_BYTES_MAX {
            return Err(BackupError::BrokenOff);
        }
        if self.unread.len() < 4 + length {
            return Ok(None);
        }
        self.unread.advance(4);
        let body = self.unread.split_to(length);
        match postcard::from_bytes::<WirePiece>(&body) {
            Ok(Ok(piece)) => Ok(Some(piece)),
            Ok(Err(reason)) => Err(Tier1Error::Unavailable(reason).into()),
            Err(_) => Err(BackupError::BrokenOff),
        }
    }

    fn read(&mut self) -> Result<Option<BackupPiece>, BackupError> {
        loop {
            if let Some(piece) = self.next_buffered()? {
                return Ok(Some(piece));
            }
            let Some(stream) = &mut self.stream else { return Ok(None) };
            match stream.chunk() {
                Ok(Some(chunk)) => self.unread.extend_from_slice(&chunk),
                Ok(None) => return Err(BackupError::BrokenOff),
                Err(error) => return Err(Tier1Error::from(error).into()),
            }
        }
    }
}

impl Iterator for RemoteBackup {
    type Item = Result<BackupPiece, BackupError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.stream.as_ref()?;
        let piece = self.read().transpose();
        if !matches!(piece, Some(Ok(BackupPiece::Bytes(_)))) {
            self.stream = None;
        }
        piece
    }
}
