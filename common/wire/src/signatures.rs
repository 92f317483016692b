//! Calls that read the signatures of tier 1 from another process.

use std::sync::Arc;
use std::time::Duration;

use doppel_model::PageId;
use doppel_model::signature::Signature;
use doppel_protocol::{SIGNATURES_MAX, SignatureSource, SourceError};

use crate::transport::call::calls;
use crate::transport::listener::CallListener;
use crate::transport::peer::Peer;
use crate::transport::wire_error::WireError;

/// Approximate maximum size of an answer in bytes. An answer has at least one signature.
const PIECE_BYTES: usize = 16 << 20;

/// Number of concurrent calls. Each holds an answer with signatures in memory.
const CALLS: usize = 16;

calls! {
    /// Returns the signatures of the first pages, at least of one page.
    Signatures = "tier1/signatures": Vec<PageId> => Result<Vec<Option<Arc<Signature>>>, SourceError>
        {
            // Above the size of the largest signature, which is sent alone.
            ANSWER_BYTES_MAX: usize = 96 << 20,
            DEADLINE: Duration = Duration::from_secs(60),
        };
}

/// The signatures of a tier-1 node in another process.
#[derive(Debug, Clone)]
pub struct RemoteSignatures(Peer);

impl RemoteSignatures {
    /// Creates a client of the node that `peer` connects to.
    #[must_use]
    pub fn new(peer: Peer) -> Self {
        Self(peer)
    }
}

impl SignatureSource for RemoteSignatures {
    fn signatures(&self, pages: &[PageId]) -> Result<Vec<Option<Arc<Signature>>>, SourceError> {
        let pages = &pages[..pages.len().min(SIGNATURES_MAX)];
        let mut signatures: Vec<Option<Arc<Signature>>> = Vec::with_capacity(pages.len());
        while let Some(remaining) = pages.get(signatures.len()..).filter(|remaining| !remaining.is_empty()) {
            let piece = self.0.call::<Signatures>(&remaining.to_vec())??;
            if piece.is_empty() || piece.len() > remaining.len() {
                let reason =
                    format!("the node returned {} signatures for {} pages", piece.len(), remaining.len());
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

/// Adds the signatures call to a listener.
#[must_use]
pub fn serve(listener: CallListener, source: &Arc<dyn SignatureSource>) -> CallListener {
    let source = Arc::clone(source);
    listener.at_once(CALLS).answer::<Signatures>(move |pages| leading_signatures(&*source, &pages))
}

fn leading_signatures(
    source: &dyn SignatureSource,
    pages: &[PageId],
) -> Result<Vec<Option<Arc<Signature>>>, SourceError> {
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
