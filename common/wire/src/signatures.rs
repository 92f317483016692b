//! The signatures of tier 1 as another process reads them.

use std::sync::Arc;
use std::time::Duration;

use doppel_model::PageId;
use doppel_model::signature::Signature;
use doppel_protocol::{SIGNATURES_MAX, SignatureSource, SourceError};

use crate::call::calls;
use crate::listener::Listener;
use crate::peer::{Peer, WireError};

/// The approximate size from which on an answer ends, in bytes. It has one signature at least.
const PIECE_BYTES: usize = 16 << 20;

/// Calls at once: each holds a piece of signatures.
const CALLS: usize = 16;

calls! {
    /// The signatures of the first pages, at least of one.
    Signatures = "tier1/signatures": Vec<PageId> => Result<Vec<Option<Arc<Signature>>>, SourceError>
        {
            // Above the largest page, whose signature comes alone.
            ANSWER_BYTES_MAX: usize = 96 << 20,
            DEADLINE: Duration = Duration::from_secs(60),
        };
}

/// The signatures that a tier-1 node in another process has.
#[derive(Debug, Clone)]
pub struct RemoteSignatures(Peer);

impl RemoteSignatures {
    /// Those of the node that answers there.
    #[must_use]
    pub fn new(peer: Peer) -> Self {
        Self(peer)
    }
}

impl SignatureSource for RemoteSignatures {
    fn signatures(&self, pages: &[PageId]) -> Result<Vec<Option<Arc<Signature>>>, SourceError> {
        let pages = &pages[..pages.len().min(SIGNATURES_MAX)];
        let mut signatures: Vec<Option<Arc<Signature>>> = Vec::with_capacity(pages.len());
        while let Some(left) = pages.get(signatures.len()..).filter(|left| !left.is_empty()) {
            let piece = self.0.call::<Signatures>(&left.to_vec())??;
            if piece.is_empty() || piece.len() > left.len() {
                let reason = format!("{} signatures for {} pages", piece.len(), left.len());
                return Err(SourceError::Unavailable(reason));
            }
            signatures.extend(piece);
        }
        Ok(signatures)
    }
}

impl From<WireError> for SourceError {
    fn from(error: WireError) -> Self {
        Self::Unavailable(error.to_string())
    }
}

/// Adds the calls to a listener.
#[must_use]
pub fn serve(listener: Listener, source: &Arc<dyn SignatureSource>) -> Listener {
    let source = Arc::clone(source);
    listener.at_once(CALLS).answer::<Signatures>(move |pages| first(&*source, &pages))
}

fn first(source: &dyn SignatureSource, pages: &[PageId]) -> Result<Vec<Option<Arc<Signature>>>, SourceError> {
    let mut bytes = 0;
    let mut found = source.signatures(pages)?;
    let fits = found.iter().take_while(|signature| {
        let before = bytes;
        bytes += signature.as_ref().map_or(0, |signature| signature.as_bytes().len());
        before < PIECE_BYTES
    });
    let count = fits.count();
    found.truncate(count);
    Ok(found)
}
