//! Features of a page to its signature under a policy.

use super::{Policy, combined, content, copies, projection, simhash, supershingle};
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
    /// The hashes of the tokens of its main content; none where the page is plain text, and is compared as it is. Policies that
    /// [read it](Policy::reads_main) need it, and look at `tokens` only where there is none.
    pub main: Option<&'f [u64]>,
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
        let compared = features.main.filter(|_| self.policy.reads_main()).unwrap_or(features.tokens);
        let count = u32::try_from(compared.len()).unwrap_or(u32::MAX);
        let tokens = &compared[..count as usize];
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
            Policy::Content { .. } => {
                content::sign(tokens, scratch, payload);
                Kind::Content
            }
            Policy::Copies { .. } => {
                copies::sign(
                    tokens,
                    features.site.unwrap_or_default(),
                    features.main.is_none(),
                    scratch,
                    payload,
                );
                Kind::Copies
            }
        };
        let mut content = self.builder.content(tokens);
        if self.policy.reads_site() {
            // Copies on two sites are two contents.
            let site = features.site.unwrap_or_default().to_be_bytes();
            let form: &[u8] = if kind == Kind::Copies { copies::form(features.main.is_none()) } else { &[] };
            content = stable_hash128(&[&content[..], &site, form].concat()).to_be_bytes();
        }
        let hashes = &mut self.scratch;
        let size = if kind.is_of_shingles() { hashes.len() as u32 } else { count };
        if !kind.is_of_shingles() {
            hashes.clear();
        }
        self.builder.with_payload(kind, ContentHash(content), (count, size), &self.payload, hashes)
    }
}
