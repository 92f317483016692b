//! Reads the inputs of a command: records in their order, in batches for several threads, as hashed lines, or
//! one page alone.

pub mod crawl;
pub mod directory;
pub mod hashed_lines;
pub mod one_page;
pub mod page_batches;
