//! A backup that is read in another process.
//!
//! The answer is a stream of pieces, each with its length in 4 bytes before it. It advances as it is read: a slow reader holds
//! back the backup alone. A stream that ends without [`BackupPiece::End`] was broken off.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf as _, Bytes, BytesMut};
use doppel_protocol::{BACKUP_PIECE_BYTES, BackupError, BackupPiece, BackupStream, Tier1Api, Tier1Error};

use crate::call::calls;
use crate::listener::Listener;
use crate::peer::{Peer, Reading};

/// A piece as it is sent: what a process cannot tell in another's words it tells in text.
type Sent = Result<BackupPiece, String>;

/// The longest piece, in bytes.
const PIECE_BYTES_MAX: usize = BACKUP_PIECE_BYTES + 1_024;

calls! {
    Backup = "tier1/backup": () => ()
        { REPEATABLE: bool = false, DEADLINE: Duration = Duration::from_secs(120) };
}

/// Adds the call to a listener.
pub(crate) fn serve(listener: Listener, tier1: &Arc<dyn Tier1Api>) -> Listener {
    let tier1 = Arc::clone(tier1);
    serve_from(listener, move || tier1.backup())
}

/// The same with the backups of another source.
pub(crate) fn serve_from(
    listener: Listener,
    begin: impl Fn() -> Result<BackupStream, BackupError> + Send + Sync + 'static,
) -> Listener {
    listener.stream::<Backup>(move || match begin() {
        Ok(pieces) => Box::new(pieces.map(|piece| frame(&piece.map_err(|error| error.to_string())))),
        Err(error) => Box::new(std::iter::once(frame(&Err(error.to_string())))),
    })
}

fn frame(piece: &Sent) -> Bytes {
    let body = postcard::to_allocvec(piece).unwrap_or_default();
    let mut framed = BytesMut::with_capacity(4 + body.len());
    framed.extend_from_slice(&(body.len() as u32).to_le_bytes());
    framed.extend_from_slice(&body);
    framed.freeze()
}

/// Begins a backup.
pub(crate) fn begin(peer: &Peer) -> Result<BackupStream, BackupError> {
    let reading = peer.stream::<Backup>(&()).map_err(Tier1Error::from)?;
    Ok(Box::new(Pieces { reading: Some(reading), unread: BytesMut::new() }))
}

struct Pieces {
    /// None at the end.
    reading: Option<Reading>,
    unread: BytesMut,
}

impl Pieces {
    /// A piece that has come as a whole.
    fn take(&mut self) -> Result<Option<BackupPiece>, BackupError> {
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
        match postcard::from_bytes::<Sent>(&body) {
            Ok(Ok(piece)) => Ok(Some(piece)),
            Ok(Err(reason)) => Err(Tier1Error::Unavailable(reason).into()),
            Err(_) => Err(BackupError::BrokenOff),
        }
    }

    fn read(&mut self) -> Result<Option<BackupPiece>, BackupError> {
        loop {
            if let Some(piece) = self.take()? {
                return Ok(Some(piece));
            }
            let Some(reading) = &mut self.reading else { return Ok(None) };
            match reading.chunk() {
                Ok(Some(chunk)) => self.unread.extend_from_slice(&chunk),
                Ok(None) => return Err(BackupError::BrokenOff),
                Err(error) => return Err(Tier1Error::from(error).into()),
            }
        }
    }
}

impl Iterator for Pieces {
    type Item = Result<BackupPiece, BackupError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.reading.as_ref()?;
        let piece = self.read().transpose();
        if !matches!(piece, Some(Ok(BackupPiece::Bytes(_)))) {
            self.reading = None;
        }
        piece
    }
}
