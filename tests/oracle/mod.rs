//! The oracle: computes the correct duplicate groups of a crawl in the most direct way.
//!
//! The oracle shares no code with the product. It has its own WARC reader and its own HTML parser
//! (html5ever). Tokens, exact shingle sets, the exact join of all pairs and components come from the crate
//! `doppel-baseline`, which depends on no other crate of the workspace. The oracle starts from the newest
//! fetch of every URL and knows no order, no sketch and no partition. It can therefore only be right or wrong,
//! never early or late.
#![allow(dead_code, reason = "a shared test module: each test binary uses its own part of it")]

pub(crate) mod collection;
pub(crate) mod cover;
pub(crate) mod crawl;
pub(crate) mod dom;
pub(crate) mod html;
pub(crate) mod redirect;
pub(crate) mod script;
pub(crate) mod truth;
pub(crate) mod warc;

pub(crate) use collection::{Collection, Resolution};
pub(crate) use crawl::Crawl;
pub(crate) use truth::Truth;

/// Most redirects followed from one page.
pub(crate) const MAX_HOPS: usize = 20;
