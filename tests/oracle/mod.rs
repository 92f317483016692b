//! The oracle: what the duplicate groups of a crawl must be, worked out the plain way.
//!
//! It shares no code with the product: it has its own WARC reader, its own HTML parser (html5ever),
//! its own tokens, exact shingle sets (ids of five interned words, no hashes that could collide)
//! and an exact all-pairs join. It starts from the newest fetch of every URL and knows no order,
//! no sketch and no partition, so it can only be right or wrong, never early or late.
#![allow(dead_code, reason = "a shared test module: each test binary uses its own part of it")]

pub(crate) mod collection;
pub(crate) mod crawl;
pub(crate) mod html;
pub(crate) mod join;
pub(crate) mod redirect;
pub(crate) mod tau;
pub(crate) mod tokens;
pub(crate) mod truth;
pub(crate) mod warc;

pub(crate) use collection::{Collection, Resolution};
pub(crate) use crawl::Crawl;
pub(crate) use tau::Tau;
pub(crate) use truth::Truth;

/// Words in a shingle (k).
pub(crate) const SHINGLE_WORDS: usize = 5;
/// Pages with fewer tokens are duplicates by equal content or redirect only.
pub(crate) const MIN_TOKENS: usize = 20;
/// Most redirects followed from one page.
pub(crate) const MAX_HOPS: usize = 20;
