//! Every policy against a second implementation that is slow and plain: on real crawls, on random texts, and at the bounds of F.
//!
//! The reference shares no code with the product, but for XXH3, the stemmer, the stop words and the public-suffix list, which are
//! libraries. It has its own parser of crawl files and HTML, its own tokens, lines and terms, all of them text, learns its own weights,
//! and writes signatures by the tables in the documentation. Signatures are compared byte for byte, and F of all pairs. One thing it takes
//! from the product: which part of a page is its main content.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

#[path = "../../../../tests/oracle/mod.rs"]
mod oracle;

mod bits;
mod bounds;
mod compare;
mod learning;
mod page;
mod random;
mod real;
mod rule;
mod shingles;
mod terms;
mod written;
