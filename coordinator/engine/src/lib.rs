//! The coordinator's logic without HTTP. This crate turns pages into submissions, records into advice, and a
//! collection into an export or a savings report. The command line also uses this crate, for collections
//! without a server.
//!
//! | module | responsibility |
//! |---|---|
//! | [`ingest`], [`raw_page`] | turn raw pages into submissions with signatures, on worker threads |
//! | [`advise`], [`market`] | verify the advice on a stored page; choose the winners for a market |
//! | [`probe`] | give advice on a page that is not stored |
//! | [`comparison`] | explain why two pages are near-duplicates or not |
//! | [`export`], [`savings`], [`sort`] | write the export and the savings report; sort in bounded memory |
//! | [`shard_owners`] | record the owners of shards |
//! | [`limits`] | bounds for all of these modules |
//!
//! Invariant: advice calls a page a duplicate only if the pairwise function F was verified on the current
//! contents of both pages (guarantee G5, see [`advise`]).
#![forbid(unsafe_code)]

pub mod advise;
pub mod comparison;
pub mod export;
pub mod ingest;
pub mod limits;
pub mod market;
pub mod probe;
pub mod raw_page;
pub mod savings;
pub mod shard_owners;
pub mod sort;
