//! Makes the signature of a page under a policy, from the features of the page.
//!
//! Signers must make equal signatures from equal features, in every process. Therefore the tables of a policy
//! never change for a collection.

use std::sync::Arc;

use super::{
    Policy, TOKENS_MIN, combined, content, copies, imatch, multi_simhash, overlap, projection, simhash,
    supershingle,
};
use crate::ContentHash;
use crate::signature::{Builder, Signature, SignatureKind};
use crate::stable_hash128;
use crate::tables::{Tables, TablesError, TermSample};

/// The features of a page from which policies make its signature.
#[derive(Debug, Clone, Copy, Default)]
pub struct Features<'f> {
    /// The hashes of the page's tokens ([`stable_hash64`](crate::stable_hash64) of each), in text order.
    pub tokens: &'f [u64],
    /// The hash of the page's site. Policies that [read the site](Policy::reads_site) need it.
    pub site: Option<u64>,
    /// The hashes of the page's terms, in text order: tokens without stop words, each reduced to its stem.
    /// Policies that [read terms](Policy::reads_terms) need them.
    pub terms: &'f [u64],
    /// The hashes of the tokens of the page's main content, in text order. `None` for plain text.
    ///
    /// Policies that [read the main content](Policy::reads_main) use it instead of `tokens`. For plain text
    /// they use `tokens`.
    pub main: Option<&'f [u64]>,
    /// The hashes of the page's lines, in text order. Policies that [read lines](Policy::reads_lines) need
    /// them.
    pub lines: &'f [u64],
}

/// Makes the signatures of a policy. A signer reuses its buffers from one signature to the next.
#[derive(Debug, Clone)]
pub struct Signer {
    policy: Policy,
    tables: Option<Arc<Tables>>,
    builder: Builder,
    scratch: Scratch,
    payload: Vec<u8>,
}

/// Buffers that the policies share.
#[derive(Debug, Clone, Default)]
struct Scratch {
    numbers: Vec<u64>,
    multi_simhash: multi_simhash::Scratch,
}

impl Signer {
    /// Creates a signer for a policy without tables.
    ///
    /// # Panics
    /// If the policy [reads tables](Policy::reads_tables). Use [`with_tables`](Self::with_tables) for such a
    /// policy.
    #[must_use]
    pub fn new(policy: Policy) -> Self {
        assert!(!policy.reads_tables(), "the policy {policy} needs tables: use Signer::with_tables");
        Self::of(policy, None)
    }

    /// Creates a signer for a policy that reads tables.
    ///
    /// # Errors
    /// If the tables were learnt for another policy, or if `policy` reads no tables.
    pub fn with_tables(policy: Policy, tables: Arc<Tables>) -> Result<Self, TablesError> {
        if !policy.reads_tables() {
            return Err(TablesError::NotNeeded(policy.name()));
        }
        if tables.policy() != policy.name() {
            let learnt_for = tables.policy().to_owned();
            return Err(TablesError::Policy { policy: policy.name(), learnt_for });
        }
        Ok(Self::of(policy, Some(tables)))
    }

    /// Creates a signer for any policy. If the policy reads tables, they are learnt from `contents`.
    ///
    /// Each item of `contents` holds the terms of one content.
    #[must_use]
    pub fn learnt<T: AsRef<[u64]>>(policy: Policy, contents: impl IntoIterator<Item = T>) -> Self {
        if !policy.reads_tables() {
            return Self::of(policy, None);
        }
        let (mut sample, mut builder) = (TermSample::new(), Builder::new());
        for terms in contents {
            let content = builder.content_of(terms.as_ref());
            sample.add(content, &mut terms.as_ref().to_vec());
        }
        Self::of(policy, Some(Arc::new(Tables::learn(policy.name(), &sample))))
    }

    fn of(policy: Policy, tables: Option<Arc<Tables>>) -> Self {
        let (builder, scratch, payload) = (Builder::new(), Scratch::default(), Vec::new());
        Self { policy, tables, builder, scratch, payload }
    }

    /// Creates a signer with the same policy and tables, but with empty buffers. Unlike `clone`, this copies
    /// no buffers.
    #[must_use]
    pub fn anew(&self) -> Self {
        Self::of(self.policy, self.tables.clone())
    }

    /// The policy of this signer.
    #[must_use]
    pub fn policy(&self) -> Policy {
        self.policy
    }

    /// The tables of the policy. `None` if it reads no tables.
    #[must_use]
    pub fn tables(&self) -> Option<&Arc<Tables>> {
        self.tables.as_ref()
    }

    /// Makes the signature of a page. Tokens after the first 2^32 - 1 are ignored; input limits keep real
    /// contents far below that.
    pub fn sign(&mut self, features: Features<'_>) -> Signature {
        let compared = features.main.filter(|_| self.policy.reads_main()).unwrap_or(features.tokens);
        let count = u32::try_from(compared.len()).unwrap_or(u32::MAX);
        let tokens = &compared[..count as usize];
        self.payload.clear();
        let (scratch, payload) = (&mut self.scratch, &mut self.payload);
        let numbers = &mut scratch.numbers;
        let kind = match (self.policy, self.tables.as_deref()) {
            (Policy::Jaccard { words, .. }, _) => return self.builder.build_of(words, tokens),
            (Policy::Supershingle { words, .. }, _) => {
                supershingle::sign(tokens, words, numbers, payload);
                SignatureKind::Supershingles
            }
            (Policy::Projection { .. }, _) => {
                projection::sign(tokens, payload);
                SignatureKind::Projection
            }
            (Policy::Combined { .. }, _) => {
                combined::sign(tokens, numbers, payload);
                SignatureKind::Combined
            }
            (Policy::BySite { .. }, _) => {
                combined::sign(tokens, numbers, payload);
                payload.extend(features.site.unwrap_or_default().to_le_bytes());
                SignatureKind::BySite
            }
            (Policy::Simhash { .. }, _) => {
                simhash::sign(tokens, numbers, payload);
                SignatureKind::Simhash
            }
            (Policy::Imatch { lexicons: random, idf_from, idf_to }, tables) => {
                let lexicons = imatch::Lexicons { random, idf_from, idf_to };
                // The constructors ensure that a policy that reads tables has them.
                let sign = |tables| imatch::sign(features.terms, lexicons, tables, numbers, payload);
                tables.into_iter().for_each(sign);
                SignatureKind::Imatch
            }
            (Policy::MultiSimhash { words, lexicons, .. }, tables) => {
                let scratch = &mut scratch.multi_simhash;
                let parameters = multi_simhash::SignParameters { words, lexicons };
                let sign = |tables| multi_simhash::sign(features.terms, parameters, tables, scratch, payload);
                tables.into_iter().for_each(sign);
                SignatureKind::MultiSimhash
            }
            (Policy::Content { .. }, _) => {
                content::sign(tokens, numbers, payload);
                SignatureKind::Content
            }
            (Policy::Copies { .. }, _) => {
                copies::sign(
                    tokens,
                    features.site.unwrap_or_default(),
                    features.main.is_none(),
                    numbers,
                    payload,
                );
                SignatureKind::Copies
            }
            (Policy::Overlap { lines, .. }, _) => {
                let text = self.builder.content(tokens);
                // A short text is compared only with its copies. It is the same content whatever its lines
                // are.
                overlap::sign(if count < TOKENS_MIN { &[] } else { features.lines }, lines, numbers);
                let content = ContentHash(overlap::content_hash(text, numbers));
                return self.builder.with_payload(
                    SignatureKind::Overlap,
                    content,
                    (count, count),
                    &text,
                    numbers,
                );
            }
        };
        let mut content = self.builder.content(tokens);
        if self.policy.reads_site() {
            // Copies on two sites are two contents.
            let site = features.site.unwrap_or_default().to_be_bytes();
            let form: &[u8] =
                if kind == SignatureKind::Copies { copies::form_byte(features.main.is_none()) } else { &[] };
            content = stable_hash128(&[&content[..], &site, form].concat()).to_be_bytes();
        }
        let hashes = &mut self.scratch.numbers;
        let size = if kind.is_of_shingles() { hashes.len() as u32 } else { count };
        if !kind.is_of_shingles() {
            hashes.clear();
        }
        self.builder.with_payload(kind, ContentHash(content), (count, size), &self.payload, hashes)
    }
}
