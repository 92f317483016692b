//! Compares every policy with a reference, which is a second implementation that is slow and simple: on real
//! crawls, on random texts, and at the thresholds of F.
//!
//! The reference shares no code with the product, except for libraries: XXH3, the stemmer, the stop words and
//! the public-suffix list. The reference has its own parsers of crawl files and HTML. Its tokens, lines and
//! terms are texts instead of hashes. It learns its own weights, and it writes signatures by the tables in
//! the documentation.
//!
//! The tests compare signatures byte for byte, and F of all pairs. The reference relies on the product in a
//! single point: which part of a page is its main content.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

#[path = "../../../../tests/oracle/mod.rs"]
mod oracle;

mod bits;
mod bounds;
mod compare;
mod layout;
mod learning;
mod page;
mod random;
mod real;
mod rule;
mod shingles;
mod terms;
