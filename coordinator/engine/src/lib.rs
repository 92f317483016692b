//! What the front door answers, without HTTP: pages become submissions, answers become advice, and a collection becomes an export or a
//! report on savings. The command line uses the crate for collections without a server.
//!
//! | module | responsibility |
//! |---|---|
//! | [`ingest`], [`raw_page`] | raw pages to submissions with signatures, on worker threads |
//! | [`advise`], [`market`] | advice on a page, verified on present contents; winners of a market |
//! | [`probe`] | advice on a page that is not recorded |
//! | [`comparison`] | why two pages are near-duplicates or not |
//! | [`export`], [`savings`], [`sort`] | the export and the report on savings, sorted in bounded memory |
//! | [`ring`], [`shard_map`] | proposed owners of ranges; owners of shards |
//! | [`limits`] | bounds of all of these |
//!
//! Invariant: a page is called a duplicate only after F was checked on present contents (G5, [`advise`]).
#![forbid(unsafe_code)]

pub mod advise;
pub mod comparison;
pub mod export;
pub mod ingest;
pub mod limits;
pub mod market;
pub mod probe;
pub mod raw_page;
pub mod ring;
pub mod savings;
pub mod shard_map;
pub mod sort;
