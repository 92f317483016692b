//! The terminal and the files of a command: what a command prints, how it shows progress, which files it
//! leaves, and the code with which it ends. The crate knows nothing of pages and collections.
//!
//! | module | responsibility |
//! |---|---|
//! | [`output`], [`escape`] | text and JSON on standard output and standard error |
//! | [`progress`] | progress bars |
//! | [`svg`] | diagrams as SVG |
//! | [`exit`], [`memory`] | exit codes, and advice for failures |
//! | [`bounded`] | options that limit memory and temporary files |
//! | [`destination`], [`atomic_file`] | files that appear complete or not at all |
//! | [`toml_file`] | TOML files that people write |
//! | [`scratch`] | temporary directory |
//! | [`interrupt`] | files to remove when a signal ends the command |
//! | [`size`], [`span`] | sizes and durations as arguments |
#![forbid(unsafe_code)]

pub mod atomic_file;
pub mod bounded;
pub mod destination;
pub mod escape;
pub mod exit;
pub mod interrupt;
pub mod memory;
pub mod output;
pub mod progress;
pub mod scratch;
pub mod size;
pub mod span;
pub mod svg;
pub mod toml_file;
