//! Features of a page to its signature under a policy.

use super::{Policy, TOKENS_MIN, combined, overlap, projection, simhash, supershingle};
use crate::ContentHash;
use crate::signature::{Builder, Kind, Signature};
use crate::stable_hash128;

/// What a policy is given of a page.
#[derive(Debug, Clone, Copy, Default)]
pub struct Features<'f> {
    /// The hashes of its tokens ([`stable_hash64`](crate::stable_hash64) of each), in text order.
    pub tokens: &'f [u64],
    /// The hash of its site. Policies that [read the site](Policy::reads_site) need it.
    pub site: Option<u64>,
    /// The hashes of its lines, in text order. Policies that [read lines](Policy::reads_lines) need them.
    pub lines: &'f [u64],
}

/// Makes the signatures of a policy. It reuses its buffers from one signature to the next.
#[derive(Debug)]
pub struct Signer {
    policy: Policy,
    builder: Builder,
    scratch: Vec<u64>,
    payload: Vec<u8>,
}

impl Signer {
    /// Creates a signer with empty buffers.
    #[must_use]
    pub fn new(policy: Policy) -> Self {
        Self { policy, builder: Builder::new(), scratch: Vec::new(), payload: Vec::new() }
    }

    /// The policy.
    #[must_use]
    pub fn policy(&self) -> Policy {
        self.policy
    }

    /// The signature of a page. Tokens after the first 2^32 - 1 are ignored; input limits keep real contents far below that.
    pub fn sign(&mut self, features: Features<'_>) -> Signature {
        let count = u32::try_from(features.tokens.len()).unwrap_or(u32::MAX);
        let tokens = &features.tokens[..count as usize];
        self.payload.clear();
        let (scratch, payload) = (&mut self.scratch, &mut self.payload);
        let kind = match self.policy {
            Policy::Jaccard { .. } => return self.builder.build(tokens),
            Policy::Supershingle { .. } => {
                supershingle::sign(tokens, scratch, payload);
                Kind::Supershingles
            }
            Policy::Projection { .. } => {
                projection::sign(tokens, payload);
                Kind::Projection
            }
            Policy::Combined { .. } => {
                combined::sign(tokens, scratch, payload);
                Kind::Combined
            }
            Policy::BySite { .. } => {
                combined::sign(tokens, scratch, payload);
                payload.extend(features.site.unwrap_or_default().to_le_bytes());
                Kind::BySite
            }
            Policy::Simhash { .. } => {
                simhash::sign(tokens, scratch, payload);
                Kind::Simhash
            }
            Policy::Overlap { lines, .. } => {
                let text = self.builder.content(tokens);
                // A text that is compared with its copies alone is one content, whatever its lines are.
                overlap::sign(if count < TOKENS_MIN { &[] } else { features.lines }, lines, scratch);
                let content = ContentHash(overlap::content(text, scratch));
                return self.builder.with_payload(Kind::Overlap, content, (count, count), &text, scratch);
            }
        };
        let mut content = self.builder.content(tokens);
        if self.policy.reads_site() {
            // Copies on two sites are two contents.
            let site = features.site.unwrap_or_default().to_be_bytes();
            content = stable_hash128(&[&content[..], &site].concat()).to_be_bytes();
        }
        self.builder.with_payload(kind, ContentHash(content), (count, count), &self.payload, &mut Vec::new())
    }
}
